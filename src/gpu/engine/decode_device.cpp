#include "gpu/engine/decode_device.h"

#include <utility>

#include "gpu/engine/decode_draws.h"
#include "gpu/engine/decode_rows.h"
#include "gpu/engine/decode_search.h"
#include "gpu/engine/decode_word_scores.h"

namespace hsm {
namespace {

// A GPU is busy with some hundred rows; inputs beyond these only wait for each other.
constexpr int64_t kUsefulRows = 1024;
constexpr int64_t kUsefulInputs = 64;

class DeviceRowEngine : public RowEngine {
 public:
  DeviceRowEngine(Arena& arena, const DecodeModel& model, const WordFilter& filter,
                  const EngineLimits& limits)
      : arena_(&arena),
        filter_(&filter),
        memory_(model.device, limits.device_bytes),
        rows_(arena, memory_, model, filter, limits) {}

  [[nodiscard]] int64_t words() const override { return rows_.head().words; }
  [[nodiscard]] int32_t end_of_sentence() const override { return rows_.model().end_of_sentence; }
  [[nodiscard]] int64_t ragged_clusters() const override { return rows_.model().ragged_clusters(); }

  void step(std::span<const RowSource> sources, int64_t scored) override { rows_.step(sources, scored); }

  [[nodiscard]] std::unique_ptr<WordSearch> make_word_search(int64_t max_queries, int64_t max_parents,
                                                             int64_t most_words) override {
    return std::make_unique<DecodeSearch>(*arena_, memory_, rows_, *filter_, max_queries, max_parents,
                                          most_words);
  }
  [[nodiscard]] std::unique_ptr<AllowedMass> make_allowed_mass() override {
    return std::make_unique<DecodeAllowedMass>(*arena_, rows_, word_scores(), *filter_);
  }
  [[nodiscard]] std::unique_ptr<WordSampler> make_ancestral_sampler(const SamplingOptions& options,
                                                                    int64_t max_draws) override {
    return std::make_unique<DecodeDraws>(*arena_, memory_, rows_, options, max_draws);
  }
  [[nodiscard]] std::unique_ptr<SequenceScorer> make_sequence_scorer(int64_t slots,
                                                                     int64_t max_sequences) override {
    return std::make_unique<DecodeSequenceScorer>(*arena_, memory_, rows_, word_scores(), slots,
                                                  max_sequences);
  }
  [[nodiscard]] std::unique_ptr<WordLookup> make_word_lookup(int64_t capacity) override {
    return std::make_unique<DecodeWordLookup>(*arena_, word_scores(), capacity);
  }

  [[nodiscard]] int64_t expansions() const override { return rows_.expansions(); }
  [[nodiscard]] std::span<const MemoryPart> device_memory() const override { return memory_.parts(); }

 private:
  DecodeWordScores& word_scores() {
    if (word_scores_ == nullptr) word_scores_ = std::make_unique<DecodeWordScores>(*arena_, memory_, rows_);
    return *word_scores_;
  }

  Arena* arena_;
  const WordFilter* filter_;
  DeviceArena memory_;
  DecodeRows rows_;
  std::unique_ptr<DecodeWordScores> word_scores_;
};

class DeviceDecodeDevice : public DecodeDevice {
 public:
  explicit DeviceDecodeDevice(DecodeModel model) : model_(std::move(model)) {}

  [[nodiscard]] int64_t words() const override { return model_.head.words; }
  [[nodiscard]] int64_t clusters() const override { return model_.head.clusters; }
  [[nodiscard]] int64_t useful_rows() const override { return kUsefulRows; }
  [[nodiscard]] int64_t useful_inputs() const override { return kUsefulInputs; }
  [[nodiscard]] uint64_t weight_copies() const override { return model_.bytes(); }
  [[nodiscard]] std::unique_ptr<RowEngine> make_engine(Arena& arena, const WordFilter& filter,
                                                       const EngineLimits& limits) const override {
    return std::make_unique<DeviceRowEngine>(arena, model_, filter, limits);
  }

 private:
  DecodeModel model_;
};

}  // namespace

std::unique_ptr<DecodeDevice> make_decode_device(const ModelShape& shape, const HeadLayout& layout,
                                                 const WeightView& weights, int32_t end_of_sentence,
                                                 at::Device device,
                                                 std::shared_ptr<kernels::device::DecodeKernels> kernels) {
  return std::make_unique<DeviceDecodeDevice>(
      DecodeModel(shape, layout, weights, end_of_sentence, device, std::move(kernels)));
}

}  // namespace hsm
