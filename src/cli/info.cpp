#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/size.h"
#include "cli/class_summary.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/training_record.h"
#include "config/config_file.h"
#include "model/model_directory.h"

namespace hsm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ModelOption model;
  std::string format = "text";
  std::string output = "-";
  bool verify = false;
};

int64_t count_checkpoints(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::directory_iterator files(directory / "checkpoints", error);
  if (error) return 0;
  return std::count_if(begin(files), end(files),
                       [](const auto& entry) { return entry.path().extension() == ".safetensors"; });
}

std::string perplexity(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "not measured";
}

std::string training_state(const TrainingRecord& record, int64_t checkpoints) {
  if (!record.started) return "unknown: there is no metrics.jsonl";
  const std::string extent = plural(record.epochs, "epoch") + ", " + plural(record.steps, "step") + ", " +
                             format_seconds(record.seconds);
  const std::string saved = checkpoints > 0 ? "; " + plural(checkpoints, "checkpoint") : "";
  if (record.finished)
    return "finished: " + extent + (record.reason.empty() ? "" : " (ended by " + record.reason + ")") + saved;
  return "not finished: " + extent + saved + (checkpoints > 0 ? "; go on with hsm train --resume" : "");
}

std::string recipe_text(const TrainConfig& train) {
  return fmt::format("{} {:g}, schedule {}, {} epochs, batch {}, bptt {}, context {}, seed {}",
                     train.optimizer.name, train.optimizer.learning_rate, train.schedule.name, train.epochs,
                     train.batch, train.bptt, train.context, train.seed);
}

// A number of the weights' metadata, where it is there.
std::optional<double> measure(const SavedModel& model, const std::string& key) {
  const auto& metadata = model.weights.metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  const Json value = Json::parse(found->second, nullptr, false);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string as_text(const SavedModel& model, const ClassSummary& classes, const TrainingRecord& record,
                    int64_t checkpoints, bool verified) {
  const ModelShape& shape = model.shape;
  std::string text;
  const auto line = [&text](const char* name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  const int64_t parameters = shape.parameter_count();
  line("model", model.directory.string());
  line("parameters", format_count(parameters) + " (" +
                         format_size(static_cast<uint64_t>(parameters) * sizeof(float)) + ")");
  line("network",
       fmt::format("{}, layers of {}, embedding {}, head {}{}{}", cell_name(shape.cell),
                   fmt::join(shape.hidden, " and "), shape.embedding, shape.head_dim(),
                   shape.tied ? ", tied" : "", shape.has_projection() ? ", with a projection" : ""));
  line("vocabulary",
       plural(shape.words, "word") + " from " + plural(model.vocabulary.total_count(), "token"));
  line("classes", describe_clusters(classes) + "; method " + model.config.classes.method);
  line("shortlist", describe_shortlist(classes));
  if (classes.mean_scores) {
    line("work", fmt::format("{:.1f} scores for the average word, of {} with a full softmax",
                             *classes.mean_scores, format_count(shape.words)));
  }
  line("recipe", recipe_text(model.config.train));
  line("training", training_state(record, checkpoints));
  line("perplexity",
       "train " + perplexity(record.train_perplexity) + ", validation " +
           perplexity(record.valid_perplexity) +
           (record.valid_perplexity ? " (best, epoch " + std::to_string(record.best_epoch) + ")" : "") +
           ", test " + perplexity(record.test_perplexity));
  const std::optional<double> root_scale = measure(model, "root_scale");
  const std::optional<double> cluster_scale = measure(model, "cluster_scale");
  if (root_scale && cluster_scale) {
    line("calibration", fmt::format("trained logits times {:.3f} at the root, {:.3f} within clusters",
                                    *root_scale, *cluster_scale));
  }
  if (verified) line("checksum", "the weights are those that were written");
  return text;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string as_json(const SavedModel& model, const ClassSummary& classes, const TrainingRecord& record,
                    int64_t checkpoints, bool verified) {
  const ModelShape& shape = model.shape;
  Json json{{"model", model.directory.string()},
            {"parameters", shape.parameter_count()},
            {"cell", cell_name(shape.cell)},
            {"layers", shape.hidden.size()},
            {"hidden", shape.hidden},
            {"embedding", shape.embedding},
            {"head_width", shape.head_dim()},
            {"tied", shape.tied},
            {"words", shape.words},
            {"train_tokens", model.vocabulary.total_count()},
            {"clusters", shape.clusters},
            {"smallest_cluster", classes.smallest},
            {"largest_cluster", classes.largest},
            {"mean_cluster", classes.mean},
            {"shortlist", model.layout.shortlist()},
            {"root_token_share", or_null(classes.root_share)},
            {"mean_scores", or_null(classes.mean_scores)}};
  json["training"] = {{"started", record.started}, {"finished", record.finished}, {"reason", record.reason},
                      {"epochs", record.epochs},   {"steps", record.steps},       {"seconds", record.seconds},
                      {"checkpoints", checkpoints}};
  json["train_perplexity"] = or_null(record.train_perplexity);
  json["valid_perplexity"] = or_null(record.valid_perplexity);
  json["best_epoch"] = record.best_epoch;
  json["test_perplexity"] = or_null(record.test_perplexity);
  json["root_scale"] = or_null(measure(model, "root_scale"));
  json["cluster_scale"] = or_null(measure(model, "cluster_scale"));
  if (verified) json["checksum"] = "ok";
  for (const TensorSpec& spec : parameter_specs(shape)) json["tensors"][spec.name] = spec.shape;
  json["config"] = Json::parse(dump_config(model.config));
  return json.dump() + "\n";
}

ExitCode run_info(const Options& options) {
  const SavedModel model = open_model(options.model.directory());
  if (options.verify) verify_checksum(model.weights);
  const ClassSummary classes = summarise_classes(model.layout, model.vocabulary);
  const TrainingRecord record = read_training_record(model.directory / "metrics.jsonl");
  const auto show = options.format == "text" ? as_text : as_json;
  const std::string shown = show(model, classes, record, count_checkpoints(model.directory), options.verify);
  Output out(options.output);
  out.write(shown);
  out.finish();
  return ExitCode::done;
}

}  // namespace

Command add_info(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("info", "Show a model: sizes, classes, recipe, training state, perplexities");
  add_model(*command, options->model);
  command->add_flag("--verify", options->verify, "Read all weights and compare their checksum");
  add_format(*command, options->format, {"text", "jsonl"});
  add_output(*command, options->output);
  add_log_level(*command);
  command->footer(
      "Examples:\n"
      "  hsm info --model models/quickstart\n"
      "  hsm info --config configs/ptb-small.json --verify\n"
      "  hsm info --model models/quickstart --format jsonl");
  return {command, [options] { return run_info(*options); }};
}

}  // namespace hsm::cli
