#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "train/training_state.h"

namespace hsm {

/// A tensor of the running training that a checkpoint saves and restores in place. Not owned.
struct StateTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  void* data = nullptr;
};

/// A checkpoint, opened and found whole.
struct Checkpoint {
  SafetensorsFile file;
  TrainingState state;

  /// Copies the saved tensors into place. DataError when one is missing or has another shape.
  void restore(std::span<const StateTensor> tensors) const;
};

/// The checkpoints of a run: step-NNNNNNNNN.safetensors in one folder, each written atomically, with
/// checksums over its tensors and over its training state.
class CheckpointStore {
 public:
  /// Keeps the newest `keep` ≥ 1.
  CheckpointStore(std::filesystem::path folder, int64_t keep);

  [[nodiscard]] bool empty() const;

  /// Writes one, then removes those that are too many, and any of later steps (left by a damaged future
  /// that resuming has gone back behind). ResourceError when the disk is full or not writable.
  void save(const TrainingState& state, std::span<const StateTensor> tensors);

  /// The newest that is whole; a warning names each damaged one passed over. Nothing when there are no
  /// files; DataError when all are damaged.
  [[nodiscard]] std::optional<Checkpoint> load_newest() const;

 private:
  /// Steps of the files that are there, newest first.
  [[nodiscard]] std::vector<int64_t> steps() const;
  [[nodiscard]] std::filesystem::path file_of(int64_t step) const;
  void remove_old(int64_t step) const;

  std::filesystem::path folder_;
  int64_t keep_;
};

}  // namespace hsm
