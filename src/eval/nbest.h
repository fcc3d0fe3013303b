#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/lines.h"
#include "text/vocabulary.h"

namespace hsm {

/// How n-best lists are written (docs/scoring.md): a hypothesis a line, or a list a line.
enum class NbestFormat { kaldi, moses, jsonl };

struct NbestHypothesis {
  std::string text;          ///< as it was written, one space between words
  double channel = 0;        ///< score that came with it
  std::vector<int32_t> ids;  ///< what the model reads: one a word, then `</s>`
  int64_t unknown = 0;       ///< words read as <unk>
  int64_t place = 0;         ///< in its list, from 0
  std::string key;           ///< kaldi: its whole key
  std::string features;      ///< moses: the third field
  std::string rest;          ///< moses: what follows the score, with its separator

  double log_prob = 0;  ///< the model's
  double score = 0;     ///< what the list is ordered by

  [[nodiscard]] int64_t words() const { return static_cast<int64_t>(ids.size()) - 1; }
};

struct NbestList {
  std::string id;       ///< kaldi, moses: what its lines share
  std::string json_id;  ///< as JSON; empty without one
  int64_t line = 0;     ///< its first
  std::string error;    ///< jsonl: what is wrong with its line, when that is reported as its result
  std::vector<NbestHypothesis> hypotheses;
};

struct NbestReaderOptions {
  NbestFormat format = NbestFormat::jsonl;
  TextOptions text;
  std::string channel_costs;  ///< kaldi: a file of channel costs, empty for none
  BadLines bad_lines = BadLines::error;
};

/// Reads n-best lists. DataError for malformed lines, "NAME:LINE: …", or, where they are reported, a list
/// with an error in jsonl; a line of the other formats is left out and told to `bad_line`.
class NbestReader {
 public:
  /// The vocabulary must outlive the object.
  NbestReader(const std::string& path, const NbestReaderOptions& options, const Vocabulary& vocabulary,
              std::function<void(const std::string& error)> bad_line);
  ~NbestReader();

  /// Adds at least one list, and those that have already arrived as long as there are fewer than
  /// `hypotheses`. False at the end; then also what was added before is complete.
  bool read(std::vector<NbestList>& lists, int64_t hypotheses);

  [[nodiscard]] const LineReader& lines() const noexcept { return reader_; }

 private:
  void take_line(std::vector<NbestList>& lists);
  void take_hypothesis(std::vector<NbestList>& lists);
  void take_json(std::vector<NbestList>& lists);
  void read_kaldi(NbestHypothesis& hypothesis, std::string& id);
  void read_moses(NbestHypothesis& hypothesis, std::string& id);
  void read_words(std::string text, NbestHypothesis& hypothesis);
  void read_cost();
  [[noreturn]] void fail(const std::string& what) const;

  LineReader reader_;
  std::unique_ptr<LineReader> costs_;
  NbestReaderOptions options_;
  const Vocabulary* vocabulary_;
  std::function<void(const std::string&)> bad_line_;
  NbestList open_;  // its last line may not have come yet; kaldi, moses
  std::string line_;
  std::string cost_line_;
  double channel_ = 0;  ///< of the line just read
  std::vector<std::string_view> words_;
};

struct NbestWeights {
  double lm_weight = 1;
  double word_bonus = 0;
  double oov_penalty = 0;
};
/// Orders a list by score = channel + lm_weight · log P + word_bonus · words − oov_penalty · unknown words,
/// the earlier first where equal.
void rescore(NbestList& list, const NbestWeights& weights);

enum class NbestOutput { kaldi, moses, jsonl, costs };

/// A rescored list as text: in its own format, in the order of its scores; or as "KEY COST" lines in the
/// order of the input, of the model's costs alone.
std::string format_nbest(const NbestList& list, NbestOutput output);

}  // namespace hsm
