#include "classes/make_classes.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "classes/automatic.h"
#include "classes/class_file.h"
#include "classes/frequency.h"

namespace hsm {
namespace {

// A cluster may have so many times the mean number of words, if its size is left open.
constexpr int64_t kLargestOfMean = 4;
// A nanosecond more a token is worth it where the class bigram model's log-likelihood of a token rises by
// this.
constexpr double kPrice = 1e-6;

int64_t mean_words(const Vocabulary& vocabulary, const ClassSizes& sizes) {
  const int64_t clustered = std::max<int64_t>(1, vocabulary.size() - sizes.shortlist);
  return std::max<int64_t>(1, (clustered + sizes.clusters - 1) / sizes.clusters);
}

void refuse_file(const ClassOptions& options) {
  if (!options.file.empty())
    throw UsageError("classes.file: given, expected classes.method \"file\" with it");
}

WordClasses by_frequency(const ClassOptions& options, const Vocabulary& vocabulary, const StepShape& step) {
  refuse_file(options);
  const BinWeight weight = parse_bin_weight(options.weight);
  const ClassSizes sizes =
      choose_class_sizes(vocabulary, weight, step, {options.shortlist, options.clusters});
  return frequency_classes(vocabulary, weight, sizes.shortlist, sizes.clusters);
}

WordClasses from_file(const ClassOptions& options, const Vocabulary& vocabulary) {
  if (options.file.empty())
    throw UsageError("classes.file: missing, expected a path with classes.method \"file\"");
  WordClasses classes = load_classes(options.file, vocabulary);
  if (options.shortlist) {
    if (*options.shortlist < 0) {
      throw UsageError("classes.shortlist: " + std::to_string(*options.shortlist) +
                       " given, expected 0 or more");
    }
    for (int64_t id = 0; id < std::min(*options.shortlist, vocabulary.size()); ++id) {
      classes.cluster_of[static_cast<size_t>(id)] = kShortlist;
    }
    drop_empty_clusters(classes);
    if (classes.clusters == 0) {
      throw UsageError("classes.shortlist: " + std::to_string(*options.shortlist) +
                       " given, which leaves no word in a class");
    }
  }
  if (options.clusters && *options.clusters != classes.clusters) {
    throw UsageError("classes.clusters: " + std::to_string(*options.clusters) + " given, but " +
                     options.file + " makes " + std::to_string(classes.clusters));
  }
  return classes;
}

// A limit that no automatic number of clusters leaves room below would put most words at the root.
void check_largest(const ClassOptions& options, const Vocabulary& vocabulary) {
  if (!options.largest || options.clusters) return;
  const int64_t clustered = vocabulary.size() - options.shortlist.value_or(0);
  const int64_t smallest = with_room(clustered, kMostExchangeClusters);
  if (*options.largest >= smallest) return;
  throw UsageError("classes.largest: " + std::to_string(*options.largest) + " given, expected at least " +
                   std::to_string(smallest) + " for " + std::to_string(clustered) +
                   " words, as there may be " + std::to_string(kMostExchangeClusters) +
                   " clusters, with room for half as many words again");
}

WordClasses by_exchange(const ClassOptions& options, const Vocabulary& vocabulary, const StepShape& step,
                        const ClassText& text) {
  refuse_file(options);
  check_largest(options, vocabulary);
  const ClassSizes sizes = choose_class_sizes(
      vocabulary, BinWeight::square_root, step,
      {options.shortlist, options.clusters, options.largest.value_or(0), kMostExchangeClusters});
  ExchangeOptions exchange;
  exchange.shortlist = sizes.shortlist;
  exchange.clusters = sizes.clusters;
  exchange.rounds = options.rounds;
  exchange.limits = {options.largest.value_or(kLargestOfMean * mean_words(vocabulary, sizes)), kPrice, step};
  return exchange_classes(*text.tokens, vocabulary, exchange, *text.pool, text.report);
}

}  // namespace

WordClasses make_classes(const ClassOptions& options, const Vocabulary& vocabulary, const StepShape& step,
                         const ClassText& text) {
  if (options.method == "exchange") return by_exchange(options, vocabulary, step, text);
  if (options.method == "frequency") return by_frequency(options, vocabulary, step);
  if (options.method == "file") return from_file(options, vocabulary);
  throw UsageError("classes.method: " + quote(options.method) +
                   " given, expected \"exchange\", \"frequency\" or \"file\"");
}

}  // namespace hsm
