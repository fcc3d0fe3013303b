#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "train/file_size_limit.h"
#include "train/temporary_folder.h"

namespace hsm {
namespace {

/// Tensors of every type that a checkpoint holds, filled with values that depend on `seed`.
struct Tensors {
  explicit Tensors(int seed) {
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = 0.1F * static_cast<float>(i) + static_cast<float>(seed);
    for (size_t i = 0; i < stamps.size(); ++i) stamps[i] = static_cast<int64_t>(i) * 7 + seed;
    sums[0] = 1.0 / 3 + seed;
  }

  std::vector<StateTensor> list() {
    return {{"parameter.weight", DType::f32, {3, 5}, weights.data()},
            {"optimizer.rows", DType::i64, {3}, stamps.data()},
            {"sums", DType::f64, {1}, sums.data()}};
  }
  bool operator==(const Tensors&) const = default;

  std::vector<float> weights = std::vector<float>(15);
  std::vector<int64_t> stamps = std::vector<int64_t>(3);
  std::vector<double> sums = std::vector<double>(1);
};

TrainingState state_at(int64_t step) {
  TrainingState state;
  state.position = {2, 17, step};
  state.sums = {1234.5678901234567, 991, 1.5, 2.5};
  state.plateau = {101.1, 2, 3};
  state.validations = {100.0 / 3,         40,     2, 1, 44, 7.25, LogitScales{1.0F / 7, 1.1F},
                       {101.0 / 3, 40.5}, 1e9 / 7};
  state.seconds = 0.1 + 0.2;
  state.streams = 3;
  state.metrics_bytes = 4321;
  state.data_hash = "0123456789abcdef";
  state.valid_hash = "0011223344556677";
  state.layout_hash = "fedcba9876543210";
  return state;
}

class QuietLog {
 public:
  QuietLog() { spdlog::set_level(spdlog::level::off); }
  ~QuietLog() { spdlog::set_level(before_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  spdlog::level::level_enum before_ = spdlog::get_level();
};

class CheckpointStoreTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  TemporaryFolder folder_;
  CheckpointStore store_{folder_.path(), 2};
};

TEST_F(CheckpointStoreTest, RestoresTensorsAndStateToTheBit) {
  EXPECT_TRUE(store_.empty());
  EXPECT_FALSE(store_.load_newest());
  Tensors saved(1);
  const TrainingState state = state_at(50);
  store_.save(state, saved.list());
  EXPECT_FALSE(store_.empty());

  const auto loaded = store_.load_newest();
  ASSERT_TRUE(loaded);
  Tensors restored(9);
  loaded->restore(restored.list());
  EXPECT_EQ(restored, saved);
  EXPECT_EQ(dump_state(loaded->state), dump_state(state));
  EXPECT_EQ(loaded->state.sums.loss, state.sums.loss);
  EXPECT_EQ(loaded->state.validations.best, state.validations.best);
  EXPECT_EQ(loaded->state.validations.scales, state.validations.scales);
  EXPECT_EQ(loaded->state.seconds, state.seconds);
  EXPECT_EQ(loaded->state.position.window, 17);
}

TEST_F(CheckpointStoreTest, StateWithoutAValidationRestores) {
  Tensors tensors(1);
  store_.save(TrainingState{}, tensors.list());
  const auto loaded = store_.load_newest();
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->state.validations.best, std::numeric_limits<double>::infinity());
  EXPECT_EQ(loaded->state.plateau.best, std::numeric_limits<double>::infinity());
  EXPECT_EQ(loaded->state.validations.best_step, -1);
}

TEST_F(CheckpointStoreTest, KeepsTheNewest) {
  Tensors tensors(1);
  for (const int64_t step : {0, 9, 10, 1000000000}) store_.save(state_at(step), tensors.list());
  EXPECT_EQ(files(), (std::set<std::string>{"step-000000010.safetensors", "step-1000000000.safetensors"}));
  EXPECT_EQ(store_.load_newest()->state.position.step, 1000000000);
}

TEST_F(CheckpointStoreTest, IgnoresFilesThatAreNoCheckpoints) {
  write_file(file("step-12.safetensors"), "x");
  write_file(file("step-00000001x.safetensors"), "x");
  write_file(file("notes.txt"), "x");
  EXPECT_TRUE(store_.empty());
  Tensors tensors(1);
  for (const int64_t step : {1, 2, 3}) store_.save(state_at(step), tensors.list());
  EXPECT_EQ(files().size(), 5U);
}

TEST_F(CheckpointStoreTest, FallsBackWhereverTheNewestIsDamaged) {
  const QuietLog quiet;  // a warning for each byte
  Tensors old(1);
  Tensors fresh(2);
  store_.save(state_at(10), old.list());
  store_.save(state_at(20), fresh.list());
  const auto newest = file("step-000000020.safetensors");
  const std::string whole = read_file(newest);
  for (size_t place = 0; place < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    std::ofstream(newest, std::ios::binary) << damaged;
    const auto loaded = store_.load_newest();
    ASSERT_TRUE(loaded);
    Tensors restored(9);
    try {
      loaded->restore(restored.list());
    } catch (const DataError&) {
      continue;  // a name or shape was hit: refused, too
    }
    // Either the damage was seen, or it hit nothing that is used (a space, the name of another entry).
    EXPECT_EQ(restored, loaded->state.position.step == 10 ? old : fresh) << "byte " << place;
  }
}

TEST_F(CheckpointStoreTest, FallsBackFromATruncatedFile) {
  Tensors tensors(1);
  store_.save(state_at(10), tensors.list());
  store_.save(state_at(20), tensors.list());
  const auto newest = file("step-000000020.safetensors");
  for (const uintmax_t bytes :
       {uintmax_t{0}, uintmax_t{7}, uintmax_t{300}, std::filesystem::file_size(newest) - 1}) {
    std::filesystem::resize_file(newest, std::min(bytes, std::filesystem::file_size(newest)));
    EXPECT_EQ(store_.load_newest()->state.position.step, 10);
    store_.save(state_at(20), tensors.list());
  }
}

TEST_F(CheckpointStoreTest, NamesEachDamagedFileWhenNoneIsLeft) {
  Tensors tensors(1);
  store_.save(state_at(10), tensors.list());
  store_.save(state_at(20), tensors.list());
  std::filesystem::resize_file(file("step-000000010.safetensors"), 100);
  std::filesystem::resize_file(file("step-000000020.safetensors"), 100);
  try {
    (void)store_.load_newest();
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("step-000000010.safetensors"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("step-000000020.safetensors"));
  }
}

TEST_F(CheckpointStoreTest, RemovesADamagedFutureOnceItHasGoneOn) {
  Tensors tensors(1);
  store_.save(state_at(10), tensors.list());
  store_.save(state_at(20), tensors.list());
  std::filesystem::resize_file(file("step-000000020.safetensors"), 100);
  store_.save(state_at(15), tensors.list());
  EXPECT_EQ(files(), (std::set<std::string>{"step-000000010.safetensors", "step-000000015.safetensors"}));
}

TEST_F(CheckpointStoreTest, RefusesAnotherShape) {
  Tensors tensors(1);
  store_.save(state_at(10), tensors.list());
  const auto loaded = store_.load_newest();
  auto list = tensors.list();
  list[0].shape = {5, 3};
  EXPECT_THROW(loaded->restore(list), DataError);
  list = tensors.list();
  list[1].name = "optimizer.columns";
  EXPECT_THROW(loaded->restore(list), DataError);
}

TEST_F(CheckpointStoreTest, AFullDiskLeavesTheOlderOnes) {
  Tensors old(1);
  store_.save(state_at(10), old.list());
  {
    const FileSizeLimit limit(200);
    Tensors fresh(2);
    EXPECT_THROW(store_.save(state_at(20), fresh.list()), ResourceError);
  }
  EXPECT_EQ(files(), std::set<std::string>{"step-000000010.safetensors"});
  Tensors restored(9);
  store_.load_newest()->restore(restored.list());
  EXPECT_EQ(restored, old);
}

TEST(TrainingState, OfBeforeCalibrationIsRead) {
  TrainingState state = state_at(50);
  auto json = nlohmann::json::parse(dump_state(state));
  json["validations"].erase("root_scale");
  json["validations"].erase("cluster_scale");
  state.validations.scales.reset();
  EXPECT_EQ(dump_state(parse_state(json.dump(), "x")), dump_state(state));
}

TEST(TrainingState, ParsingRefusesWhatIsNoState) {
  EXPECT_THROW(parse_state("{}", "x"), DataError);
  EXPECT_THROW(parse_state("[", "x"), DataError);
  EXPECT_THROW(parse_state("null", "x"), DataError);
}

TEST(EndReason, FollowsSettingsAndState) {
  TrainConfig config;
  config.epochs = 3;
  TrainingState state;
  EXPECT_EQ(end_reason(config, state), "");
  state.position = {3, 0, 30};
  EXPECT_EQ(end_reason(config, state), "epochs");
  state.position = {2, 5, 25};
  EXPECT_EQ(end_reason(config, state), "");
  config.max_steps = 25;
  EXPECT_EQ(end_reason(config, state), "max_steps");
  config.max_steps = 26;
  config.max_time = 30;
  state.seconds = 29.9;
  EXPECT_EQ(end_reason(config, state), "");
  state.seconds = 30;
  EXPECT_EQ(end_reason(config, state), "max_time");
  config.max_time = 0;
  config.epochs = 0;
  EXPECT_EQ(end_reason(config, state), "");
  config.early_stopping = 2;
  state.validations.without_improvement = 1;
  EXPECT_EQ(end_reason(config, state), "");
  state.validations.without_improvement = 2;
  EXPECT_EQ(end_reason(config, state), "early_stopping");
}

TEST(ValidationHistory, RemembersTheBest) {
  ValidationHistory history;
  EXPECT_TRUE(history.record(90, 1, 10, 1.0));
  EXPECT_FALSE(history.record(90, 2, 20, 2.0));
  EXPECT_FALSE(history.record(95, 3, 30, 3.0));
  EXPECT_EQ(history.without_improvement, 2);
  EXPECT_EQ(history.best_step, 10);
  EXPECT_EQ(history.last_step, 30);
  EXPECT_TRUE(history.record(89.9, 4, 40, 4.0));
  EXPECT_EQ(history.without_improvement, 0);
  EXPECT_EQ(history.best, 89.9);
  EXPECT_EQ(history.best_epoch, 4);
}

}  // namespace
}  // namespace hsm
