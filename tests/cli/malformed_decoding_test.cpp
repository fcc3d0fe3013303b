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
      decode("end of sentence in a prompt", 3, {"standard input:1", "</s>"}, {}, "the </s> cat\n"),
  });
}

}  // namespace
}  // namespace hsm::test
