#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_pool.h"
#include "classes/class_bigrams.h"
#include "classes/cluster_sizes.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Puts words one after the other into the cluster that their neighbours speak for, those of the first of
/// their tokens. `rare` are ids. group_of holds the group of each id in `bigrams`, or −1 for one that counts
/// nowhere, as rare words do until they are placed; they get their cluster here. `sizes` are counts of
/// `counted` tokens. The result doesn't depend on the number of threads. The text is read as often as it
/// takes to collect about `pass_bytes` at a time (16 a token that is looked at). progress(part) is
/// called now and then and may throw.
void place_rare_words(const TokenFile& tokens, const Vocabulary& vocabulary, std::span<const int32_t> rare,
                      std::span<int32_t> group_of, ClassBigrams& bigrams, ClusterSizes& sizes,
                      int64_t counted, ThreadPool& pool, int64_t pass_bytes,
                      const std::function<void(double)>& progress);

}  // namespace hsm
