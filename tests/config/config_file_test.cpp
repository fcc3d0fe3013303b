#include "config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace hsm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Config parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_config(text, "recipe.json", "/recipes", overrides);
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {},
                    ConfigUse use = ConfigUse::any) {
  try {
    parse_config(text, "recipe.json", "/recipes", overrides, use);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigFile, GivesDefaultsForWhatIsMissing) {
  EXPECT_EQ(parse("{}"), Config{});
}

TEST(ConfigFile, ReadsEveryKindOfValue) {
  const Config config = parse(R"({
    // A comment.
    "data": {"train": ["a.txt", "sub/*.gz", "/abs/b.txt"], "valid": "-", "lowercase": true, "cache": "../cache"},
    "vocabulary": {"max_size": 1e4},
    "classes": {"clusters": 12, "shortlist": "auto", "weight": "count"},
    "model": {"cell": "gru", "layers": 3, "hidden": [7, 5, 3.0], "tie_embeddings": true, "dropout": {"input": 0.25}},
    "train": {"clip_norm": 5, "seed": 18446744073709551615, "max_time": "1h30m5s", "schedule": {"name": "cosine"}},
    "runtime": {"device": "cuda:1"},
    "decode": {"memory_budget": "1.5 GiB"} /* and another */
  })");
  EXPECT_THAT(config.data.train, ElementsAre("/recipes/a.txt", "/recipes/sub/*.gz", "/abs/b.txt"));
  EXPECT_THAT(config.data.valid, ElementsAre("-"));
  EXPECT_TRUE(config.data.lowercase);
  EXPECT_EQ(config.data.cache, "/cache");
  EXPECT_EQ(config.vocabulary.max_size, 10000);
  EXPECT_EQ(config.classes.clusters, 12);
  EXPECT_EQ(config.classes.shortlist, std::nullopt);
  EXPECT_EQ(config.classes.weight, "count");
  EXPECT_EQ(config.model.cell, "gru");
  EXPECT_THAT(config.model.hidden, ElementsAre(7, 5, 3));
  EXPECT_TRUE(config.model.tie_embeddings);
  EXPECT_EQ(config.model.dropout.input, 0.25);
  EXPECT_EQ(config.train.clip_norm, 5);
  EXPECT_EQ(config.train.seed, UINT64_MAX);
  EXPECT_EQ(config.train.max_time, 5405);
  EXPECT_EQ(config.train.schedule.name, "cosine");
  EXPECT_EQ(config.runtime.device, "cuda:1");
  EXPECT_EQ(config.decode.memory_budget, uint64_t{1536} << 20);
}

TEST(ConfigFile, ReadsTheWholeRecipeOfTheDocumentation) {
  const Config config = parse(R"(
{ "data":       {"train": "ptb.train.txt", "valid": "ptb.valid.txt", "test": "ptb.test.txt", "lowercase": false},   // a path, a glob or a list
  "vocabulary": {"min_count": 1, "max_size": 0, "file": null},
  "classes":    {"method": "frequency", "weight": "sqrt", "clusters": 100, "shortlist": 0, "file": null},           // "auto": chosen
  "model":      {"cell": "lstm", "layers": 2, "hidden": 200, "embedding": 200, "tie_embeddings": false, "init_range": 0.1, "dropout": {"input": 0, "hidden": 0, "output": 0}},
  "train":      {"epochs": 13, "batch": 20, "bptt": 20, "optimizer": {"name": "sgd", "learning_rate": 1.0}, "context": "stream", "loss_reduction": "sum_over_time",
                 "schedule": {"name": "epoch_decay", "after": 4, "factor": 0.5}, "clip_norm": 5, "precision": "fp32", "seed": 1},
  "runtime":    {"device": "auto", "threads": 0},
  "decode":     {"beam": 8, "memory_budget": "256MiB"},
  "output":     {"directory": "models/ptb-small"} })");
  EXPECT_EQ(config.train.schedule.after, 4);
  EXPECT_EQ(config.output.directory, "/recipes/models/ptb-small");
  EXPECT_EQ(config.classes.shortlist, 0);
}

TEST(ConfigFile, TellsAllProblemsAtOnce) {
  const std::string message = refusal(R"({
    "data": {"train": 3, "train": "a"},
    "model": {"hiden": 200, "layers": 0, "beam": 3},
    "train": {"optimizer": {"name": "sdg"}, "epochs": "many", "clip_norm": -1, "schedule": []},
    "decode": {"memory_budget": "12 apples"},
    "extra": 1
  })",
                                      {"train.batch=0", "train.bach=1"});
  std::vector<std::string> lines;
  for (size_t at = 0; at <= message.size();) {
    const size_t end = std::min(message.find('\n', at), message.size());
    lines.push_back(message.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_THAT(lines, testing::UnorderedElementsAre(
                         "recipe.json: data.train: given twice",
                         "recipe.json: model.hiden: unknown key, did you mean \"hidden\"?",
                         "recipe.json: model.layers: 0 given, expected an integer from 1 to 64",
                         "recipe.json: model.beam: unknown key here, did you mean \"decode.beam\"?",
                         "recipe.json: train.optimizer.name: \"sdg\" given, expected \"sgd\", \"momentum\", "
                         "\"adagrad\", \"adam\", "
                         "\"adamw\" or \"asgd\"",
                         "recipe.json: train.epochs: \"many\" given, expected an integer of at least 0",
                         "recipe.json: train.clip_norm: -1 given, expected a number of at least 0",
                         "recipe.json: train.schedule: [] given, expected an object",
                         "recipe.json: decode.memory_budget: \"12 apples\" given, expected a size of at "
                         "least 1 byte such as "
                         "\"256MiB\", \"2GB\" or 4096",
                         "recipe.json: extra: unknown key, expected one of data, vocabulary, classes, model, "
                         "train, runtime, decode, "
                         "output",
                         "--set: train.batch: 0 given, expected an integer from 1 to 1048576",
                         "--set: train.bach: unknown key, did you mean \"batch\"?"));
}

TEST(ConfigFile, NamesLineAndColumnOfASyntaxError) {
  EXPECT_THAT(refusal("{\n  \"data\": {,}\n}"), HasSubstr("recipe.json:2:12: syntax error"));
  EXPECT_THAT(refusal(""), HasSubstr("recipe.json:1:1: syntax error"));
  EXPECT_THAT(refusal("{} {}"), HasSubstr("recipe.json:1:4: syntax error"));
  EXPECT_THAT(refusal("{\"data\": {\"cache\": \"\xff\"}}"),
              HasSubstr("recipe.json:1:21: malformed UTF-8 at byte 20"));
  EXPECT_THAT(refusal("{\"model\": {\"layers\": 1e999}}"), HasSubstr("recipe.json"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("nested more than 32 levels deep"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("recipe.json: [1,2] given, expected an object"));
}

TEST(ConfigFile, RefusesAKeyGivenTwiceAtAnyDepth) {
  EXPECT_EQ(refusal(R"({"train": {"schedule": {"after": 1, "factor": 0.5, "after": 1}}})"),
            "recipe.json: train.schedule.after: given twice");
  EXPECT_EQ(refusal(R"({"data": {}, "data": {}})"), "recipe.json: data: given twice");
  EXPECT_EQ(refusal("{}", {R"(train={"epochs": 1, "epochs": 2})"}), "--set: train.epochs: given twice");
}

TEST(ConfigFile, OverridesInOrder) {
  const Config config =
      parse(R"({"train": {"epochs": 3, "batch": 4}, "model": {"dropout": {"input": 0.5}}})",
            {"train.epochs=5", "train.epochs=7", "data.train=[\"x y.txt\", \"/b\"]", "data.test=2024.txt",
             "model.cell=gru", "output.directory=123", "classes.clusters=auto", "decode.memory_budget=2GB",
             "model.hidden=[3,4]", "model.dropout={\"hidden\": 0.25}", "data.cache=null", "train.max_time=2h",
             "runtime.device=cpu"});
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(config.train.epochs, 7);
  EXPECT_EQ(config.train.batch, 4);
  EXPECT_THAT(config.data.train, ElementsAre(here + "/x y.txt", "/b"));
  EXPECT_THAT(config.data.test, ElementsAre(here + "/2024.txt"));
  EXPECT_EQ(config.model.cell, "gru");
  EXPECT_EQ(config.output.directory, here + "/123");
  EXPECT_EQ(config.decode.memory_budget, 2'000'000'000);
  EXPECT_THAT(config.model.hidden, ElementsAre(3, 4));
  EXPECT_EQ(config.model.dropout.input, 0.5);
  EXPECT_EQ(config.model.dropout.hidden, 0.25);
  EXPECT_EQ(config.data.cache, "");
  EXPECT_EQ(config.train.max_time, 7200);
}

TEST(ConfigFile, NamesTheOptionForAWrongOverride) {
  EXPECT_EQ(refusal("{}", {"train.epochs=-1"}),
            "--set: train.epochs: -1 given, expected an integer of at least 0");
  EXPECT_EQ(refusal("{}", {"train.epochs="}),
            "--set: train.epochs: \"\" given, expected an integer of at least 0");
  EXPECT_EQ(refusal("{}", {"epochs"}), "--set: \"epochs\" given, expected path.to.key=value");
  EXPECT_EQ(refusal("{}", {"=3"}), "--set: \"=3\" given, expected path.to.key=value");
  EXPECT_EQ(refusal("{}", {"epochs=3"}), "--set: epochs: unknown key here, did you mean \"train.epochs\"?");
  EXPECT_EQ(refusal("{}", {"train.epochs.x=3"}),
            "--set: train.epochs.x: unknown key, train.epochs is a value");
  EXPECT_EQ(refusal("{}", {"train=3"}), "--set: train: 3 given, expected an object");
  EXPECT_EQ(refusal("{}", {"train.optimizer=adam"}),
            "--set: train.optimizer: \"adam\" given, expected an object; did you mean train.optimizer.name?");
  EXPECT_EQ(refusal("{}", {"train..epochs=3"}).substr(0, 33), "--set: train..epochs: unknown key");
  EXPECT_THAT(refusal("{}", {"model.hidden=[3,"}), HasSubstr("--set: model.hidden:1:4: syntax error"));
  // The value that makes two disagree came from --set.
  EXPECT_EQ(refusal(R"({"decode": {"beam": 2}})", {"decode.nbest=3"}),
            "--set: decode.nbest: 3 given, expected at most decode.beam, 2");
}

TEST(ConfigFile, RefusesValuesThatContradictEachOther) {
  const auto expect = [](const std::string& text, const std::string& start) {
    EXPECT_EQ(refusal(text).substr(0, start.size()), start);
  };
  expect(R"({"model": {"layers": 2, "hidden": [1, 2, 3]}})", "recipe.json: model.hidden: a list of 3 given");
  expect(R"({"model": {"layers": 2, "hidden": [1]}})", "recipe.json: model.hidden: a list of 1 given");
  expect(R"({"classes": {"method": "file"}})", "recipe.json: classes.file: missing");
  expect(R"({"classes": {"file": "c.txt"}})", "recipe.json: classes.file: given, but");
  expect(R"({"classes": {"clusters": 90, "shortlist": 20}, "vocabulary": {"max_size": 100}})",
         "recipe.json: classes.clusters: 90 clusters");
  expect(R"({"vocabulary": {"file": "v.txt", "min_count": 2}})",
         "recipe.json: vocabulary.min_count: 2 given beside");
  expect(R"({"vocabulary": {"file": "v.txt", "max_size": 9}})",
         "recipe.json: vocabulary.max_size: 9 given beside");
  expect(R"({"data": {"train": "-", "valid": "-"}})", "recipe.json: data.valid: \"-\" given more than once");
  expect(R"({"data": {"train": ["-", "a", "-"]}})", "recipe.json: data.train: \"-\" given more than once");
  expect(R"({"data": {"train": "-"}, "vocabulary": {"file": "-"}})",
         "recipe.json: vocabulary.file: \"-\" given more than once");
  expect(R"({"data": {"train": "-"}, "classes": {"method": "file", "file": "-"}})",
         "recipe.json: classes.file: \"-\" given more than once");
  expect(R"({"classes": {"shortlist": 100}, "vocabulary": {"max_size": 100}})",
         "recipe.json: classes.shortlist: 1 clusters and a shortlist of 100");
  expect(R"({"train": {"epochs": 0}})", "recipe.json: train.epochs: 0 given without");
  expect(R"({"train": {"epochs": 0, "max_time": "1h", "schedule": {"name": "cosine"}}})",
         "recipe.json: train.schedule.name: \"cosine\" given, but its end");
  expect(R"({"data": {"valid": "v"}, "model": {"tie_embeddings": true}, "train": {"calibrate": true}})",
         "recipe.json: train.calibrate: true given with model.tie_embeddings");
  expect(
      R"({"train": {"schedule": {"name": "cosine", "minimum": 2}}})",
      "recipe.json: train.schedule.minimum: 2.0 given, expected at most train.optimizer.learning_rate, 1.0");
  expect(R"({"decode": {"min_length": 5, "max_length": 4}})", "recipe.json: decode.min_length: 5 given");
}

TEST(ConfigFile, RefusesToTrainWithoutTheValidationsThatAreAskedFor) {
  const auto expect = [](const std::string& text, const std::string& message) {
    EXPECT_EQ(refusal(text, {"data.train=t", "output.directory=o"}, ConfigUse::training),
              "recipe.json: " + message);
    // A model that was trained so can be used when its validation text is gone.
    EXPECT_EQ(refusal(text), "accepted");
  };
  expect(R"({"train": {"schedule": {"name": "plateau"}}})",
         R"(train.schedule.name: "plateau" given, but there are no validations; set data.valid)");
  expect(R"({"train": {"early_stopping": 3}})",
         "train.early_stopping: 3 given, but there are no validations; set data.valid");
  expect(R"({"train": {"optimizer": {"name": "asgd"}}})",
         "train.optimizer.average_patience: 5 given, but there are no validations to begin averaging after; "
         "set it to 0, or set data.valid");
  expect(R"({"train": {"calibrate": true}})",
         "train.calibrate: true given, but there is no validation text to fit the scales to; set data.valid");
  expect(R"({"data": {"valid": "v"}, "train": {"early_stopping": 3, "validate_every": {}}})",
         "train.early_stopping: 3 given, but there are no validations; set train.validate_every");
}

TEST(ConfigFile, DoesNotBlameWhatFollowsFromAWrongValue) {
  EXPECT_EQ(refusal(R"({"model": {"layers": "two", "hidden": [1, 2, 3]}})"),
            "recipe.json: model.layers: \"two\" given, expected an integer from 1 to 64");
}

TEST(ConfigFile, AsksForWhatTrainingCannotDoWithout) {
  EXPECT_EQ(refusal("{}", {}, ConfigUse::training),
            "recipe.json: data.train: missing, expected the path of the training text\n"
            "recipe.json: output.directory: missing, expected the path of a folder");
  EXPECT_EQ(refusal("{}", {"data.train=a", "output.directory=b"}, ConfigUse::training), "accepted");
}

TEST(ConfigFile, AnObjectForAnIntervalTurnsTheOtherUnitsOff) {
  const Config by_file = parse(R"({"train": {"validate_every": {"steps": 500}}})");
  EXPECT_EQ(by_file.train.validate_every, (IntervalConfig{0, 500, 0}));
  const Config by_option = parse("{}", {"train.validate_every.steps=500"});
  EXPECT_EQ(by_option.train.validate_every, (IntervalConfig{1, 500, 0}));
}

TEST(ConfigFile, DumpsWhatItReadsBack) {
  Config config;
  config.data.train = {"/a/b.txt", "/a/*.gz", "-"};
  config.data.cache = "/c";
  config.vocabulary.max_size = 1234567;
  config.classes.clusters = 17;
  config.model.layers = 3;
  config.model.hidden = {5, 7, 11};
  config.model.init_range = 0.1 + 0.2;
  config.model.dropout = {0.1, 1.0 / 3, 1e-7, 0.999999999999, 0.25, true};
  config.train.optimizer.epsilon = 5e-324;
  config.train.seed = UINT64_MAX - 1;
  config.train.validate_every = {0, 7, 0.1};
  config.train.max_time = 3661;
  config.decode.memory_budget = (uint64_t{1} << 52) + 1;
  config.output.directory = "/o/ü \"x\"";
  const std::string text = dump_config(config);
  EXPECT_EQ(parse_config(text, "dump", "/elsewhere"), config);
  EXPECT_EQ(dump_config(parse_config(text, "dump", "/elsewhere")), text);
  EXPECT_EQ(parse_config(dump_config(Config{}), "dump", "/"), Config{});
}

TEST(ConfigFile, ReadsPathsFromTheFilesFolder) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "config_paths";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "real" / "inner");
  std::filesystem::create_directory_symlink(folder / "real" / "inner", folder / "link");
  write_file(folder / "link" / "r.json", R"({"data": {"train": "../t.txt"}})");
  const auto real = std::filesystem::weakly_canonical(folder / "real");
  // ".." is the parent of the folder that the file really lies in.
  EXPECT_THAT(load_config(folder / "link" / "r.json").data.train, ElementsAre((real / "t.txt").string()));
  EXPECT_THROW(load_config(folder / "none.json"), DataError);
}

}  // namespace
}  // namespace hsm
