#include "train/training_data.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/available_threads.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/thread_pool.h"
#include "classes/class_file.h"
#include "classes/class_likelihood.h"
#include "classes/make_classes.h"
#include "model/model_shape.h"
#include "text/corpus.h"
#include "text/corpus_files.h"
#include "text/lines.h"
#include "train/class_report.h"
#include "train/reading_report.h"

namespace hsm {
namespace {

static_assert(ClassesConfig::kMostExchangeClusters == kMostExchangeClusters);

CorpusOptions corpus_options(const Config& config, bool resumes) {
  CorpusOptions options;
  options.text.lowercase = config.data.lowercase;
  options.skip_blank_lines = config.data.skip_blank_lines;
  options.streams_from_cache = resumes;
  return options;
}

/// Where the token file of a text lies. In a folder that runs share, its name tells texts and settings apart;
/// what a stream held, of which there is no other copy, is a run's own.
std::filesystem::path token_path(const Config& config, const RunDirectory& directory, const std::string& name,
                                 const std::vector<std::string>& paths) {
  if (config.data.cache.empty() || CorpusFiles(paths).has_streams()) {
    return directory.path() / (name + ".tokens");
  }
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

/// All but the layout, which takes long to learn: what is wrong with a text shows before.
TrainingData read_other_texts(const Config& config, const TextReader& reader, Vocabulary vocabulary,
                              TokenFile train, std::string hash) {
  auto valid = reader.read_if_any("valid", config.data.valid, vocabulary);
  auto test = reader.read_if_any("test", config.data.test, vocabulary);
  std::string valid_hash = valid ? hash_of(*valid) : "";
  return {std::move(vocabulary), {}, std::move(train), std::move(valid), std::move(test), std::move(hash),
          std::move(valid_hash)};
}

bool seen_once(const Vocabulary& vocabulary) {
  for (int32_t word = 0; word < vocabulary.size(); ++word) {
    if (vocabulary.count(word) == 1 && word != vocabulary.end_of_sentence()) return true;
  }
  return false;
}

void warn_of_untrained_unknown(const Config& config, const Vocabulary& vocabulary) {
  if (vocabulary.count(vocabulary.unknown()) > 0) return;
  const bool has_singletons = seen_once(vocabulary);
  if (has_singletons && config.vocabulary.unk_singletons) return;
  spdlog::warn(
      "no word of the training text is unknown, so <unk> stays untrained and unknown words elsewhere get an "
      "arbitrary probability; {} trains it",
      has_singletons ? "vocabulary.min_count: 2 or vocabulary.unk_singletons: true"
                     : "a vocabulary.min_count of 3 or more, or a vocabulary.max_size,");
}

ClassOptions class_options(const Config& config) {
  const ClassesConfig& settings = config.classes;
  return {settings.method,  settings.weight, settings.clusters, settings.shortlist,
          settings.largest, settings.rounds, settings.file};
}

WordClasses make_classes(const Config& config, const Vocabulary& vocabulary, const TokenFile& train,
                         ThreadPool& pool, const std::function<bool()>& stop) {
  ClassReport report(stop);
  return make_classes(class_options(config), vocabulary, step_shape(config, vocabulary),
                      {&train, &pool, report.report()});
}

// What is wrong with files that are read late shows before the long work begins.
void look_for_files(const Config& config) {
  for (const auto* paths : {&config.data.train, &config.data.valid, &config.data.test}) {
    static_cast<void>(expand_paths(*paths));
  }
  if (config.classes.method == "file") static_cast<void>(expand_paths({config.classes.file}));
}

// The layout of a run's own classes, which must be as they were written.
HeadLayout reopen_layout(const std::filesystem::path& path, const Vocabulary& vocabulary,
                         const std::string& expected_hash) {
  const WordClasses classes = load_classes(path, vocabulary);
  HeadLayout layout = make_layout(classes);
  if (layout.hash() != expected_hash)
    throw DataError(path.string() + ": not the classes that the run began with");
  check_saved_classes(path, vocabulary, classes, "the run began with");
  return layout;
}

/// A folder of one's own, gone with the object.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::filesystem::path& parent) {
    std::string name = (parent / "hsm-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw ResourceError(parent.string() + ": no folder can be made in it: " + std::strerror(errno));
    }
    path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Where tokens may lie that are needed once.
std::filesystem::path folder_for_tokens(const Config& config) {
  if (!config.data.cache.empty()) {
    make_directories(config.data.cache);
    return config.data.cache;
  }
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

// The training text with a token file that is in no folder any more, so that however this ends, it is gone.
std::pair<Vocabulary, TokenFile> read_in_passing(const Config& config, const std::function<bool()>& stop) {
  const PrivateFolder folder(folder_for_tokens(config));
  const std::filesystem::path path = folder.path() / "train.tokens";
  Vocabulary vocabulary = read_text(config, corpus_options(config, false), path, stop);
  return {std::move(vocabulary), TokenFile(path)};
}

}  // namespace

ThreadPool make_pool(const Config& config) {
  return ThreadPool(config.runtime.threads > 0 ? static_cast<int>(config.runtime.threads)
                                               : available_threads());
}

std::unique_ptr<BatchSource> TrainingData::batches(const Config& config) const {
  const TrainConfig& settings = config.train;
  const BatchOptions options{settings.batch, settings.bptt, settings.bptt_jitter, settings.seed,
                             config.vocabulary.unk_singletons};
  return settings.context == "sentence" ? make_sentence_batches(train, vocabulary, options)
                                        : make_stream_batches(train, vocabulary, options);
}

TrainingData prepare_data(const Config& config, const RunDirectory& directory,
                          const std::function<bool()>& stop) {
  look_for_files(config);
  const TextReader reader(config, directory, false, stop);
  Vocabulary vocabulary = reader.make_vocabulary();
  warn_of_untrained_unknown(config, vocabulary);
  TokenFile train = reader.open_training();
  std::string hash = hash_of(train);
  TrainingData data =
      read_other_texts(config, reader, std::move(vocabulary), std::move(train), std::move(hash));
  ThreadPool pool = make_pool(config);
  data.layout = make_layout(make_classes(config, data.vocabulary, data.train, pool, stop));
  return data;
}

void save_words(const TrainingData& data, const RunDirectory& directory) {
  data.vocabulary.save(directory.vocabulary());
  save_classes(directory.classes(), data.vocabulary, classes_of(data.layout));
}

TrainingData reopen_data(const Config& config, const RunDirectory& directory, const TrainingState& state,
                         const std::function<bool()>& stop) {
  const TextReader reader(config, directory, true, stop);
  Vocabulary vocabulary = Vocabulary::load(directory.vocabulary());
  HeadLayout layout = reopen_layout(directory.classes(), vocabulary, state.layout_hash);
  TokenFile train = reader.read("train", config.data.train, vocabulary);
  std::string hash = hash_of(train);
  if (hash != state.data_hash) {
    throw DataError(config.data.train.front() + ": not the training text that the run in " +
                    directory.path().string() + " began with (hash " + hash + ", expected " +
                    state.data_hash + ")");
  }
  TrainingData data =
      read_other_texts(config, reader, std::move(vocabulary), std::move(train), std::move(hash));
  data.layout = std::move(layout);
  return data;
}

StepShape step_shape(const Config& config, const Vocabulary& vocabulary) {
  return {make_shape(config.model, vocabulary.size(), 0).head_dim(), config.train.batch * config.train.bptt};
}

TextClasses read_classes(const Config& config, const std::function<bool()>& stop) {
  look_for_files(config);
  auto [vocabulary, tokens] = read_in_passing(config, stop);
  ThreadPool pool = make_pool(config);
  WordClasses classes = make_classes(config, vocabulary, tokens, pool, stop);
  return {std::move(vocabulary), std::move(classes), std::move(tokens)};
}

double TextClasses::log_likelihood(const Config& config, const std::function<bool()>& stop) const {
  ThreadPool pool = make_pool(config);
  return class_bigram_likelihood(train, vocabulary, classes, pool, [&stop](double /*part*/) {
    if (stop()) throw ReadingStopped{};
  });
}

}  // namespace hsm
