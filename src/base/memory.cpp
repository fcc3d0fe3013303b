#include "base/memory.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace hsm {

uint64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

uint64_t anonymous_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string name;
  while (status >> name) {
    uint64_t kib = 0;
    if (name == "RssAnon:" && status >> kib) return kib * 1024;
    status.ignore(4096, '\n');
  }
  return 0;
}

}  // namespace hsm
