#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "classes/bigrams.h"
#include "classes/class_bigrams.h"

namespace hsm {

/// Adds neighbours up by their group. For one thread.
class ContextReader {
 public:
  explicit ContextReader(int64_t groups) : counts_(static_cast<size_t>(groups)) {}

  /// Fills `groups`. group_of(item) says where a neighbour counts, nowhere when it is negative.
  template <class GroupOf>
  void read(std::span<const Neighbour> neighbours, GroupOf&& group_of, std::vector<GroupCount>& groups) {
    groups.clear();
    for (const Neighbour& neighbour : neighbours) {
      const int32_t group = group_of(neighbour.item);
      if (group < 0) continue;
      uint32_t& count = counts_[static_cast<size_t>(group)];
      if (count == 0) groups.push_back({group, 0});
      count += neighbour.count;
    }
    for (GroupCount& entry : groups) {
      entry.count = counts_[static_cast<size_t>(entry.group)];
      counts_[static_cast<size_t>(entry.group)] = 0;
    }
  }

 private:
  std::vector<uint32_t> counts_;  // zero between calls
};

/// What a thread works with when it looks for the best cluster of one word after the other.
struct MoveScratch {
  explicit MoveScratch(const ClassBigrams& bigrams)
      : reader(bigrams.groups()), gain(static_cast<size_t>(bigrams.clusters())) {}

  ContextReader reader;
  WordContext context;
  std::vector<double> gain;  ///< by cluster
};

}  // namespace hsm
