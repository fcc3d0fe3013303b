#pragma once
#include "decode/output.h"

namespace hsm {

class TextWriter : public ResultWriter {
 public:
  using ResultWriter::ResultWriter;
  void begin(const Prompt& prompt, int64_t hypotheses) override;
  void hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) override;
  void path(const Prompt& prompt, const NetworkPath& path) override;
  void end(const Prompt& prompt) override;
  void next_words(const Prompt& prompt, std::span<const Candidate> words) override;
  void bad_line(const Prompt& prompt) override;

 private:
  void append_line_number(const Prompt& prompt);
};

class JsonLinesWriter : public ResultWriter {
 public:
  using ResultWriter::ResultWriter;
  void begin(const Prompt& prompt, int64_t hypotheses) override;
  void hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) override;
  void path(const Prompt& prompt, const NetworkPath& path) override;
  void end(const Prompt& prompt) override;
  void next_words(const Prompt& prompt, std::span<const Candidate> words) override;
  void bad_line(const Prompt& prompt) override;

 private:
  void append_prompt(const Prompt& prompt);
  void append_string(std::string_view text);
  /// A comma before every item but the first of a list.
  void separate(bool& first);

  bool first_hypothesis_ = true;
};

/// Best words have no line of this format: next_words() is a fault of the program.
class MosesWriter : public ResultWriter {
 public:
  using ResultWriter::ResultWriter;
  void begin(const Prompt& prompt, int64_t hypotheses) override;
  void hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) override;
  void path(const Prompt& prompt, const NetworkPath& path) override;
  void end(const Prompt& prompt) override;
  void next_words(const Prompt& prompt, std::span<const Candidate> words) override;
  void bad_line(const Prompt& prompt) override;

 private:
  void append_field(std::string_view text);
};

}  // namespace hsm
