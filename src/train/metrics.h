#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace hsm {

/// metrics.jsonl of a run: one JSON object a line, only ever appended to, save that resuming cuts it back
/// to the checkpoint. ResourceError when the disk is full or not writable.
class MetricsLog {
 public:
  /// Opens `path` and cuts it to `bytes`. A file that is shorter than that is kept as it is.
  MetricsLog(std::filesystem::path path, uint64_t bytes);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// Writes the line at once; a number that isn't finite becomes null.
  void append(const nlohmann::ordered_json& event);
  /// Makes what was appended durable; a checkpoint that counts its bytes comes after.
  void sync();
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t bytes_ = 0;
};

/// The event in the last line of a metrics file; nothing when the file is missing, empty, or ends within a
/// line.
std::optional<nlohmann::ordered_json> last_event(const std::filesystem::path& path);

}  // namespace hsm
