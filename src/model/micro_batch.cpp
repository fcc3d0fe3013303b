#include "model/micro_batch.h"

#include <algorithm>

namespace hsm {

std::vector<StreamGroup> group_streams(int64_t streams, int64_t pieces) {
  pieces = std::min(pieces, streams);
  std::vector<StreamGroup> groups;
  int64_t first = 0;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t count = streams / pieces + (i < streams % pieces ? 1 : 0);
    groups.push_back({first, count});
    first += count;
  }
  return groups;
}

Batch part_of(const Batch& batch, StreamGroup group) {
  Batch part;
  part.steps = batch.steps;
  part.streams = group.count;
  part.starts = batch.starts;
  for (int64_t time = 0; time < batch.steps; ++time) {
    const int64_t from = time * batch.streams + group.first;
    part.inputs.insert(part.inputs.end(), batch.inputs.begin() + from,
                       batch.inputs.begin() + from + group.count);
    part.targets.insert(part.targets.end(), batch.targets.begin() + from,
                        batch.targets.begin() + from + group.count);
  }
  part.target_count = static_cast<int64_t>(part.targets.size()) -
                      std::count(part.targets.begin(), part.targets.end(), kNoTarget);
  return part;
}

}  // namespace hsm
