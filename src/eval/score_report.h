#pragma once
#include <string>
#include <string_view>

#include "eval/line_scorer.h"
#include "eval/scoring.h"

namespace hsm {

enum class ScoreUnit { corpus, sentence, word };
enum class ScoreFormat { text, jsonl };
enum class LogBase { e, two, ten };

struct ReportOptions {
  ScoreUnit by = ScoreUnit::corpus;
  ScoreFormat format = ScoreFormat::text;
  LogBase base = LogBase::e;
  Context context = Context::stream;
  bool several_files = false;  ///< lines and summaries name their file, and a total follows
};

/// What `hsm score` prints, piece by piece, each with its line end; docs/scoring.md describes both formats.
class ScoreReport {
 public:
  explicit ScoreReport(const ReportOptions& options);

  /// Comes first: base, context and columns. Empty for jsonl.
  [[nodiscard]] std::string header() const;
  /// One line of text, by the unit asked for; empty by corpus. A malformed one has an error, or empty
  /// columns.
  [[nodiscard]] std::string line(std::string_view file, const ScoredLine& line) const;
  /// Sums of a file.
  [[nodiscard]] std::string summary(std::string_view file, const CorpusScore& score) const;
  /// Sums of all files; empty when there is only one.
  [[nodiscard]] std::string total(const CorpusScore& score) const;

 private:
  [[nodiscard]] double in_base(double log_prob) const;
  [[nodiscard]] std::string text_line(std::string_view file, const ScoredLine& line) const;
  [[nodiscard]] std::string text_words(std::string_view file, const ScoredLine& line) const;
  [[nodiscard]] std::string text_summary(std::string_view label, const CorpusScore& score) const;
  [[nodiscard]] std::string json_line(std::string_view file, const ScoredLine& line) const;
  [[nodiscard]] std::string json_summary(std::string_view file, const CorpusScore& score) const;

  ReportOptions options_;
  double unit_;  ///< natural logarithm of the base
};

}  // namespace hsm
