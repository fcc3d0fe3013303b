#include "cli/sample_model.h"

#include <map>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "classes/word_classes.h"
#include "config/config_file.h"
#include "model/model_directory.h"

namespace hsm::test {
namespace {

constexpr int64_t kShortlist = 4;
constexpr int64_t kClusters = 3;

Vocabulary sample_vocabulary() {
  std::map<std::string, int64_t> counts;
  std::istringstream text(sample_text());
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    for (std::string word; words >> word;) ++counts[word];
    ++counts[std::string(kEndOfSentence)];
  }
  counts[std::string(kUnknownWord)] = 2;
  std::vector<Vocabulary::Entry> entries;
  for (const auto& [word, count] : counts) entries.push_back({word, count});
  return Vocabulary::from_counts(std::move(entries));
}

// The first words at the root, the others in turn to each cluster.
WordClasses sample_classes(const Vocabulary& vocabulary) {
  WordClasses classes;
  classes.clusters = kClusters;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const bool at_root = id < kShortlist || id == vocabulary.unknown() || id == vocabulary.end_of_sentence();
    classes.cluster_of.push_back(at_root ? hsm::kShortlist : static_cast<int32_t>(id % kClusters));
  }
  return classes;
}

Config sample_config(const std::filesystem::path& directory) {
  Config config;
  config.data.train = {"/corpus/train.txt"};
  config.model.layers = 2;
  config.model.hidden = {7, 5};
  config.model.embedding = 6;
  config.train.epochs = 2;
  config.output.directory = std::filesystem::absolute(directory).string();
  return config;
}

}  // namespace

std::string sample_text() {
  // Lines of a toy grammar: enough repetition for counts to differ.
  const std::vector<std::string> who{"the old man", "a young woman", "the cat", "my dog", "the river"};
  const std::vector<std::string> does{"sees", "follows", "hears", "remembers"};
  const std::vector<std::string> where{"in the garden", "at night",    "by the sea", "",
                                       "on a hill",     "under a tree"};
  std::string text;
  const CounterRandom random(5, Purpose::shuffle);
  for (uint64_t line = 0; line < 60; ++line) {
    text += who[random.below(who.size(), line, 0)] + " " + does[random.below(does.size(), line, 1)] + " " +
            who[random.below(who.size(), line, 2)] + " " + where[random.below(where.size(), line, 3)] + "\n";
  }
  return text;
}

void write_sample_model(const std::filesystem::path& directory) {
  make_directories(directory);
  const Vocabulary vocabulary = sample_vocabulary();
  const WordClasses classes = sample_classes(vocabulary);
  const HeadLayout layout = make_layout(classes);
  const Config config = sample_config(directory);
  const ModelShape shape = make_shape(config.model, vocabulary.size(), layout.clusters());
  std::vector<std::vector<float>> values;
  WeightView weights;
  const CounterRandom random(1, Purpose::initialization);
  for (const TensorSpec& spec : parameter_specs(shape)) {
    int64_t count = 1;
    for (const int64_t size : spec.shape) count *= size;
    std::vector<float>& tensor = values.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      tensor.push_back(static_cast<float>(random.uniform(values.size(), static_cast<uint64_t>(i)) - 0.5));
    }
  }
  for (const std::vector<float>& tensor : values) weights.tensors.push_back(tensor.data());
  std::string class_lines;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const int32_t cluster = classes.cluster_of[static_cast<size_t>(id)];
    class_lines += vocabulary.word(id) + "\t" + (cluster < 0 ? "-" : std::to_string(cluster)) + "\n";
  }
  vocabulary.save(directory / "vocabulary.txt");
  write_file(directory / "classes.txt", class_lines);
  write_file(directory / "config.json", dump_config(config));
  save_weights(directory, shape, layout, vocabulary, weights, {});
  write_file(
      directory / "metrics.jsonl",
      "{\"event\":\"start\",\"words\":" + std::to_string(vocabulary.size()) +
          "}\n"
          R"({"event":"epoch","epoch":1,"step":10,"train_perplexity":30.5,"valid_perplexity":21.25,"seconds":2.0})"
          "\n"
          R"({"event":"epoch","epoch":2,"step":20,"train_perplexity":20.5,"valid_perplexity":22.5,"seconds":2.0})"
          "\n"
          R"({"event":"done","test_perplexity":23.75,"reason":"epochs","steps":20,"seconds":65.0})"
          "\n");
}

}  // namespace hsm::test
