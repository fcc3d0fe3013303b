#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "cli/program.h"
#include "cli/sample_model.h"
#include "config/config_file.h"
#include "model/model_directory.h"

namespace hsm {
namespace {

using test::Outcome;
using test::run_program;
using testing::HasSubstr;

class Info : public testing::Test {
 protected:
  Info() { test::write_sample_model(folder_.path() / "model"); }

  [[nodiscard]] nlohmann::json json(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"info", "--format", "jsonl", "--model", folder_ / "model"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  test::TemporaryFolder folder_;
};

TEST_F(Info, CountsParametersAndClasses) {
  const SavedModel model = open_model(folder_.path() / "model");
  const auto info = json({"--verify"});
  int64_t parameters = 0;
  for (const auto& shape : info["tensors"]) {
    int64_t count = 1;
    for (const auto& size : shape) count *= size.get<int64_t>();
    parameters += count;
  }
  EXPECT_EQ(info["parameters"], parameters);
  EXPECT_EQ(info["words"], model.vocabulary.size());
  EXPECT_EQ(info["clusters"], 3);
  EXPECT_EQ(info["hidden"], (std::vector<int>{7, 5}));
  EXPECT_EQ(info["checksum"], "ok");
  // Straight from classes.txt and vocabulary.txt.
  std::ifstream classes(folder_ / "model/classes.txt");
  std::ifstream words(folder_ / "model/vocabulary.txt");
  std::map<std::string, int64_t> sizes;
  int64_t tokens = 0;
  int64_t at_root = 0;
  std::string word;
  std::string cluster;
  int64_t count = 0;
  while (classes >> word >> cluster && words >> word >> count) {
    ++sizes[cluster];
    tokens += count;
    if (cluster == "-") at_root += count;
  }
  EXPECT_EQ(info["shortlist"], sizes["-"]);
  EXPECT_EQ(info["smallest_cluster"], std::min({sizes["0"], sizes["1"], sizes["2"]}));
  EXPECT_EQ(info["largest_cluster"], std::max({sizes["0"], sizes["1"], sizes["2"]}));
  EXPECT_DOUBLE_EQ(info["mean_cluster"], static_cast<double>(sizes["0"] + sizes["1"] + sizes["2"]) / 3);
  EXPECT_DOUBLE_EQ(info["root_token_share"], static_cast<double>(at_root) / static_cast<double>(tokens));
}

TEST_F(Info, TellsHowTrainingWent) {
  const auto info = json();
  EXPECT_EQ(info["train_perplexity"], 20.5);
  EXPECT_EQ(info["valid_perplexity"], 21.25);
  EXPECT_EQ(info["best_epoch"], 1);
  EXPECT_EQ(info["test_perplexity"], 23.75);
  EXPECT_EQ(info["training"]["finished"], true);
  EXPECT_EQ(info["training"]["epochs"], 2);
  EXPECT_EQ(info["training"]["steps"], 20);
  EXPECT_EQ(info["training"]["reason"], "epochs");
  EXPECT_EQ(parse_config(info["config"].dump(), "info", "/"),
            load_config(folder_.path() / "model/config.json"));
}

TEST_F(Info, ShowsTheSameToPeople) {
  const Outcome outcome = run_program({"info", "--model", folder_ / "model"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"lstm, layers of 7 and 5, embedding 6", "3 clusters",
                           "finished: 2 epochs, 20 steps, 1m05s (ended by epochs)",
                           "train 20.50, validation 21.25 (best, epoch 1), test 23.75"}) {
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }
}

TEST_F(Info, TellsThatTrainingGoesOn) {
  const std::string metrics = read_file(folder_ / "model/metrics.jsonl");
  folder_.write("model/checkpoints/step-000000020.safetensors", "");
  // A kill within a write leaves half a line.
  folder_.write("model/metrics.jsonl",
                metrics.substr(0, metrics.find("{\"event\":\"done\"")) + "{\"event\":\"va");
  const Outcome outcome = run_program({"info", "--model", folder_ / "model"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("not finished: 2 epochs, 20 steps, 4s; 1 checkpoint; go on with hsm train --resume"));
  EXPECT_THAT(outcome.out, HasSubstr("test not measured"));
}

TEST_F(Info, TellsWhatTheLogitsWereScaledBy) {
  EXPECT_TRUE(json()["root_scale"].is_null());
  const SavedModel model = open_model(folder_.path() / "model");
  save_weights(model.directory, model.shape, model.layout, model.vocabulary, model.weight_view(),
               {{"root_scale", "0.875"}, {"cluster_scale", "0.8125"}});
  EXPECT_EQ(json()["root_scale"], 0.875);
  EXPECT_EQ(json()["cluster_scale"], 0.8125);
  EXPECT_THAT(run_program({"info", "--model", folder_ / "model"}).out,
              HasSubstr("trained logits times 0.875 at the root, 0.812 within clusters"));
}

TEST_F(Info, DoesWithoutMetrics) {
  std::filesystem::remove(folder_.path() / "model/metrics.jsonl");
  const Outcome outcome = run_program({"info", "--model", folder_ / "model"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("unknown: there is no metrics.jsonl"));
}

TEST_F(Info, FindsTheModelByItsConfiguration) {
  folder_.write("recipes/r.json", R"({"data": {"train": "t"}, "output": {"directory": "../model"}})");
  const Outcome outcome = run_program({{"info", "--config", "recipes/r.json"}, "", folder_.path(), {}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("3 clusters"));
}

TEST_F(Info, WritesToAFile) {
  const Outcome outcome =
      run_program({"info", "--model", folder_ / "model", "--output", folder_ / "info.txt"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(read_file(folder_ / "info.txt"), run_program({"info", "--model", folder_ / "model"}).out);
}

TEST_F(Info, EndsQuietlyWhenNobodyReads) {
  const std::string command = std::string("set -o pipefail; ") + HSM_PROGRAM + " info --model '" +
                              (folder_ / "model") + "' 2> '" + (folder_ / "err") +
                              "' | (exec <&-; sleep 0.2)";
  const std::string script = folder_.write("pipe.bash", command + "\n");
  if (std::system("bash -c true") != 0) GTEST_SKIP() << "bash is not installed";
  EXPECT_EQ(std::system(("bash '" + script + "'").c_str()), 0);
  EXPECT_EQ(read_file(folder_ / "err"), "");
}

TEST_F(Info, SaysWhenTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Outcome outcome = run_program({"info", "--model", folder_ / "model", "--output", "/dev/full"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace hsm
