#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace hsm {

/// Threads to use when the user asks for 0: the processors that this process may run on, bounded by the
/// control groups' quota and by OMP_NUM_THREADS. At least 1.
int available_threads();

/// The quota of a process in units of whole processors: the least of its control group's and of all above it,
/// rounded, or nothing when none is set. `mount` is where control groups are mounted (/sys/fs/cgroup);
/// `membership` the text of /proc/self/cgroup. Versions 1 and 2.
std::optional<int> control_group_processors(const std::filesystem::path& mount,
                                            const std::string& membership);

/// The number of threads that a value of OMP_NUM_THREADS asks for: the first of its list. Nothing when it is
/// no positive number; OpenMP ignores it, too, then.
std::optional<int> openmp_threads(const char* value);

}  // namespace hsm
