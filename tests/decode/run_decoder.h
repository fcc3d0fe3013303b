#pragma once
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "decode/cpu_engine.h"
#include "decode/decoder.h"
#include "decode/oracle.h"

namespace hsm::testing {

/// Prompts from memory, all there from the beginning.
class PromptsInMemory : public PromptFeed {
 public:
  explicit PromptsInMemory(std::vector<std::vector<int32_t>> prompts) : prompts_(std::move(prompts)) {}

  Status take(Prompt& prompt, bool /*wait*/) override {
    if (next_ == prompts_.size()) return Status::end;
    prompt.number = static_cast<int64_t>(next_);
    prompt.tokens = prompts_[next_++];
    return Status::ready;
  }

 private:
  std::vector<std::vector<int32_t>> prompts_;
  size_t next_ = 0;
};

/// A path through a network as the tests compare it: to the bit.
struct PathOutput {
  std::vector<int32_t> choices;
  double score = 0;
  double channel = 0;
  double log_prob = 0;
  int64_t words = 0;
  int64_t unknown = 0;
  bool operator==(const PathOutput&) const = default;
};

struct WordProbability {
  int32_t word = 0;
  double log_prob = 0;
  bool operator==(const WordProbability&) const = default;
};

/// Keeps everything, by input.
class Results : public ResultSink {
 public:
  struct Block {
    int64_t number = 0;
    std::vector<Output> outputs;
    std::vector<std::vector<double>> token_log_probs;
    std::vector<WordProbability> next;
    std::vector<PathOutput> paths;
    std::string error;
    bool operator==(const Block&) const = default;
  };
  std::vector<Block> blocks;

  void begin(const Prompt& prompt, int64_t hypotheses) override {
    blocks.push_back({prompt.number, {}, {}, {}, {}, {}});
    announced_ = hypotheses;
  }
  void hypothesis(const Prompt& /*prompt*/, const Hypothesis& h) override {
    blocks.back().outputs.push_back({{h.tokens.begin(), h.tokens.end()}, h.log_prob, h.score, h.finished});
    blocks.back().token_log_probs.emplace_back(h.token_log_probs.begin(), h.token_log_probs.end());
  }
  void path(const Prompt& /*prompt*/, const NetworkPath& p) override {
    blocks.back().paths.push_back(
        {{p.choices.begin(), p.choices.end()}, p.score, p.channel, p.log_prob, p.words, p.unknown});
  }
  void bad_line(const Prompt& prompt) override {
    blocks.push_back({prompt.number, {}, {}, {}, {}, prompt.error});
  }
  void end(const Prompt& prompt) override {
    if (prompt.number != blocks.back().number ||
        announced_ != static_cast<int64_t>(blocks.back().outputs.size() + blocks.back().paths.size())) {
      throw std::logic_error("a block that isn't what was announced");
    }
  }
  void next_words(const Prompt& prompt, std::span<const Candidate> words) override {
    blocks.push_back({prompt.number, {}, {}, {}, {}, {}});
    for (const Candidate& word : words) blocks.back().next.push_back({word.word, word.score});
  }

 private:
  int64_t announced_ = 0;
};

inline Results decode(const Scorer& scorer, const DecoderSettings& settings,
                      std::vector<std::vector<int32_t>> prompts, int threads = 1) {
  ThreadPool pool(threads);
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings);
  PromptsInMemory feed(std::move(prompts));
  Results results;
  decoder.run(feed, results);
  return results;
}

}  // namespace hsm::testing
