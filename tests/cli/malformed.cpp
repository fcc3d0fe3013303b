#include "cli/malformed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "cli/sample_model.h"

namespace hsm::test {
namespace {

constexpr const char* kConfig = R"({
  "data": {"train": "train.txt"},
  "classes": {"clusters": 4, "shortlist": 3},
  "output": {"directory": "model"}
})";

std::string with_folder(std::string text, const TemporaryFolder& folder) {
  const std::string path = folder.path().string();
  for (size_t at = 0; (at = text.find('@', at)) != std::string::npos; at += path.size())
    text.replace(at, 1, path);
  return text;
}

struct Run {
  TemporaryFolder folder;
  std::map<std::string, std::string> before;
  Outcome outcome;
};

void prepare(const Malformed& one, Run& run) {
  write_sample_model(run.folder.path() / "model");
  run.folder.write("train.txt", sample_text());
  run.folder.write("config.json", kConfig);
  one.spoil(run.folder);
  run.before = snapshot(run.folder.path());
}

void start(const Malformed& one, Run& run) {
  std::vector<std::string> arguments;
  for (const std::string& argument : one.arguments) arguments.push_back(with_folder(argument, run.folder));
  run.outcome = run_program({arguments, one.input, run.folder.path(), {}});
}

void check(const Malformed& one, const Run& run) {
  SCOPED_TRACE(one.name);
  const Outcome& outcome = run.outcome;
  EXPECT_EQ(outcome.code, one.code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  size_t lines = 0;
  for (size_t at = 0; at < outcome.err.size(); at = outcome.err.find('\n', at) + 1) {
    const bool is_log = outcome.err.compare(at, 1, "[") == 0;
    if (!is_log) ++lines;
    EXPECT_TRUE(is_log || outcome.err.compare(at, 5, "hsm: ") == 0) << outcome.err;
  }
  EXPECT_EQ(lines, one.problems) << outcome.err;
  for (const std::string& place : one.places)
    EXPECT_THAT(outcome.err, testing::HasSubstr(with_folder(place, run.folder)));
  const auto after = snapshot(run.folder.path());
  for (const auto& [file, content] : run.before) {
    const auto found = after.find(file);
    EXPECT_TRUE(found != after.end() && found->second == content) << file << " was changed or removed";
  }
}

}  // namespace

void expect_refusals(const std::vector<Malformed>& cases) {
  std::vector<Run> runs(cases.size());
  for (size_t i = 0; i < cases.size(); ++i) prepare(cases[i], runs[i]);
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < cases.size(); i = next++) start(cases[i], runs[i]);
    });
  }
  threads.clear();
  for (size_t i = 0; i < cases.size(); ++i) check(cases[i], runs[i]);
}

}  // namespace hsm::test
