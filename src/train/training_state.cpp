#include "train/training_state.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"

namespace hsm {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity: a best that isn't there yet is null.
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

double number_or_infinity(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

// Missing where the checkpoint is older than calibration.
std::optional<LogitScales> scales_of(const Json& validations) {
  const auto root = validations.find("root_scale");
  if (root == validations.end() || root->is_null()) return std::nullopt;
  return LogitScales{root->get<float>(), validations.at("cluster_scale").get<float>()};
}

}  // namespace

double EpochSums::perplexity() const {
  return std::exp(loss / static_cast<double>(targets));
}

double EpochSums::words_per_second() const {
  return training_seconds > 0 ? static_cast<double>(targets) / training_seconds : 0;
}

bool ValidationHistory::record(double perplexity, int64_t epoch, int64_t step, double seconds) {
  last_step = step;
  last_seconds = seconds;
  if (perplexity < best) {
    best = perplexity;
    best_step = step;
    best_epoch = epoch;
    without_improvement = 0;
    return true;
  }
  ++without_improvement;
  return false;
}

bool ValidationHistory::stagnates(double perplexity, int64_t patience) {
  const bool worse = perplexity > best_before_recent;
  recent.push_back(perplexity);
  while (static_cast<int64_t>(recent.size()) > patience) {
    best_before_recent = std::min(best_before_recent, recent.front());
    recent.erase(recent.begin());
  }
  return worse;
}

std::string end_reason(const TrainConfig& config, const TrainingState& state) {
  if (config.epochs > 0 && state.position.epoch >= config.epochs) return "epochs";
  if (config.max_steps > 0 && state.position.step >= config.max_steps) return "max_steps";
  if (config.max_time > 0 && state.seconds >= config.max_time) return "max_time";
  if (config.early_stopping > 0 && state.validations.without_improvement >= config.early_stopping) {
    return "early_stopping";
  }
  return "";
}

std::string dump_state(const TrainingState& state) {
  const std::optional<LogitScales>& scales = state.validations.scales;
  const Json json{
      {"epoch", state.position.epoch},
      {"window", state.position.window},
      {"step", state.position.step},
      {"sums",
       {{"loss", state.sums.loss},
        {"targets", state.sums.targets},
        {"training_seconds", state.sums.training_seconds},
        {"seconds", state.sums.seconds}}},
      {"plateau",
       {{"best", number_or_null(state.plateau.best)},
        {"without_improvement", state.plateau.without_improvement},
        {"reductions", state.plateau.reductions}}},
      {"validations",
       {{"best", number_or_null(state.validations.best)},
        {"best_step", state.validations.best_step},
        {"best_epoch", state.validations.best_epoch},
        {"without_improvement", state.validations.without_improvement},
        {"last_step", state.validations.last_step},
        {"last_seconds", state.validations.last_seconds},
        {"root_scale", scales ? Json(scales->root) : Json(nullptr)},
        {"cluster_scale", scales ? Json(scales->cluster) : Json(nullptr)},
        {"recent", state.validations.recent},
        {"best_before_recent", number_or_null(state.validations.best_before_recent)}}},
      {"seconds", state.seconds},
      {"streams", state.streams},
      {"metrics_bytes", state.metrics_bytes},
      {"data_hash", state.data_hash},
      {"valid_hash", state.valid_hash},
      {"layout_hash", state.layout_hash},
  };
  return json.dump();
}

TrainingState parse_state(std::string_view json, std::string_view name) {
  try {
    const Json root = Json::parse(json);
    TrainingState state;
    root.at("epoch").get_to(state.position.epoch);
    root.at("window").get_to(state.position.window);
    root.at("step").get_to(state.position.step);
    const Json& sums = root.at("sums");
    sums.at("loss").get_to(state.sums.loss);
    sums.at("targets").get_to(state.sums.targets);
    sums.at("training_seconds").get_to(state.sums.training_seconds);
    sums.at("seconds").get_to(state.sums.seconds);
    const Json& plateau = root.at("plateau");
    state.plateau.best = number_or_infinity(plateau.at("best"));
    plateau.at("without_improvement").get_to(state.plateau.without_improvement);
    plateau.at("reductions").get_to(state.plateau.reductions);
    const Json& validations = root.at("validations");
    state.validations.best = number_or_infinity(validations.at("best"));
    validations.at("best_step").get_to(state.validations.best_step);
    validations.at("best_epoch").get_to(state.validations.best_epoch);
    validations.at("without_improvement").get_to(state.validations.without_improvement);
    validations.at("last_step").get_to(state.validations.last_step);
    validations.at("last_seconds").get_to(state.validations.last_seconds);
    state.validations.scales = scales_of(validations);
    validations.at("recent").get_to(state.validations.recent);
    state.validations.best_before_recent = number_or_infinity(validations.at("best_before_recent"));
    root.at("seconds").get_to(state.seconds);
    root.at("streams").get_to(state.streams);
    root.at("metrics_bytes").get_to(state.metrics_bytes);
    root.at("data_hash").get_to(state.data_hash);
    root.at("valid_hash").get_to(state.valid_hash);
    root.at("layout_hash").get_to(state.layout_hash);
    return state;
  } catch (const nlohmann::json::exception& problem) {
    throw DataError(std::string(name) + ": malformed training state: " + problem.what());
  }
}

}  // namespace hsm
