#include "cli/training_record.h"

#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace hsm::cli {
namespace {

using Json = nlohmann::json;

std::optional<double> number(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

int64_t integer(const Json& event, const char* key, int64_t otherwise) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

void take(TrainingRecord& record, const Json& event) {
  const std::string kind = event["event"].get<std::string>();
  record.started = true;
  record.finished = kind == "done";
  record.steps = integer(event, "steps", integer(event, "step", record.steps));
  if (kind == "epoch") {
    record.epochs = integer(event, "epoch", record.epochs);
    record.train_perplexity = number(event, "train_perplexity");
    record.seconds += number(event, "seconds").value_or(0);
  }
  if (kind == "epoch" || kind == "validation") {
    const auto valid = number(event, "valid_perplexity");
    if (valid && (!record.valid_perplexity || *valid < *record.valid_perplexity)) {
      record.valid_perplexity = valid;
      record.best_epoch = integer(event, "epoch", 0);
    }
  }
  if (kind == "done") {
    record.reason =
        event.contains("reason") && event["reason"].is_string() ? event["reason"].get<std::string>() : "";
    record.test_perplexity = number(event, "test_perplexity");
    record.seconds = number(event, "seconds").value_or(record.seconds);
  }
}

bool is_event(const Json& json) {
  return json.is_object() && json.contains("event") && json["event"].is_string();
}

}  // namespace

TrainingRecord read_training_record(const std::filesystem::path& metrics) {
  TrainingRecord record;
  std::error_code ignored;
  if (!std::filesystem::exists(metrics, ignored)) return record;
  const std::string content = read_file(metrics);
  std::string_view rest = content;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t end = rest.find('\n');
    const Json event = Json::parse(rest.substr(0, end), nullptr, false);
    if (is_event(event)) {
      take(record, event);
    } else if (end != std::string_view::npos) {
      throw DataError(metrics.string() + ":" + std::to_string(line) + ": not an event of a training run");
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return record;
}

}  // namespace hsm::cli
