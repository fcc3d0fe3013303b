#include "train/checkpoint.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace hsm {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr const char* kState = "training_state";
constexpr const char* kStateChecksum = "training_state_checksum";

std::string hash_of(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return hasher.hex();
}

std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return {};
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return {};
  return step;
}

const std::string& entry(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    throw DataError(file.path().string() + ": no \"" + key + "\" in its metadata; not a checkpoint");
  }
  return found->second;
}

Checkpoint open_checkpoint(const std::filesystem::path& path) {
  Checkpoint checkpoint{SafetensorsFile(path), {}};
  const std::string& state = entry(checkpoint.file, kState);
  if (hash_of(state) != entry(checkpoint.file, kStateChecksum)) {
    throw DataError(path.string() + ": the training state doesn't match its checksum");
  }
  verify_checksum(checkpoint.file);
  checkpoint.state = parse_state(state, path.string());
  return checkpoint;
}

}  // namespace

void Checkpoint::restore(std::span<const StateTensor> tensors) const {
  for (const StateTensor& tensor : tensors) {
    const TensorRef& saved = file.expect(tensor.name, tensor.dtype, tensor.shape);
    std::memcpy(tensor.data, saved.data, saved.bytes());
  }
}

CheckpointStore::CheckpointStore(std::filesystem::path folder, int64_t keep)
    : folder_(std::move(folder)), keep_(std::max<int64_t>(1, keep)) {}

std::filesystem::path CheckpointStore::file_of(int64_t step) const {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%09lld", static_cast<long long>(step));
  return folder_ / (std::string(kPrefix) + digits + std::string(kSuffix));
}

std::vector<int64_t> CheckpointStore::steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    const std::filesystem::path name = file.path().filename();
    const auto step = step_of(name.string());
    if (step && name == file_of(*step).filename()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

bool CheckpointStore::empty() const {
  return steps().empty();
}

void CheckpointStore::save(const TrainingState& state, std::span<const StateTensor> tensors) {
  std::vector<TensorRef> refs;
  refs.reserve(tensors.size());
  for (const StateTensor& tensor : tensors) {
    refs.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.data});
  }
  const std::string json = dump_state(state);
  const int64_t step = state.position.step;
  write_safetensors(file_of(step), refs, {{kState, json}, {kStateChecksum, hash_of(json)}});
  remove_old(step);
}

void CheckpointStore::remove_old(int64_t step) const {
  int64_t kept = 0;
  for (const int64_t other : steps()) {
    if (other <= step && kept++ < keep_) continue;
    std::error_code error;
    std::filesystem::remove(file_of(other), error);
    if (error) spdlog::warn("{}: can't be removed: {}", file_of(other).string(), error.message());
  }
}

std::optional<Checkpoint> CheckpointStore::load_newest() const {
  std::string problems;
  for (const int64_t step : steps()) {
    try {
      return open_checkpoint(file_of(step));
    } catch (const DataError& damage) {
      spdlog::warn("{}; trying the checkpoint before", damage.what());
      problems += std::string("\n  ") + damage.what();
    }
  }
  if (problems.empty()) return {};
  throw DataError(folder_.string() + ": no checkpoint is usable:" + problems);
}

}  // namespace hsm
