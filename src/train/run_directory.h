#pragma once
#include <filesystem>

namespace hsm {

/// The directory of a run, made when missing, and locked against a second trainer for the life of the
/// object. Left-overs of a killed run (temporary files) are removed. ResourceError when it can't be made or
/// written, or another process trains in it.
class RunDirectory {
 public:
  explicit RunDirectory(std::filesystem::path path);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path config() const { return path_ / "config.json"; }
  [[nodiscard]] std::filesystem::path vocabulary() const { return path_ / "vocabulary.txt"; }
  [[nodiscard]] std::filesystem::path classes() const { return path_ / "classes.txt"; }
  [[nodiscard]] std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  [[nodiscard]] std::filesystem::path model() const { return path_ / "model.safetensors"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }

  /// True when any file of a run or a model is there.
  [[nodiscard]] bool holds_run() const;

 private:
  void lock();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace hsm
