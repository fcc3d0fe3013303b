#include "decode/cpu_engine.h"

#include <algorithm>

#include "decode/ancestral_sampler.h"
#include "decode/candidate_search.h"
#include "decode/cpu_allowed_mass.h"
#include "decode/cpu_sequence_scorer.h"
#include "decode/cpu_word_lookup.h"
#include "decode/expander.h"
#include "decode/row_batch.h"

namespace hsm {
namespace {

// At least so many rows in a step, and so many for each thread; and inputs that a stream of lines may have
// under way.
constexpr int64_t kUsefulRows = 128;
constexpr int64_t kUsefulRowsPerThread = 16;
constexpr int64_t kUsefulInputs = 32;
constexpr int64_t kMostUsefulInputs = 1024;

class CpuEngine : public RowEngine {
 public:
  CpuEngine(Arena& arena, const Scorer& scorer, const WordFilter& filter, const EngineLimits& limits,
            ThreadPool& pool)
      : arena_(&arena),
        scorer_(&scorer),
        filter_(&filter),
        rows_(arena, scorer, limits.rows, pool, limits.carries),
        expander_(arena, scorer, limits.expansions) {}

  [[nodiscard]] int64_t words() const override { return scorer_->words(); }
  [[nodiscard]] int32_t end_of_sentence() const override { return scorer_->end_of_sentence(); }
  [[nodiscard]] int64_t ragged_clusters() const override {
    int64_t count = 0;
    for (int64_t c = 0; c < scorer_->clusters(); ++c) count += scorer_->cluster_words(c).size() > 1 ? 1 : 0;
    return count;
  }

  void step(std::span<const RowSource> sources, int64_t scored) override { rows_.step(sources, scored); }

  [[nodiscard]] std::unique_ptr<WordSearch> make_word_search(int64_t max_queries, int64_t max_parents,
                                                             int64_t /*most_words*/) override {
    return std::make_unique<CandidateSearch>(*arena_, rows_, expander_, *filter_, max_queries, max_parents);
  }
  [[nodiscard]] std::unique_ptr<AllowedMass> make_allowed_mass() override {
    return std::make_unique<CpuAllowedMass>(rows_, expander_, *filter_);
  }
  [[nodiscard]] std::unique_ptr<WordSampler> make_ancestral_sampler(const SamplingOptions& options,
                                                                    int64_t max_draws) override {
    return std::make_unique<AncestralSampler>(*arena_, rows_, expander_, *filter_, options, max_draws);
  }
  [[nodiscard]] std::unique_ptr<SequenceScorer> make_sequence_scorer(int64_t slots,
                                                                     int64_t max_sequences) override {
    return std::make_unique<CpuSequenceScorer>(*arena_, rows_, expander_, slots, max_sequences);
  }
  [[nodiscard]] std::unique_ptr<WordLookup> make_word_lookup(int64_t capacity) override {
    return std::make_unique<CpuWordLookup>(*arena_, rows_, expander_, capacity);
  }

  [[nodiscard]] int64_t expansions() const override { return expander_.total(); }

 private:
  Arena* arena_;
  const Scorer* scorer_;
  const WordFilter* filter_;
  RowBatch rows_;
  Expander expander_;
};

}  // namespace

int64_t CpuDecodeDevice::useful_rows() const {
  return std::max(kUsefulRows, kUsefulRowsPerThread * int64_t{pool_->threads()});
}

int64_t CpuDecodeDevice::useful_inputs() const {
  return std::max(kUsefulInputs, std::min(int64_t{pool_->threads()}, kMostUsefulInputs));
}

std::unique_ptr<RowEngine> CpuDecodeDevice::make_engine(Arena& arena, const WordFilter& filter,
                                                        const EngineLimits& limits) const {
  return std::make_unique<CpuEngine>(arena, *scorer_, filter, limits, *pool_);
}

}  // namespace hsm
