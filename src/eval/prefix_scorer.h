#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "eval/head_block.h"
#include "model/inference_model.h"

namespace hsm {

/// Scores sentences that have much in common, as the hypotheses of n-best lists: a beginning that several
/// share is run once. Each sentence gets the bits that it gets alone, for any number of threads.
class PrefixScorer {
 public:
  /// `end_of_sentence` is the word that stands before the first. Model and pool must outlive the object.
  PrefixScorer(const InferenceModel& model, int32_t end_of_sentence, ThreadPool& pool);
  ~PrefixScorer();

  /// Sentences of public ids, each from the start, its `</s>` included; log_probs[i] gets the sum over
  /// sentence i, in the order of its words.
  void score(std::span<const std::span<const int32_t>> sentences, std::span<double> log_probs);

  /// Words that the recurrent layers were fed since the beginning.
  [[nodiscard]] int64_t rows_fed() const noexcept { return rows_fed_; }

 private:
  struct Worker;

  void score_piece(std::span<const std::span<const int32_t>> sentences, std::span<const int32_t> order,
                   std::span<double> log_probs, Worker& worker) const;

  const InferenceModel* model_;
  ThreadPool* pool_;
  int32_t end_of_sentence_;
  int64_t rows_fed_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;  // one a thread, made when first used
};

}  // namespace hsm
