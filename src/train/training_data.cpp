#include "train/training_data.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/size.h"
#include "classes/class_file.h"
#include "classes/make_classes.h"
#include "model/model_shape.h"
#include "text/corpus.h"
#include "train/reading_report.h"

namespace hsm {
namespace {

CorpusOptions corpus_options(const Config& config, bool resumes) {
  CorpusOptions options;
  options.text.lowercase = config.data.lowercase;
  options.skip_blank_lines = config.data.skip_blank_lines;
  options.streams_from_cache = resumes;
  return options;
}

/// Where the token file of a text lies. In a folder that runs share, its name tells texts and settings apart.
std::filesystem::path token_path(const Config& config, const RunDirectory& directory, const std::string& name,
                                 const std::vector<std::string>& paths) {
  if (config.data.cache.empty()) return directory.path() / (name + ".tokens");
  Hasher hasher;
  for (const std::string& path : paths) hasher.add(path + '\n');
  const VocabularyConfig& vocabulary = config.vocabulary;
  hasher.add(std::to_string(config.data.lowercase) + std::to_string(config.data.skip_blank_lines) +
             std::to_string(vocabulary.min_count) + ' ' + std::to_string(vocabulary.max_size) + ' ' +
             vocabulary.file);
  return std::filesystem::path(config.data.cache) / (name + "-" + hasher.hex() + ".tokens");
}

std::string hash_of(const TokenFile& tokens) {
  constexpr int64_t kBlock = int64_t{1} << 18;
  std::vector<int32_t> block;
  Hasher hasher;
  for (int64_t first = 0; first < tokens.size(); first += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, tokens.size() - first)));
    tokens.read(first, block);
    hasher.add(block.data(), block.size() * sizeof(int32_t));
  }
  return hasher.hex();
}

void describe(const std::string& label, const TokenFile& tokens) {
  spdlog::info("{}: {} tokens in {} lines, {} out of the vocabulary", label, format_count(tokens.size()),
               format_count(tokens.sentences()), format_count(tokens.unknown()));
}

Vocabulary read_text(const Config& config, const CorpusOptions& corpus, const std::filesystem::path& tokens,
                     const std::function<bool()>& stop) {
  ReadingReport report("reading " + config.data.train.front(), stop);
  const VocabularyOptions options{config.vocabulary.min_count, config.vocabulary.max_size,
                                  config.vocabulary.file};
  return read_training_text(config.data.train, corpus, options, tokens, report.progress());
}

/// Reads texts of one configuration into token files.
class TextReader {
 public:
  TextReader(const Config& config, const RunDirectory& directory, bool resumes, std::function<bool()> stop)
      : config_(config),
        directory_(directory),
        options_(corpus_options(config, resumes)),
        stop_(std::move(stop)) {}

  Vocabulary make_vocabulary() const {
    return read_text(config_, options_, path("train", config_.data.train), stop_);
  }

  TokenFile read(const std::string& name, const std::vector<std::string>& paths,
                 const Vocabulary& vocabulary) const {
    ReadingReport report("reading " + paths.front(), stop_);
    TokenFile tokens = tokenize(paths, options_, vocabulary, path(name, paths), report.progress());
    describe(name + " text", tokens);
    return tokens;
  }

  std::optional<TokenFile> read_if_any(const std::string& name, const std::vector<std::string>& paths,
                                       const Vocabulary& vocabulary) const {
    if (paths.empty()) return {};
    TokenFile tokens = read(name, paths, vocabulary);
    if (tokens.size() == 0) throw DataError(paths.front() + ": no lines; data." + name + " needs some");
    return tokens;
  }

  /// The training text just read by make_vocabulary.
  TokenFile open_training() const {
    TokenFile tokens(path("train", config_.data.train));
    describe("train text", tokens);
    return tokens;
  }

 private:
  [[nodiscard]] std::filesystem::path path(const std::string& name,
                                           const std::vector<std::string>& paths) const {
    return token_path(config_, directory_, name, paths);
  }

  const Config& config_;
  const RunDirectory& directory_;
  CorpusOptions options_;
  std::function<bool()> stop_;
};

void warn_of_untrained_unknown(const Config& config, const Vocabulary& vocabulary) {
  if (vocabulary.count(vocabulary.unknown()) > 0 || config.vocabulary.unk_singletons) return;
  spdlog::warn(
      "no word of the training text is unknown, so <unk> stays untrained and unknown words elsewhere get an "
      "arbitrary probability; vocabulary.min_count: 2 or vocabulary.unk_singletons: true trains it");
}

}  // namespace

std::unique_ptr<BatchSource> TrainingData::batches(const Config& config) const {
  const TrainConfig& settings = config.train;
  const BatchOptions options{settings.batch, settings.bptt, settings.bptt_jitter, settings.seed,
                             config.vocabulary.unk_singletons};
  return settings.context == "sentence" ? make_sentence_batches(train, vocabulary, options)
                                        : make_stream_batches(train, vocabulary, options);
}

TrainingData prepare_data(const Config& config, const RunDirectory& directory,
                          const std::function<bool()>& stop) {
  const TextReader reader(config, directory, false, stop);
  Vocabulary vocabulary = reader.make_vocabulary();
  warn_of_untrained_unknown(config, vocabulary);
  vocabulary.save(directory.vocabulary());
  const WordClasses classes = make_classes(config, vocabulary);
  save_classes(directory.classes(), vocabulary, classes);
  TokenFile train = reader.open_training();
  std::string hash = hash_of(train);
  auto valid = reader.read_if_any("valid", config.data.valid, vocabulary);
  auto test = reader.read_if_any("test", config.data.test, vocabulary);
  return {std::move(vocabulary), make_layout(classes), std::move(train),
          std::move(valid),      std::move(test),      std::move(hash)};
}

TrainingData reopen_data(const Config& config, const RunDirectory& directory,
                         const std::string& expected_hash, const std::function<bool()>& stop) {
  const TextReader reader(config, directory, true, stop);
  Vocabulary vocabulary = Vocabulary::load(directory.vocabulary());
  const WordClasses classes = load_classes(directory.classes(), vocabulary);
  TokenFile train = reader.read("train", config.data.train, vocabulary);
  std::string hash = hash_of(train);
  if (hash != expected_hash) {
    throw DataError(config.data.train.front() + ": not the training text that the run in " +
                    directory.path().string() + " began with (hash " + hash + ", expected " + expected_hash +
                    ")");
  }
  auto valid = reader.read_if_any("valid", config.data.valid, vocabulary);
  auto test = reader.read_if_any("test", config.data.test, vocabulary);
  return {std::move(vocabulary), make_layout(classes), std::move(train),
          std::move(valid),      std::move(test),      std::move(hash)};
}

Vocabulary read_vocabulary(const Config& config, const std::function<bool()>& stop) {
  return read_text(config, corpus_options(config, false), {}, stop);
}

WordClasses make_classes(const Config& config, const Vocabulary& vocabulary) {
  const ClassesConfig& settings = config.classes;
  const int64_t head_dim = make_shape(config.model, vocabulary.size(), 0).head_dim();
  return make_classes(
      {settings.method, settings.weight, settings.clusters, settings.shortlist, settings.file}, vocabulary,
      head_dim, config.train.batch * config.train.bptt);
}

}  // namespace hsm
