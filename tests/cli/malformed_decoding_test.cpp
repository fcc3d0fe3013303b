#include <gtest/gtest.h>

#include "cli/malformed.h"

namespace hsm::test {
namespace {

Malformed decode(const std::string& name, int code, std::vector<std::string> places,
                 std::vector<std::string> more, const std::string& input = "the cat\n") {
  more.insert(more.begin(), {"decode", "--model", "@/model"});
  return {name, code, std::move(places), std::move(more), [](const TemporaryFolder&) {}, input};
}

TEST(Malformed, Decodings) {
  expect_refusals({
      {"no model", 2, {"--model DIR is missing"}, {"decode"}},
      decode("misspelt option", 2, {"--bema", "did you mean --beam?"}, {"--bema", "4"}),
      decode("empty beam", 2, {"--beam"}, {"--beam", "0"}),
      decode("beam that is no number", 2, {"--beam", "wide"}, {"--beam", "wide"}),
      decode("more hypotheses than the beam", 2, {"--nbest 3", "1 to 2"}, {"--beam", "2", "--nbest", "3"}),
      decode("least length above the largest", 2, {"--min-length"},
             {"--min-length", "5", "--max-length", "4"}),
      decode("budget that is no size", 2, {"--memory-budget", "\"much\""}, {"--memory-budget", "much"}),
      decode("budget that is too small", 4, {"--memory-budget"}, {"--memory-budget", "1KiB"}),
      decode("unknown format", 2, {"--format", "xml"}, {"--format", "xml"}),
      decode("temperature of nothing", 2, {"--temperature"}, {"--sample", "1", "--temperature", "0"}),
      decode("input that is not there", 3, {"@/none.txt"}, {"--input", "@/none.txt"}),
      decode("prompt that is not UTF-8", 3, {"standard input:1", "UTF-8"}, {}, "\xff\n"),
      decode("unknown way with bad lines", 2, {"--on-bad-line", "skip"}, {"--on-bad-line", "skip"}),
      decode("end of sentence in a prompt", 3, {"standard input:1", "</s>"}, {}, "the </s> cat\n"),
  });
}

Malformed network(const std::string& name, int code, std::vector<std::string> places, const std::string& line,
                  std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--candidates", "-"});
  return decode(name, code, std::move(places), more, line + "\n");
}

TEST(Malformed, Candidates) {
  expect_refusals({
      network("line that is no JSON", 3, {"standard input:1", "JSON"}, "the cat"),
      network("line that is no object", 3, {"standard input:1", "object"}, "[[\"the\"]]"),
      network("no positions", 3, {"standard input:1", "positions: missing"}, "{}"),
      network("position without alternatives", 3, {"standard input:1", "positions[0]"},
              "{\"positions\":[[]]}"),
      network("alternative without a score", 3, {"standard input:1", "positions[0][0].score"},
              "{\"positions\":[[{\"text\":\"the\"}]]}"),
      network("score that is no number", 3, {"standard input:1", "positions[0][0].score", "\"high\""},
              "{\"positions\":[[{\"text\":\"the\",\"score\":\"high\"}]]}"),
      network("end of sentence in an alternative", 3, {"standard input:1", "</s>"},
              "{\"positions\":[[\"a </s> b\"]]}"),
      network("too many positions", 3, {"standard input:1", "at most 1", "--max-positions"},
              "{\"positions\":[[\"a\"],[\"b\"]]}", {"--max-positions", "1"}),
      network("no room for a position", 2, {"--max-positions 0"}, "{}", {"--max-positions", "0"}),
      network("negative weight of the model", 2, {"--lm-weight -1"}, "{}", {"--lm-weight", "-1"}),
      network("bonus that is no number", 2, {"--word-bonus", "much"}, "{}", {"--word-bonus", "much"}),
      network("length for paths", 2, {"--max-length"}, "{}", {"--max-length", "9"}),
      network("budget too small for paths", 4, {"--memory-budget", "at least"}, "{}",
              {"--memory-budget", "1KiB"}),
      decode("candidates that are not there", 3, {"@/none.jsonl"}, {"--candidates", "@/none.jsonl"}),
      decode("weight of the model without candidates", 2, {"--lm-weight"}, {"--lm-weight", "1"}),
  });
}

}  // namespace
}  // namespace hsm::test
