#include <gtest/gtest.h>

#include "cli/malformed.h"

namespace hsm::test {
namespace {

// A configuration in place of the good one, read to find the model directory.
Malformed config(const std::string& name, const std::string& text, std::vector<std::string> places,
                 size_t problems = 1) {
  return {name,
          2,
          std::move(places),
          {"info", "--config", "@/config.json"},
          [text](const TemporaryFolder& folder) { folder.write("config.json", text); },
          "",
          problems};
}

TEST(Malformed, Configurations) {
  expect_refusals({
      config("empty file", "", {"@/config.json:1:1"}),
      config("unclosed object", "{\n  \"model\": {\n", {"@/config.json:3:1"}),
      config("trailing comma", "{\"model\": {\"layers\": 2,}}", {"@/config.json:1:24"}),
      config("text after the object", "{}\n{}", {"@/config.json:2:1"}),
      config("not UTF-8", "{\"model\": {\"cell\": \"lst\xe9\"}}", {"@/config.json:1:24", "UTF-8"}),
      config("no object", "[]", {"@/config.json: [] given"}),
      config("key given twice", R"({"model": {"layers": 1, "layers": 2}})", {"model.layers: given twice"}),
      config("misspelt section", R"({"trian": {}})", {"trian", "\"train\""}),
      config("misspelt key", R"({"train": {"optimizer": {"learningrate": 1}}})",
             {"train.optimizer.learningrate", "\"learning_rate\""}),
      config("key of another section", R"({"train": {"beam": 4}})", {"train.beam", "\"decode.beam\""}),
      config("string for a number", R"({"train": {"epochs": "3"}})", {"train.epochs: \"3\" given"}),
      config("number for a section", R"({"model": 3})", {"model: 3 given, expected an object"}),
      config("fraction for an integer", R"({"train": {"batch": 2.5}})", {"train.batch: 2.5 given"}),
      config("out of range", R"({"model": {"dropout": {"hidden": 1}}})",
             {"model.dropout.hidden: 1 given", "[0, 1)"}),
      config("unknown name", R"({"model": {"cell": "lsmt"}})", {"model.cell: \"lsmt\" given", "\"lstm\""}),
      config("bad size", R"({"decode": {"memory_budget": "lots"}})", {"decode.memory_budget: \"lots\""}),
      config("bad device", R"({"runtime": {"device": "tpu"}})", {"runtime.device: \"tpu\""}),
      config("number too large", R"({"train": {"clip_norm": 1e999}})", {"@/config.json"}),
      config("list of the wrong length", R"({"model": {"layers": 3, "hidden": [4, 4]}})",
             {"model.hidden", "3 layers"}),
      config("values that contradict", R"({"decode": {"beam": 2, "nbest": 5}})",
             {"decode.nbest: 5 given", "decode.beam"}),
      config("no output directory", R"({"data": {"train": "train.txt"}})", {"output.directory: missing"}),
      config("several problems", R"({"model": {"layers": 0, "hiden": 3}, "train": {"seed": -1}})",
             {"model.layers: 0", "model.hiden", "train.seed: -1"}, 3),
      {"no such file", 3, {"@/none.json"}, {"info", "--config", "@/none.json"}},
      {"a folder for a file", 3, {"@/model", "folder"}, {"info", "--config", "@/model"}},
  });
}

}  // namespace
}  // namespace hsm::test
