#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "cli/malformed.h"

namespace hsm::test {
namespace {

// hsm train with settings on top of the good configuration, into a folder that holds nothing yet.
Malformed train(const std::string& name, int code, std::vector<std::string> places,
                std::vector<std::string> settings) {
  std::vector<std::string> arguments{"train", "--config", "@/config.json"};
  for (std::string& setting : settings) {
    if (!setting.starts_with('-')) arguments.emplace_back("--set");
    arguments.push_back(std::move(setting));
  }
  return {name, code, std::move(places), std::move(arguments)};
}

TEST(Malformed, Trainings) {
  Malformed resumed = train("weights for a checkpoint", 3, {"@/model/checkpoints"}, {"--resume"});
  resumed.problems = 2;  // the checkpoint is named on a line of its own
  resumed.spoil = [](const TemporaryFolder& folder) {
    folder.write("model/checkpoints/step-000000010.safetensors",
                 read_file(folder / "model/model.safetensors"));
  };
  expect_refusals({
      {"no configuration", 2, {"--config FILE is missing"}, {"train"}},
      train("setting without a value", 2, {"--set", "\"train.epochs\""}, {"train.epochs"}),
      train("misspelt setting", 2, {"--set", "train.epoch", "\"epochs\""}, {"train.epoch=3"}),
      train("setting out of range", 2, {"--set", "train.optimizer.learning_rate: 0 given"},
            {"train.optimizer.learning_rate=0"}),
      train("malformed list", 2, {"--set", "model.hidden:1:"}, {"model.hidden=[3,"}),
      train("a folder that holds a model", 2, {"@/model", "--resume"}, {}),
      train("a file for the output directory", 4, {"@/train.txt"}, {"output.directory=@/train.txt"}),
      train("validation text that is not there", 3, {"@/none.txt"},
            {"output.directory=@/new", "data.valid=@/none.txt"}),
      train("validation text without lines", 3, {"@/empty.txt"},
            {"output.directory=@/new", "data.valid=@/empty.txt"}),
      train("more streams than text", 3, {"train.batch"}, {"output.directory=@/new", "train.batch=100000"}),
      resumed,
  });
}

}  // namespace
}  // namespace hsm::test
