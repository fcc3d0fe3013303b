#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "cli/program.h"
#include "cli/running_program.h"
#include "train/made_up_text.h"
#include "train/temporary_folder.h"

// hsm train as a user, a job scheduler and a power cut meet it.
namespace hsm::test {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A recipe in a folder of its own, that saves and validates often and takes a second or less.
class Training {
 public:
  Training() {
    write_file(path("train.txt"), made_up_text(1500, 1));
    write_file(path("valid.txt"), made_up_text(40, 2));
    write_file(path("test.txt"), made_up_text(40, 3));
    write_file(config, R"({
      "data": {"train": "train.txt", "valid": "valid.txt", "test": "test.txt"},
      "classes": {"clusters": 4, "shortlist": 3},
      "model": {"layers": 2, "hidden": [24, 16], "tie_embeddings": true, "dropout": {"output": 0.2}},
      "train": {"epochs": 3, "batch": 4, "bptt": 8, "clip_norm": 1,
                "optimizer": {"name": "momentum", "learning_rate": 0.3, "weight_decay": 1e-4},
                "validate_every": {"epochs": 1, "steps": 37}, "checkpoint_every": {"epochs": 1, "steps": 10}},
      "runtime": {"threads": 1},
      "output": {"directory": "model", "log_every": 50}
    })");
  }

  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"train", "--config", config};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  [[nodiscard]] std::string log() const { return path("log"); }
  /// What must not depend on when a run was stopped: the model's bytes, and the metrics without times.
  [[nodiscard]] std::string result() const {
    std::string result = read_file(model + "/model.safetensors");
    std::istringstream lines(read_file(model + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      auto event = nlohmann::json::parse(line);
      for (const char* key : {"seconds", "words_per_second", "peak_memory_bytes"}) event.erase(key);
      result += event.dump() + '\n';
    }
    return result;
  }
  [[nodiscard]] bool has_checkpoint_after(int64_t step) const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(model + "/checkpoints", error)) {
      const std::string name = entry.path().filename();
      if (name.ends_with(".safetensors") && std::stoll(name.substr(5)) > step) return true;
    }
    return false;
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  hsm::TemporaryFolder folder_;

 public:
  const std::string config = path("config.json");
  const std::string model = path("model");
};

/// Waits until `there` holds, for as long as the program runs.
bool wait_for(RunningProgram& program, const std::function<bool()>& there) {
  while (!there()) {
    if (!program.running()) return there();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(Train, LeavesAModelAndSpeaksOnStandardErrorOnly) {
  const Training training;
  const Outcome outcome = run_program(training.command());
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("epoch 3/3: train perplexity"));
  EXPECT_THAT(outcome.err, HasSubstr("words/s"));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("\r")));  // no progress line without a terminal
  EXPECT_THAT(training.result(), HasSubstr("\"event\":\"done\""));
}

TEST(Train, DrawsALineOfProgressOnATerminal) {
  const Training training;
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0)
    GTEST_SKIP() << "no terminals here";
  ::setenv("TERM", "xterm", 1);
  RunningProgram program(training.command({"--set", "train.epochs=1"}), ::ptsname(terminal));
  std::string seen;
  std::array<char, 4096> buffer{};
  // Reading fails once the program, the only one that has the other end open, is gone.
  for (ssize_t count = 0; (count = ::read(terminal, buffer.data(), buffer.size())) > 0;) {
    seen.append(buffer.data(), static_cast<size_t>(count));
  }
  ::close(terminal);
  EXPECT_EQ(program.wait(), 0);
  EXPECT_THAT(seen,
              ::testing::ContainsRegex("\r.*epoch 1/1 \\[=*>? *\\] +[0-9]+%.*words/s +loss .*perplexity"));
  EXPECT_THAT(seen, ::testing::Not(HasSubstr("window 50/")));
  EXPECT_THAT(seen, HasSubstr("epoch 1/1: train perplexity"));
}

TEST(Train, ReadsStandardInputOnceAndGoesOnWithoutIt) {
  const Training whole;
  ASSERT_EQ(run_program(whole.command({"--set", "train.max_steps=40"})).code, 0);
  const Training piped;
  const std::vector<std::string> first{"--set", "data.train=-", "--set", "train.max_steps=20"};
  EXPECT_EQ(run_program(piped.command(first), read_file(piped.path("train.txt"))).code, 0);
  EXPECT_EQ(
      run_program(piped.command({"--set", "data.train=-", "--set", "train.max_steps=40", "--resume"})).code,
      0);
  EXPECT_EQ(read_file(piped.model + "/train.tokens").size(), read_file(whole.model + "/train.tokens").size());
  EXPECT_THAT(piped.result(), HasSubstr("\"steps\":40"));
}

TEST(Train, StopsOnSignalsAndGoesOnToTheSameBits) {
  const Training whole;
  ASSERT_EQ(run_program(whole.command()).code, 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    const Training training;
    RunningProgram program(training.command(), training.log());
    ASSERT_TRUE(wait_for(program, [&] { return training.has_checkpoint_after(20); }));
    program.send(signal);
    EXPECT_EQ(program.wait(), 75);
    EXPECT_THAT(read_file(training.log()), HasSubstr("checkpoint of step"));
    EXPECT_EQ(run_program(training.command({"--resume"})).code, 0);
    EXPECT_EQ(training.result(), whole.result());
  }
}

TEST(Train, SavesACheckpointOnSigusr1AndGoesOn) {
  const Training training;
  const std::vector<std::string> rarely{"--set", "train.checkpoint_every={\"epochs\": 50}", "--set",
                                        "train.validate_every={\"epochs\": 50}"};
  RunningProgram program(training.command(rarely), training.log());
  ASSERT_TRUE(
      wait_for(program, [&] { return read_file(training.log()).find("window 50/") != std::string::npos; }));
  program.send(SIGUSR1);
  ASSERT_TRUE(wait_for(program, [&] { return training.has_checkpoint_after(0); }));
  EXPECT_EQ(program.wait(), 0);
  EXPECT_THAT(read_file(training.log()), HasSubstr("checkpoint of step"));
}

// HSM_TEST_KILLS in the environment sets how often; the suite's few keep it quick.
TEST(Train, AKillAtAnyMomentLeavesTheSameBits) {
  const char* asked = std::getenv("HSM_TEST_KILLS");
  const int kills = asked == nullptr ? 4 : std::atoi(asked);
  const Training whole;
  const Clock::time_point start = Clock::now();
  ASSERT_EQ(run_program(whole.command()).code, 0);
  const std::chrono::duration<double> duration = Clock::now() - start;
  std::mt19937 random(std::random_device{}());
  for (int kill = 0; kill < kills; ++kill) {
    const Training training;
    const auto moment = duration * std::uniform_real_distribution<double>(0, 1)(random);
    {
      RunningProgram program(training.command({"--resume"}), training.log());
      std::this_thread::sleep_for(moment);
      program.send(SIGKILL);
      program.wait();
    }
    EXPECT_EQ(run_program(training.command({"--resume"})).code, 0);
    ASSERT_EQ(training.result(), whole.result()) << "killed after " << moment.count() << " s";
  }
}

TEST(Train, KilledAgainAndAgainStillArrives) {
  const Training whole;
  ASSERT_EQ(run_program(whole.command()).code, 0);
  const Training training;
  for (int64_t step = 0; step < 200; step += 25) {
    RunningProgram program(training.command({"--resume"}), training.log());
    wait_for(program, [&] { return training.has_checkpoint_after(step); });
    program.send(SIGKILL);
    program.wait();
  }
  EXPECT_EQ(run_program(training.command({"--resume"})).code, 0);
  EXPECT_EQ(training.result(), whole.result());
}

TEST(Train, ResumeIsSafeToRepeat) {
  const Training training;
  EXPECT_EQ(run_program(training.command({"--resume", "--set", "train.epochs=1"})).code, 0);
  const auto before = snapshot(training.model);
  const Outcome again = run_program(training.command({"--resume", "--set", "train.epochs=1"}));
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("finished"));
  EXPECT_EQ(snapshot(training.model), before);
  EXPECT_EQ(run_program(training.command({"--resume", "--set", "train.epochs=2"})).code, 0);
  EXPECT_THAT(training.result(), HasSubstr("\"epochs\":2"));
}

TEST(Train, RefusesADirectoryThatHoldsARun) {
  const Training training;
  const std::vector<std::string> command = training.command({"--set", "train.max_steps=2"});
  EXPECT_EQ(run_program(command).code, 0);
  const auto before = snapshot(training.model);
  const Outcome again = run_program(command);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("--resume"));
  EXPECT_EQ(snapshot(training.model), before);
}

TEST(Train, RefusesASecondTrainer) {
  const Training training;
  RunningProgram program(training.command(), training.log());
  ASSERT_TRUE(wait_for(program, [&] { return training.has_checkpoint_after(0); }));
  program.send(SIGSTOP);
  const Outcome second = run_program(training.command({"--resume"}));
  program.send(SIGCONT);
  EXPECT_EQ(second.code, 4);
  EXPECT_THAT(second.err, HasSubstr("another process trains in this folder"));
  EXPECT_EQ(program.wait(), 0);
}

TEST(Train, OutputStandsForTheDirectory) {
  const Training training;
  const std::string other = training.model + "-other";
  EXPECT_EQ(run_program(training.command({"--output", other, "--set", "train.max_steps=2"})).code, 0);
  EXPECT_TRUE(std::filesystem::exists(other + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(training.model));
}

TEST(Train, ARunThatWasMovedIsNotStartedAfreshWhereItWas) {
  const Training training;
  EXPECT_EQ(run_program(training.command({"--set", "train.epochs=1"})).code, 0);
  const std::string moved = training.path("moved");
  std::filesystem::rename(training.model, moved);
  const std::vector<std::string> command{"train",    "--config", moved + "/config.json",
                                         "--resume", "--set",    "train.epochs=2"};
  const Outcome outcome = run_program(command);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("add --output " + moved));
  EXPECT_FALSE(std::filesystem::exists(training.model));
  std::vector<std::string> there = command;
  there.insert(there.end(), {"--output", moved});
  EXPECT_EQ(run_program(there).code, 0);
}

TEST(Train, AFinishedRunNamesTheLimitThatEndedIt) {
  const Training training;
  const std::vector<std::string> command = training.command({"--resume", "--set", "train.max_steps=5"});
  EXPECT_EQ(run_program(command).code, 0);
  std::vector<std::string> again = command;
  again.insert(again.end(), {"--set", "train.clip_norm=2"});
  const Outcome outcome = run_program(again);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("a larger train.max_steps would go on"));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("goes on with the new value")));
}

TEST(Train, StandardInputIsARunsOwnEvenWhereTokensAreShared) {
  const Training one;
  const Training two;
  const auto train = [&](const Training& training, const std::string& text, const char* epochs) {
    return run_program(
        training.command({"--resume", "--set", "data.train=-", "--set", "data.cache=" + one.path("cache"),
                          "--set", std::string("train.epochs=") + epochs}),
        text);
  };
  EXPECT_EQ(train(one, made_up_text(60, 1), "1").code, 0);
  EXPECT_EQ(train(two, made_up_text(60, 2), "1").code, 0);
  const Outcome outcome = train(one, "", "2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(Train, SettingsThatDoNothingAreWarnedOf) {
  const Training training;
  const Outcome outcome = run_program(training.command(
      {"--set", "model.layers=1", "--set", "model.hidden=8", "--set", "model.dropout.hidden=0.5", "--set",
       "vocabulary.unk_singletons=true", "--set", "train.max_steps=1"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("model.dropout.hidden: 0.5 does nothing"));
  EXPECT_THAT(outcome.err, HasSubstr("<unk> stays untrained"));
}

TEST(Train, DivergenceHasItsOwnExitCode) {
  const Training training;
  const Outcome outcome = run_program(
      training.command({"--set", "train.optimizer.learning_rate=1e38", "--set", "train.clip_norm=0"}));
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("diverged"));
  EXPECT_TRUE(std::filesystem::exists(training.model + "/checkpoints/step-000000000.safetensors"));
}

TEST(Train, AGpuThatIsNotThereAndWhatNeedsOneAreRefusedBeforeAnythingIsWritten) {
  const Training training;
  const Outcome precision =
      run_program(training.command({"--device", "cpu", "--set", "train.precision=bf16"}));
  EXPECT_EQ(precision.code, 2);
  EXPECT_THAT(precision.err, HasSubstr("train.precision: \"bf16\""));
  const Outcome device = run_program(training.command({"--set", "runtime.device=cuda:97"}));
  EXPECT_EQ(device.code, 2);
  EXPECT_THAT(device.err, HasSubstr("device \"cuda:97\""));
  EXPECT_FALSE(std::filesystem::exists(training.model));
}

TEST(Train, AFolderThatCannotBeWrittenIsOutOfResource) {
  const Training training;
  write_file(training.model, "a file where a folder should be");
  const Outcome outcome = run_program(training.command());
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr(training.model));
}

TEST(Train, AFullDiskShowsBeforeTheFirstStep) {
  const Training training;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{65536, before.rlim_max};  // enough for the texts, not for a checkpoint; inherited
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const Outcome outcome = run_program(training.command());
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.err, HasSubstr("step-000000000.safetensors"));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("window")));
}

TEST(Train, HelpShowsExamples) {
  const Outcome outcome = run_program({"train", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("hsm train --config configs/quickstart.json"));
}

}  // namespace
}  // namespace hsm::test
