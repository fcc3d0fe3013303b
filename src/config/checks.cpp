#include "config/checks.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace hsm {
namespace {

class Checker {
 public:
  Checker(const Config& config, const GivenValues& given, const std::string& name, Problems& problems)
      : config_(config), given_(given), name_(name), problems_(problems) {}

  void required() {
    refuse(config_.data.train.empty(), "data.train", {}, "missing, expected the path of the training text");
    refuse(config_.output.directory.empty(), "output.directory", {},
           "missing, expected the path of a folder");
  }

  void data() {
    const auto streams = [](const std::vector<std::string>& paths) {
      return std::count(paths.begin(), paths.end(), "-");
    };
    const auto& data = config_.data;
    int64_t count = 0;
    const char* last = "";
    for (const auto& [path, times] : {std::pair{"data.train", streams(data.train)},
                                      {"data.valid", streams(data.valid)},
                                      {"data.test", streams(data.test)},
                                      {"vocabulary.file", streams({config_.vocabulary.file})},
                                      {"classes.file", streams({config_.classes.file})}}) {
      count += times;
      if (times > 0) last = path;
    }
    refuse(count > 1, last, {}, "\"-\" given more than once, but standard input can be read only once");
  }

  void vocabulary() {
    const auto& v = config_.vocabulary;
    const bool from_file = !v.file.empty();
    refuse(from_file && v.min_count != 1, "vocabulary.min_count", {"vocabulary.file"},
           number(v.min_count) +
               " given beside vocabulary.file, which says already what the words are; leave it out");
    refuse(from_file && v.max_size != 0, "vocabulary.max_size", {"vocabulary.file"},
           number(v.max_size) +
               " given beside vocabulary.file, which says already what the words are; leave it out");
  }

  void classes() {
    const auto& c = config_.classes;
    refuse(c.method == "file" && c.file.empty(), "classes.file", {"classes.method"},
           "missing, expected the path of a file of classes, because classes.method is \"file\"");
    refuse(c.method != "file" && !c.file.empty(), "classes.file", {"classes.method"},
           "given, but classes.method is \"" + c.method + "\"; set it to \"file\", or leave the file out");
    const int64_t clusters = c.clusters.value_or(1);
    refuse(c.method == "exchange" && clusters > ClassesConfig::kMostExchangeClusters, "classes.clusters",
           {"classes.method"},
           number(clusters) + " given, expected at most " + number(ClassesConfig::kMostExchangeClusters) +
               " with classes.method \"exchange\", which counts pairs of clusters");
    const int64_t most = config_.vocabulary.max_size;
    const int64_t asked = clusters + c.shortlist.value_or(0);
    refuse(most > 0 && c.method != "file" && asked > most,
           c.clusters ? "classes.clusters" : "classes.shortlist",
           {"classes.clusters", "classes.shortlist", "vocabulary.max_size"},
           number(clusters) + " clusters and a shortlist of " + number(c.shortlist.value_or(0)) +
               " need more words than vocabulary.max_size, " + number(most));
  }

  void model() {
    const auto& m = config_.model;
    const auto hidden = given_.find("model.hidden");
    const bool is_list = hidden == given_.end() ? m.hidden.size() > 1 : hidden->second.value.is_array();
    refuse(is_list && static_cast<int64_t>(m.hidden.size()) != m.layers, "model.hidden", {"model.layers"},
           "a list of " + number(static_cast<int64_t>(m.hidden.size())) +
               " given, expected one number for each of the " + number(m.layers) + " layers (model.layers)");
  }

  void train() {
    const auto& t = config_.train;
    const bool ends = t.epochs > 0 || t.max_steps > 0 || t.max_time > 0 || t.early_stopping > 0;
    refuse(!ends, "train.epochs", {"train.max_steps", "train.max_time", "train.early_stopping"},
           "0 given without max_steps, max_time or early_stopping, so training would have no end");
    refuse(t.calibrate && config_.model.tie_embeddings, "train.calibrate", {"model.tie_embeddings"},
           "true given with model.tie_embeddings, but scaling the head would scale the embeddings with it; "
           "set one of them to false");
    const auto& s = t.schedule;
    refuse(s.name == "cosine" && t.epochs == 0 && t.max_steps == 0, "train.schedule.name",
           {"train.epochs", "train.max_steps"},
           "\"cosine\" given, but its end is not known; set train.epochs or train.max_steps");
    refuse((s.name == "plateau" || s.name == "cosine") && s.minimum > t.optimizer.learning_rate,
           "train.schedule.minimum", {"train.schedule.name", "train.optimizer.learning_rate"},
           Json(s.minimum).dump() + " given, expected at most train.optimizer.learning_rate, " +
               Json(t.optimizer.learning_rate).dump());
  }

  // What follows from validations, which a model that is trained does without.
  void validations() {
    const auto& t = config_.train;
    const auto& every = t.validate_every;
    const bool validates =
        !config_.data.valid.empty() && (every.epochs > 0 || every.steps > 0 || every.minutes > 0);
    const char* reason = config_.data.valid.empty() ? "data.valid" : "train.validate_every";
    refuse(t.early_stopping > 0 && !validates, "train.early_stopping", {"data.valid"},
           number(t.early_stopping) + " given, but there are no validations; set " + reason);
    refuse(t.optimizer.name == "asgd" && t.optimizer.average_patience > 0 && !validates,
           "train.optimizer.average_patience", {"data.valid"},
           number(t.optimizer.average_patience) +
               " given, but there are no validations to begin averaging after; set it to 0, or set " +
               reason);
    refuse(t.calibrate && config_.data.valid.empty(), "train.calibrate", {"data.valid"},
           "true given, but there is no validation text to fit the scales to; set data.valid");
    refuse(t.schedule.name == "plateau" && !validates, "train.schedule.name", {"data.valid"},
           std::string("\"plateau\" given, but there are no validations; set ") + reason);
  }

  void decode() {
    const auto& d = config_.decode;
    refuse(d.nbest > d.beam, "decode.nbest", {"decode.beam"},
           number(d.nbest) + " given, expected at most decode.beam, " + number(d.beam));
    refuse(d.min_length > d.max_length, "decode.min_length", {"decode.max_length"},
           number(d.min_length) + " given, expected at most decode.max_length, " + number(d.max_length));
  }

 private:
  static std::string number(int64_t value) { return std::to_string(value); }

  // Told at `path`, unless it or one of the `others` is wrong already.
  void refuse(bool wrong, const char* path, std::initializer_list<const char*> others,
              const std::string& message) {
    if (!wrong || problems_.at(path)) return;
    if (std::any_of(others.begin(), others.end(), [&](const char* other) { return problems_.at(other); }))
      return;
    const auto found = given_.find(path);
    problems_.add(found == given_.end() ? name_ : found->second.source, path, message);
  }

  const Config& config_;
  const GivenValues& given_;
  const std::string& name_;
  Problems& problems_;
};

}  // namespace

void check_config(const Config& config, const GivenValues& given, const std::string& name, ConfigUse use,
                  Problems& problems) {
  Checker checker(config, given, name, problems);
  if (use == ConfigUse::training) checker.required();
  checker.data();
  checker.vocabulary();
  checker.classes();
  checker.model();
  checker.train();
  checker.decode();
  if (use == ConfigUse::training) checker.validations();
}

}  // namespace hsm
