#include "classes/make_classes.h"

#include <algorithm>

#include "base/error.h"
#include "base/size.h"
#include "base/utf8.h"
#include "classes/automatic.h"
#include "classes/class_file.h"
#include "classes/frequency.h"

namespace hsm {
namespace {

WordClasses by_frequency(const ClassOptions& options, const Vocabulary& vocabulary, const StepShape& step) {
  if (!options.file.empty())
    throw UsageError("classes.file: given, expected classes.method \"file\" with it");
  const BinWeight weight = parse_bin_weight(options.weight);
  const ClassSizes sizes = choose_class_sizes(vocabulary, weight, step, options.shortlist, options.clusters);
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
      throw UsageError("classes.shortlist: " + format_count(*options.shortlist) +
                       " given, which leaves no word in a class");
    }
  }
  if (options.clusters && *options.clusters != classes.clusters) {
    throw UsageError("classes.clusters: " + std::to_string(*options.clusters) + " given, but " +
                     options.file + " makes " + std::to_string(classes.clusters));
  }
  return classes;
}

}  // namespace

WordClasses make_classes(const ClassOptions& options, const Vocabulary& vocabulary, int64_t head_dim,
                         int64_t batch_tokens) {
  if (options.method == "frequency") return by_frequency(options, vocabulary, {head_dim, batch_tokens});
  if (options.method == "file") return from_file(options, vocabulary);
  throw UsageError("classes.method: " + quote(options.method) + " given, expected \"frequency\" or \"file\"");
}

}  // namespace hsm
