#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "decode/row_engine.h"
#include "gpu/engine/decode_memory.h"
#include "gpu/engine/decode_model.h"

namespace hsm {

/// Calls body with groups of at most `most`, one after the other.
template <class T, class Body>
void for_groups(std::span<T> all, int64_t most, const Body& body) {
  const auto together = static_cast<size_t>(most);
  for (size_t first = 0; first < all.size(); first += together)
    body(all.subspan(first, std::min(together, all.size() - first)));
}

/// States of rows on a device: a matrix for each layer's h and, for an LSTM, c.
struct DeviceStates {
  std::vector<float*> parts;
};

/// The rows of a search on a device. There are two buffers of states, which swap roles each step, and memory
/// in which clusters are expanded, all taken when the object is made.
class DecodeRows {
 public:
  /// Model and filter outlive the object.
  DecodeRows(Arena& host, DeviceArena& device, const DecodeModel& model, const WordFilter& filter,
             const EngineLimits& limits);

  void step(std::span<const RowSource> sources, int64_t scored);

  [[nodiscard]] DeviceStates take_states(DeviceArena& device, int64_t rows) const;
  /// Copies rows of one set of states to places of another, from `first` on. Rows of the batch's own buffers,
  /// or kZeroState.
  void copy_states(const DeviceStates& from, std::span<const int32_t> rows, const DeviceStates& to,
                   int64_t first);
  [[nodiscard]] const DeviceStates& current() const { return states_[current_]; }
  /// What the next step() overwrites.
  [[nodiscard]] const DeviceStates& spare() const { return states_[1 - current_]; }
  /// Feeds tokens[i] to row i in place and makes the root's logits of the first `scored`. A row whose token
  /// is kCarried keeps its state.
  void feed(const DeviceStates& states, std::span<const int32_t> tokens, int64_t scored);

  [[nodiscard]] const DecodeModel& model() const noexcept { return *model_; }
  [[nodiscard]] kernels::device::DecodeKernels& kernels() const noexcept { return *model_->kernels; }
  [[nodiscard]] const kernels::device::DecodeHead& head() const noexcept { return head_; }
  /// Of the rows fed last.
  [[nodiscard]] kernels::device::RootRows root(int64_t first, int64_t count) const;
  [[nodiscard]] const kernels::device::ExpansionMemory& expansion() const noexcept { return expansion_; }
  [[nodiscard]] int64_t max_rows() const noexcept { return max_rows_; }

  void count_expansions(int64_t count) noexcept { expansions_ += count; }
  [[nodiscard]] int64_t expansions() const noexcept { return expansions_; }

 private:
  const DecodeModel* model_;
  int64_t max_rows_;
  kernels::device::DecodeHead head_;
  DeviceStates states_[2];
  int current_ = 0;
  float* embedded_;  ///< [rows, embedding]
  float* input_products_;
  float* state_products_;
  kernels::device::LogSum<float>* parts_;  ///< scratch of products
  float* projected_;                       ///< [rows, head's width], where there is a projection
  kernels::device::RootRows root_;         ///< of the rows fed last; hidden states lie elsewhere
  kernels::device::ExpansionMemory expansion_;
  /// What feed() sends over.
  struct Tokens {
    explicit Tokens(int64_t count) : row(layout.add<int32_t>(count)), fed(layout.add<int32_t>(count)) {}
    BlockLayout layout;
    BlockLayout::Place<int32_t> row;
    BlockLayout::Place<int32_t> fed;  ///< 1, or 0 for rows that are carried
  };
  Tokens tokens_;
  MirroredBlock token_memory_;
  std::span<int32_t> sources_;  ///< rows that states are copied from
  int32_t* device_sources_;
  std::span<int32_t> stepped_;  ///< tokens of a step
  int64_t expansions_ = 0;
};

}  // namespace hsm
