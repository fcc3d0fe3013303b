#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/size.h"
#include "text/batch_parts.h"

namespace hsm {
namespace {

class StreamBatches : public BatchSource {
 public:
  StreamBatches(const TokenFile& tokens, const Vocabulary& vocabulary, const BatchOptions& options)
      : tokens_(tokens),
        streams_(options.streams),
        length_(tokens.size() / options.streams),
        end_of_sentence_(vocabulary.end_of_sentence()),
        lengths_(options),
        singletons_(vocabulary, options),
        plans_([this](int64_t epoch) { return draw_starts(epoch); }) {
    if (length_ == 0) {
      throw DataError(tokens.path().string() + ": the training text has " + format_count(tokens.size()) +
                      " tokens, expected at least one for each of the " + format_count(streams_) +
                      " streams (train.batch)");
    }
  }

  [[nodiscard]] int64_t windows(int64_t epoch) const override {
    if (lengths_.fixed()) return (length_ + lengths_.draw(0, 0) - 1) / lengths_.draw(0, 0);
    return static_cast<int64_t>(plans_.get(epoch)->size()) - 1;
  }

  [[nodiscard]] int64_t targets(int64_t) const override { return streams_ * length_; }

  [[nodiscard]] Batch window(int64_t epoch, int64_t window) const override {
    const auto [first, last] = range(epoch, window);
    const int64_t steps = last - first;
    Batch batch;
    batch.steps = steps;
    batch.streams = streams_;
    batch.inputs.resize(static_cast<size_t>(steps * streams_));
    batch.targets.resize(batch.inputs.size());
    batch.target_count = steps * streams_;
    batch.starts = window == 0;
    std::vector<int32_t> tokens(static_cast<size_t>(steps + 1));  // the token before, then the targets
    for (int64_t stream = 0; stream < streams_; ++stream) {
      read(epoch, stream * length_ + first - 1, tokens);
      for (int64_t step = 0; step < steps; ++step) {
        const auto at = static_cast<size_t>(step * streams_ + stream);
        batch.inputs[at] = tokens[static_cast<size_t>(step)];
        batch.targets[at] = tokens[static_cast<size_t>(step + 1)];
      }
    }
    return batch;
  }

 private:
  // Steps of a stream that belong to a window: [first, second).
  [[nodiscard]] std::pair<int64_t, int64_t> range(int64_t epoch, int64_t window) const {
    if (lengths_.fixed()) {
      const int64_t steps = lengths_.draw(0, 0);
      return {window * steps, std::min(length_, (window + 1) * steps)};
    }
    const auto starts = plans_.get(epoch);
    return {starts->at(static_cast<size_t>(window)), starts->at(static_cast<size_t>(window + 1))};
  }

  [[nodiscard]] std::vector<int64_t> draw_starts(int64_t epoch) const {
    std::vector<int64_t> starts{0};
    while (starts.back() < length_) {
      const int64_t steps = lengths_.draw(epoch, static_cast<int64_t>(starts.size()) - 1);
      starts.push_back(std::min(length_, starts.back() + steps));
    }
    return starts;
  }

  // Tokens from `position` on; the one before the corpus is `</s>`.
  void read(int64_t epoch, int64_t position, std::span<int32_t> out) const {
    if (position < 0) {
      out[0] = end_of_sentence_;
      out = out.subspan(1);
      position = 0;
    }
    tokens_.read(position, out);
    singletons_.apply(epoch, position, out);
  }

  const TokenFile& tokens_;
  int64_t streams_;
  int64_t length_;  // of a stream
  int32_t end_of_sentence_;
  WindowLengths lengths_;
  UnknownSingletons singletons_;
  mutable EpochPlans<std::vector<int64_t>> plans_;  // with jitter: where windows start, and the end
};

}  // namespace

std::unique_ptr<BatchSource> make_stream_batches(const TokenFile& tokens, const Vocabulary& vocabulary,
                                                 const BatchOptions& options) {
  check_options(options);
  return std::make_unique<StreamBatches>(tokens, vocabulary, options);
}

}  // namespace hsm
