#include "train/metrics.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "train/temporary_folder.h"

namespace hsm {
namespace {

TEST(MetricsLog, WritesALineAnEvent) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  MetricsLog log(path, 0);
  log.append({{"event", "start"}, {"b", 1}, {"a", 0.1}});
  log.append({{"event", "epoch"}, {"valid_perplexity", std::numeric_limits<double>::infinity()}});
  log.sync();
  const std::string expected =
      "{\"event\":\"start\",\"b\":1,\"a\":0.1}\n{\"event\":\"epoch\",\"valid_perplexity\":null}\n";
  EXPECT_EQ(read_file(path), expected);
  EXPECT_EQ(log.bytes(), expected.size());
}

TEST(MetricsLog, IsCutBackToTheCheckpoint) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  write_file(path, "{\"a\":1}\n{\"a\":2}\n{\"a\":");
  MetricsLog log(path, 8);
  EXPECT_EQ(log.bytes(), 8U);
  log.append({{"a", 3}});
  EXPECT_EQ(read_file(path), "{\"a\":1}\n{\"a\":3}\n");
}

TEST(MetricsLog, KeepsAFileThatIsShorterThanExpected) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  write_file(path, "{\"a\":1}\n");
  const MetricsLog log(path, 100);
  EXPECT_EQ(log.bytes(), 8U);
  EXPECT_EQ(read_file(path), "{\"a\":1}\n");
}

TEST(MetricsLog, ReportsAFullDisk) {
  MetricsLog log("/dev/full", std::numeric_limits<uint64_t>::max());
  EXPECT_THROW(log.append({{"a", 1}}), ResourceError);
}

TEST(MetricsLog, ReportsAPathThatCannotBeWritten) {
  EXPECT_THROW(MetricsLog("/nonexistent/metrics.jsonl", 0), ResourceError);
}

TEST(LastEvent, IsTheLastWholeLine) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  EXPECT_FALSE(last_event(path));
  write_file(path, "");
  EXPECT_FALSE(last_event(path));
  write_file(path, "\n");
  EXPECT_FALSE(last_event(path));
  write_file(path, "{\"event\":\"done\"}\n");
  EXPECT_EQ(last_event(path)->at("event"), "done");
  write_file(path, "{\"event\":\"epoch\"}\n{\"event\":\"done\"}\n");
  EXPECT_EQ(last_event(path)->at("event"), "done");
  write_file(path, "{\"event\":\"done\"}\n{\"event\":\"epo");
  EXPECT_FALSE(last_event(path));
  write_file(path, "{\"event\":\"done\"}\nnot json\n");
  EXPECT_FALSE(last_event(path));
}

}  // namespace
}  // namespace hsm
