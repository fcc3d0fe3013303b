#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/file.h"
#include "cli/program.h"
#include "cli/running_program.h"
#include "cli/sample_model.h"

namespace hsm {
namespace {

using test::Outcome;
using test::run_program;
using testing::HasSubstr;

class Classes : public testing::Test {
 protected:
  Classes() {
    folder_.write("train.txt", test::sample_text());
    folder_.write("c.json", R"({"data": {"train": "train.txt"}, "output": {"directory": "model"},
                                "classes": {"clusters": 5, "shortlist": 4},
                                "model": {"layers": 1, "hidden": 4}, "train": {"epochs": 1, "batch": 2}})");
  }

  Outcome run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"classes", "--config", folder_ / "c.json"});
    return run_program(more);
  }

  // The least limit with which two clusters can hold the words of the sample that aren't on the shortlist.
  std::string tight_limit() const {
    int64_t clustered = 0;
    std::istringstream lines(run({"--output", "-", "--set", "classes.clusters=2"}).out);
    for (std::string word, cluster; lines >> word >> cluster;) clustered += cluster == "-" ? 0 : 1;
    return std::to_string((clustered + 1) / 2);
  }

  test::TemporaryFolder folder_;
};

class ClassCounts : public Classes, public testing::WithParamInterface<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Clusters, ClassCounts, testing::Values(1, 5, 12));

TEST_P(ClassCounts, OfWordsAndTokensAreThoseOfTheText) {
  std::map<std::string, int64_t> counts{{"<unk>", 0}};
  int64_t tokens = 0;
  std::istringstream text(test::sample_text());
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line + " </s>");
    for (std::string word; words >> word; ++tokens) ++counts[word];
  }
  const Outcome outcome =
      run({"--format", "jsonl", "--set", "classes.clusters=" + std::to_string(GetParam())});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  size_t words = 0;
  size_t clusters = 0;
  double scores = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("cluster")) {
      words += json["words"].get<size_t>();
      clusters += json["cluster"].is_number() ? 1 : 0;
      int64_t listed = 0;
      for (const auto& word : json["frequent_words"]) listed += counts.at(word.get<std::string>());
      const double share = json["token_share"];
      // All words are listed while a cluster has few.
      if (json["words"] <= 8) {
        EXPECT_DOUBLE_EQ(share, static_cast<double>(listed) / static_cast<double>(tokens)) << line;
      }
      // The word of a cluster of one has probability 1.
      if (json["cluster"].is_number() && json["words"] > 1) scores += share * json["words"].get<double>();
    } else {
      EXPECT_EQ(json["words"], counts.size());
      EXPECT_EQ(json["words"], words);
      EXPECT_EQ(json["tokens"], tokens);
      EXPECT_EQ(json["clusters"], clusters);
      EXPECT_NEAR(json["mean_scores"],
                  scores + static_cast<double>(clusters) + json["shortlist"].get<double>(), 1e-9);
    }
  }
  EXPECT_EQ(clusters, static_cast<size_t>(GetParam()));
}

TEST_F(Classes, LeavesNothingBehind) {
  const auto before = test::snapshot(folder_.path());
  EXPECT_EQ(run({}).code, 0);
  EXPECT_EQ(test::snapshot(folder_.path()), before);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model"));
}

TEST_F(Classes, WritesAFileThatGivesTheSameClassesAgain) {
  const Outcome shown = run({});
  const Outcome outcome = run({"--output", folder_ / "classes.txt"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, shown.out);
  EXPECT_THAT(shown.out, HasSubstr("5 clusters of "));
  EXPECT_EQ(run({"--output", "-"}).out, read_file(folder_ / "classes.txt"));
  const Outcome again =
      run({"--set", "classes.method=file", "--set", "classes.file=" + (folder_ / "classes.txt"), "--set",
           "classes.shortlist=auto", "--output", "-"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, read_file(folder_ / "classes.txt"));
}

TEST_F(Classes, AreThoseThatTrainingMakes) {
  const Outcome trained = run_program({"train", "--config", folder_ / "c.json", "--log-level", "off"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(run({"--output", "-"}).out, read_file(folder_ / "model/classes.txt"));
}

TEST_F(Classes, ReadsStandardInput) {
  const Outcome from_file = run({});
  const Outcome outcome =
      run_program({"classes", "--config", folder_ / "c.json", "--set", "data.train=-"}, test::sample_text());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, from_file.out);
}

TEST_F(Classes, AnOutputThatCannotBeWrittenIsKnownBeforeTheTextIsRead) {
  for (const std::string& output : {folder_ / "none/classes.txt", folder_.path().string()}) {
    const Outcome outcome = run({"--set", "data.train=" + (folder_ / "none.txt"), "--output", output});
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(output));
  }
}

TEST_F(Classes, AFailureLeavesTheOldFile) {
  const std::string in_memory = "/dev/shm/hsm_classes_" + std::to_string(::getpid()) + ".txt";
  std::vector<std::string> files{folder_ / "classes.txt"};
  if (std::filesystem::is_directory("/dev/shm")) files.push_back(in_memory);
  for (const std::string& file : files) {
    write_file(file, "old 1\n");
    EXPECT_EQ(run({"--set", "classes.clusters=5000", "--output", file}).code, 2);
    EXPECT_EQ(read_file(file), "old 1\n");
  }
  std::filesystem::remove(in_memory);
}

TEST_F(Classes, AnEmptyNameOfAnOutputIsRefused) {
  const Outcome outcome = run({"--output", ""});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--output: \"\" given, expected a path or -"));
}

TEST_F(Classes, ALinkStaysALinkAndADeviceADevice) {
  const std::string target = folder_.write("real.txt", "old 1\n");
  std::filesystem::create_symlink("real.txt", folder_ / "link.txt");
  EXPECT_EQ(run({"--output", folder_ / "link.txt"}).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.txt"));
  EXPECT_EQ(read_file(target), run({"--output", "-"}).out);
  EXPECT_EQ(run({"--output", "/dev/null"}).code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(Classes, SizesThatLeaveNoClusterAreRefused) {
  for (const char* method : {"exchange", "frequency"}) {
    for (const int64_t shortlist : {1'000, 100'000}) {
      const Outcome outcome =
          run({"--set", std::string("classes.method=") + method, "--set", "classes.clusters=auto", "--set",
               "classes.shortlist=" + std::to_string(shortlist)});
      EXPECT_EQ(outcome.code, 2) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("classes.shortlist: " + std::to_string(shortlist) + " given"));
    }
  }
  const Outcome outcome = run({"--set", "classes.clusters=20001"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("classes.clusters: 20001 given, expected at most 20000"));
}

TEST_F(Classes, LittleRoomBelowALimitIsWarnedOf) {
  const auto err = [&](const char* clusters, const char* largest) {
    const Outcome outcome = run({"--set", std::string("classes.clusters=") + clusters, "--set",
                                 std::string("classes.largest=") + largest});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  for (const char* largest : {"1", "2", "3", "10"}) {
    EXPECT_THAT(err("auto", largest), testing::Not(HasSubstr("little room"))) << largest;
  }
  EXPECT_THAT(err("5", "1000"), testing::Not(HasSubstr("little room")));
  EXPECT_THAT(err("2", tight_limit().c_str()), HasSubstr("little room"));
}

TEST_F(Classes, AFormatIsRefusedWhereNoSummaryIsWritten) {
  const Outcome outcome = run({"--output", "-", "--format", "jsonl"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--format"));
}

TEST_F(Classes, AFolderForTemporaryFilesThatIsMissingIsNamed) {
  const Outcome outcome =
      run_program({{"classes", "--config", folder_ / "c.json"}, "", {}, {{"TMPDIR", folder_ / "none"}}});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(folder_ / "none"));
}

TEST_F(Classes, ASignalEndsThemAndLeavesNothing) {
  const std::string text = folder_ / "text.fifo";
  ASSERT_EQ(::mkfifo(text.c_str(), 0600), 0);
  const auto before = test::snapshot(folder_.path());
  test::RunningProgram program({"classes", "--config", folder_ / "c.json", "--set", "data.train=" + text,
                                "--set", "data.cache=" + (folder_ / "cache")},
                               "/dev/null");
  const auto previous = std::signal(SIGPIPE, SIG_IGN);  // the program needn't read to the end
  {
    std::ofstream out(text);
    out << "a b c\n" << std::flush;
    program.send(SIGTERM);
    // The end of the text is read after the signal, whenever that comes.
    for (int i = 0; i < 100'000; ++i) out << "a b c d e f g h\n";
  }
  std::signal(SIGPIPE, previous);
  EXPECT_EQ(program.wait(), 75);
  EXPECT_EQ(test::snapshot(folder_.path()), before);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "cache"));
}

}  // namespace
}  // namespace hsm
