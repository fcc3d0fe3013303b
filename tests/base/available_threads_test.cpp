#include "base/available_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace hsm {
namespace {

namespace fs = std::filesystem;

/// A folder that stands for /sys/fs/cgroup.
class ControlGroups : public testing::Test {
 protected:
  ~ControlGroups() override { fs::remove_all(mount_); }

  void set(const std::string& file, const std::string& text) {
    const fs::path path = mount_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

  fs::path mount_ = fs::temp_directory_path() / ("hsm_groups_" + std::to_string(getpid()));
};

TEST_F(ControlGroups, NoQuotaIsNoLimit) {
  EXPECT_EQ(control_group_processors(mount_, "0::/\n"), std::nullopt);
  set("cpu.max", "max 100000");
  EXPECT_EQ(control_group_processors(mount_, "0::/\n"), std::nullopt);
  EXPECT_EQ(control_group_processors(mount_, ""), std::nullopt);
  EXPECT_EQ(control_group_processors(mount_, "nonsense"), std::nullopt);
}

TEST_F(ControlGroups, TheLeastQuotaAboveTheProcessCounts) {
  set("cpu.max", "max 100000");
  set("user/cpu.max", "300000 100000");
  set("user/job/cpu.max", "800000 100000");
  EXPECT_EQ(control_group_processors(mount_, "0::/user/job\n"), 3);
  set("user/job/cpu.max", "150000 100000");
  EXPECT_EQ(control_group_processors(mount_, "0::/user/job\n"), 2);
  set("user/job/cpu.max", "10000 100000");
  EXPECT_EQ(control_group_processors(mount_, "0::/user/job\n"), 1);
}

TEST_F(ControlGroups, APathOfTheHostFallsBackToTheContainersRoot) {
  set("cpu.max", "200000 100000");
  EXPECT_EQ(control_group_processors(mount_, "0::/kubepods/pod1/abc\n"), 2);
}

TEST_F(ControlGroups, VersionOneIsReadToo) {
  set("cpu/cpu.cfs_quota_us", "-1");
  set("cpu/cpu.cfs_period_us", "100000");
  set("cpu/batch/cpu.cfs_quota_us", "400000");
  set("cpu/batch/cpu.cfs_period_us", "100000");
  EXPECT_EQ(control_group_processors(mount_, "5:memory:/x\n4:cpu,cpuacct:/batch\n"), 4);
  EXPECT_EQ(control_group_processors(mount_, "4:cpu,cpuacct:/\n3:cpuset:/batch\n"), std::nullopt);
}

TEST(OpenMpThreads, AreTheFirstNumberOfTheList) {
  EXPECT_EQ(openmp_threads("3"), 3);
  EXPECT_EQ(openmp_threads(" 4,2"), 4);
  for (const char* value : {"", "0", "-2", "many", "3x"}) EXPECT_EQ(openmp_threads(value), std::nullopt);
  EXPECT_EQ(openmp_threads(nullptr), std::nullopt);
}

TEST(AvailableThreads, AreBoundedByOpenMpsVariable) {
  unsetenv("OMP_NUM_THREADS");
  const int all = available_threads();
  EXPECT_GE(all, 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EQ(available_threads(), 1);
  setenv("OMP_NUM_THREADS", "4000", 1);
  EXPECT_EQ(available_threads(), all);
  unsetenv("OMP_NUM_THREADS");
}

}  // namespace
}  // namespace hsm
