#include "classes/class_likelihood.h"

#include <algorithm>
#include <vector>

#include "classes/bigrams.h"
#include "classes/class_bigrams.h"
#include "classes/n_log_n.h"

namespace hsm {

double words_likelihood(const Vocabulary& vocabulary, int64_t tokens) {
  const double share =
      static_cast<double>(tokens) / static_cast<double>(std::max<int64_t>(1, vocabulary.total_count()));
  double sum = 0;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const double count = share * static_cast<double>(vocabulary.count(id));
    if (count >= 1) sum += count * portable_log(count);
  }
  return sum;
}

double class_bigram_likelihood(const TokenFile& tokens, const Vocabulary& vocabulary,
                               const WordClasses& classes, ThreadPool& pool,
                               const std::function<void(double)>& progress) {
  const SampledTokens sample(tokens);
  if (sample.size() == 0) return 0;
  std::vector<int32_t> group_of(classes.cluster_of);
  int32_t groups = classes.clusters;
  for (int32_t& group : group_of) {
    if (group == kShortlist) group = groups++;
  }
  const NeighbourLists successors = count_successors(sample, group_of, groups, pool, kPassBytes, progress);
  const NLogN of_pair(kPairDiscount);
  const NLogN of_total;
  double sum = words_likelihood(vocabulary, sample.size());
  for (int32_t group = 0; group < groups; ++group) {
    uint32_t count = 0;
    for (const Neighbour& next : successors.of(group)) {
      sum += of_pair(next.count);
      count += next.count;
    }
    sum -= 2 * of_total(count);
  }
  return sum / static_cast<double>(sample.size());
}

}  // namespace hsm
