#include <algorithm>
#include <vector>

#include "base/error.h"
#include "text/batch_parts.h"
#include "text/sentence_index.h"

namespace hsm {
namespace {

// Lines by rank of length are cut into groups of B. Which lines of equal length stand in which group, and the
// order of the groups, change with the epoch; the lengths in a group don't.
class SentenceBatches : public BatchSource {
 public:
  SentenceBatches(const TokenFile& tokens, const Vocabulary& vocabulary, const BatchOptions& options)
      : tokens_(tokens),
        streams_(options.streams),
        end_of_sentence_(vocabulary.end_of_sentence()),
        index_(tokens, end_of_sentence_),
        groups_((index_.size() + streams_ - 1) / streams_),
        lengths_(options),
        random_(options.seed, Purpose::shuffle),
        singletons_(vocabulary, options),
        plans_([this](int64_t epoch) { return place_windows(epoch); }) {
    if (groups_ == 0) throw DataError(tokens.path().string() + ": the training text has no lines");
  }

  [[nodiscard]] int64_t windows(int64_t epoch) const override { return plans_.get(epoch)->back(); }
  [[nodiscard]] int64_t targets(int64_t) const override { return tokens_.size(); }

  [[nodiscard]] Batch window(int64_t epoch, int64_t window) const override {
    const auto plan = plans_.get(epoch);
    const auto next = std::upper_bound(plan->begin(), plan->end(), window);
    const int64_t place = next - plan->begin() - 1;  // of the group in the epoch
    const int64_t group = group_order(epoch)(place);
    const int64_t limit = lengths_.draw(epoch, group);
    return cut(epoch, group, (window - *(next - 1)) * limit, limit);
  }

 private:
  // Steps [first, first + limit) of a group, or as many as it has.
  [[nodiscard]] Batch cut(int64_t epoch, int64_t group, int64_t first, int64_t limit) const {
    const int64_t lines = last_rank(group) - group * streams_;
    Batch batch;
    batch.steps = std::min(limit, length(group) - first);
    batch.streams = lines;
    batch.inputs.assign(static_cast<size_t>(batch.steps * lines), end_of_sentence_);
    batch.targets.assign(batch.inputs.size(), kNoTarget);
    batch.starts = first == 0;
    std::vector<int32_t> tokens;
    for (int64_t line = 0; line < lines; ++line) {
      const auto [start, line_length] = place_of(epoch, group * streams_ + line);
      const int64_t steps = std::clamp<int64_t>(line_length - first, 0, batch.steps);
      read(epoch, start, first, steps, tokens);
      for (int64_t step = 0; step < steps; ++step) {
        const auto at = static_cast<size_t>(step * lines + line);
        batch.inputs[at] = tokens[static_cast<size_t>(step)];
        batch.targets[at] = tokens[static_cast<size_t>(step + 1)];
      }
      batch.target_count += steps;
    }
    return batch;
  }

  // Inputs and targets of `steps` steps from `first` on, in one row: the token before, then the targets.
  void read(int64_t epoch, int64_t start, int64_t first, int64_t steps, std::vector<int32_t>& tokens) const {
    tokens.assign(static_cast<size_t>(steps + 1), end_of_sentence_);
    if (steps == 0) return;
    const int64_t skipped = first == 0 ? 1 : 0;  // `</s>` stands before the line
    const std::span<int32_t> out = std::span(tokens).subspan(static_cast<size_t>(skipped));
    const int64_t position = start + first - 1 + skipped;
    tokens_.read(position, out);
    singletons_.apply(epoch, position, out);
  }

  [[nodiscard]] int64_t last_rank(int64_t group) const {
    return std::min(index_.size(), (group + 1) * streams_);
  }
  // Of the longest line in a group.
  [[nodiscard]] int64_t length(int64_t group) const { return index_.bucket(last_rank(group) - 1).length; }

  // Start and length of the line that takes place `rank` this epoch.
  [[nodiscard]] std::pair<int64_t, int64_t> place_of(int64_t epoch, int64_t rank) const {
    const SentenceIndex::Bucket& bucket = index_.bucket(rank);
    const RandomOrder order(bucket.last - bucket.first, key(epoch, bucket.length));
    return {index_.start(bucket.first + order(rank - bucket.first)), bucket.length};
  }

  [[nodiscard]] RandomOrder group_order(int64_t epoch) const { return {groups_, key(epoch, 0)}; }

  // 0 for the order of groups, else for lines of this length.
  [[nodiscard]] uint64_t key(int64_t epoch, int64_t length) const {
    return random_.bits(static_cast<uint64_t>(epoch), static_cast<uint64_t>(length));
  }

  // First window of each group in the epoch's order, and the number of windows.
  [[nodiscard]] std::vector<int64_t> place_windows(int64_t epoch) const {
    std::vector<int64_t> first(static_cast<size_t>(groups_ + 1));
    const RandomOrder order = group_order(epoch);
    for (int64_t place = 0; place < groups_; ++place) {
      const int64_t group = order(place);
      const int64_t limit = lengths_.draw(epoch, group);
      const int64_t windows = (length(group) + limit - 1) / limit;
      first[static_cast<size_t>(place + 1)] = first[static_cast<size_t>(place)] + windows;
    }
    return first;
  }

  const TokenFile& tokens_;
  int64_t streams_;
  int32_t end_of_sentence_;
  SentenceIndex index_;
  int64_t groups_;
  WindowLengths lengths_;
  CounterRandom random_;
  UnknownSingletons singletons_;
  mutable EpochPlans<std::vector<int64_t>> plans_;
};

}  // namespace

std::unique_ptr<BatchSource> make_sentence_batches(const TokenFile& tokens, const Vocabulary& vocabulary,
                                                   const BatchOptions& options) {
  check_options(options);
  return std::make_unique<SentenceBatches>(tokens, vocabulary, options);
}

}  // namespace hsm
