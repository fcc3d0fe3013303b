#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "cli/bad_line_warnings.h"
#include "decode/decoder.h"
#include "decode/result.h"

namespace hsm::cli {

/// Passes results on, and warns of what a reader of plain text output couldn't see.
class WarningSink : public ResultSink {
 public:
  /// `input` names the input in messages.
  WarningSink(ResultSink& sink, std::string input);

  void begin(const Prompt& prompt, int64_t hypotheses) override;
  void hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) override;
  void path(const Prompt& prompt, const NetworkPath& path) override;
  void end(const Prompt& prompt) override;
  void next_words(const Prompt& prompt, std::span<const Candidate> words) override;
  void bad_line(const Prompt& prompt) override;
  /// After the last result.
  void summarise() const;

 private:
  void warn_of_unknown_words(const Prompt& prompt);

  ResultSink* sink_;
  std::string input_;
  int64_t unknown_lines_ = 0;
  int64_t unknown_words_ = 0;
  BadLineWarnings bad_lines_;
};

/// What --stats prints on standard error. `model_bytes` are those of the loaded model.
void print_stats(const Decoder& decoder, uint64_t budget, uint64_t model_bytes, double seconds);

}  // namespace hsm::cli
