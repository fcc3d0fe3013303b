#include <gtest/gtest.h>

#include "cli/malformed.h"

namespace hsm::test {
namespace {

TEST(Malformed, CommandLines) {
  expect_refusals({
      {"no subcommand", 2, {"no subcommand", "hsm --help"}, {}},
      {"unknown subcommand", 2, {"inof", "did you mean info?"}, {"inof"}},
      {"unknown option of the program", 2, {"--versio", "did you mean --version?"}, {"--versio"}},
      {"unknown option of a subcommand",
       2,
       {"--modle", "hsm info", "did you mean --model?"},
       {"info", "--modle", "@/model"}},
      {"option with a value that is unknown",
       2,
       {"--frmat: ", "--format"},
       {"info", "--model", "@/model", "--frmat=text"}},
      {"argument that nothing takes", 2, {"extra"}, {"info", "--model", "@/model", "extra"}},
      {"option before the subcommand", 2, {"--model"}, {"--model", "@/model", "info"}},
      {"missing value", 2, {"--model"}, {"info", "--model"}},
      {"no model", 2, {"--model DIR is missing"}, {"info"}},
      {"model twice",
       2,
       {"--model", "--config"},
       {"info", "--model", "@/model", "--config", "@/config.json"}},
      {"value that is not offered",
       2,
       {"--format", "yaml"},
       {"info", "--model", "@/model", "--format", "yaml"}},
      {"unknown log level",
       2,
       {"--log-level", "\"loud\"", "warning"},
       {"info", "--log-level", "loud", "--model", "@/model"}},
      {"flag with a value", 2, {"--verify"}, {"info", "--model", "@/model", "--verify=maybe"}},
      {"unknown shell", 2, {"csh"}, {"completion", "csh"}},
      {"output into a folder that is not there",
       4,
       {"@/none/out.txt"},
       {"info", "--model", "@/model", "--output", "@/none/out.txt"}},
      {"output that is a folder", 4, {"@/model"}, {"info", "--model", "@/model", "--output", "@/model"}},
  });
}

}  // namespace
}  // namespace hsm::test
