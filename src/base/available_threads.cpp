#include "base/available_threads.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace hsm {
namespace {

constexpr int kMostThreads = 4096;

int processors_of_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                     : static_cast<int>(std::thread::hardware_concurrency());
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Processors granted by one group: version 2 says "QUOTA PERIOD" or "max PERIOD" in one file, version 1 has
/// a file for each; -1 is no limit there.
std::optional<double> quota_of(const std::filesystem::path& group) {
  std::istringstream limits(text_of(group / "cpu.max"));
  double quota = 0;
  double period = 0;
  if (!(limits >> quota >> period)) {
    std::istringstream quota_file(text_of(group / "cpu.cfs_quota_us"));
    std::istringstream period_file(text_of(group / "cpu.cfs_period_us"));
    if (!(quota_file >> quota) || !(period_file >> period)) return {};
  }
  if (quota <= 0 || period <= 0) return {};
  return quota / period;
}

void lower(std::optional<double>& least, std::optional<double> quota) {
  if (quota && (!least || *quota < *least)) least = quota;
}

}  // namespace

std::optional<int> control_group_processors(const std::filesystem::path& mount,
                                            const std::string& membership) {
  std::optional<double> least;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // "0::/a/b" in version 2, "3:cpu,cpuacct:/a/b" in version 1.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool has_cpu = controllers.empty() || controllers == "cpu" || controllers.starts_with("cpu,") ||
                         controllers.ends_with(",cpu");
    if (!has_cpu) continue;
    const std::filesystem::path root = controllers.empty() ? mount : mount / "cpu";
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    // In a container the path may be the host's, which isn't mounted: the root is the container's own group.
    for (; !group.empty(); group = group.parent_path()) lower(least, quota_of(root / group));
    lower(least, quota_of(root));
  }
  if (!least) return {};
  return std::max(1, static_cast<int>(std::lround(std::min<double>(*least, kMostThreads))));
}

std::optional<int> openmp_threads(const char* value) {
  if (value == nullptr) return {};
  while (*value == ' ') ++value;
  int threads = 0;
  const auto [end, error] = std::from_chars(value, value + std::strlen(value), threads);
  const bool whole = *end == '\0' || *end == ',' || *end == ' ';
  if (error != std::errc{} || !whole || threads < 1) return {};
  return threads;
}

int available_threads() {
  int threads = processors_of_process();
  const auto quota = control_group_processors("/sys/fs/cgroup", text_of("/proc/self/cgroup"));
  if (quota) threads = std::min(threads, *quota);
  if (const auto asked = openmp_threads(std::getenv("OMP_NUM_THREADS"))) threads = std::min(threads, *asked);
  return std::clamp(threads, 1, kMostThreads);
}

}  // namespace hsm
