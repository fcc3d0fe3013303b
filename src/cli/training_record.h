#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace hsm::cli {

/// What metrics.jsonl tells about a run. Perplexities that were not measured are missing.
struct TrainingRecord {
  bool started = false;   ///< there is a metrics.jsonl with at least one event
  bool finished = false;  ///< the last event says so
  std::string reason;     ///< of the end: "epochs", "max_steps", …
  int64_t epochs = 0;     ///< whole ones so far
  int64_t steps = 0;
  double seconds = 0;
  std::optional<double> train_perplexity;  ///< of the last epoch
  std::optional<double> valid_perplexity;  ///< best
  int64_t best_epoch = 0;
  std::optional<double> test_perplexity;
};

/// A line that was cut short by a kill is passed over when it is the last; DataError with file and line for
/// any other that holds no event.
TrainingRecord read_training_record(const std::filesystem::path& metrics);

}  // namespace hsm::cli
