#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "eval/head_block.h"
#include "eval/text_scorer.h"
#include "eval/word_products.h"
#include "model/inference_model.h"
#include "model/scaled_weights.h"

namespace hsm {

/// Scores each word of a text given the words before it, on the CPU. The same bits for a text alone, among
/// others, cut into calls in any way, and for any number of threads. Working memory depends on the model and
/// the number of threads, not on the text.
class TokenScorer final : public TextScorer {
 public:
  /// `end_of_sentence` is the word that stands before the first. Model and pool must outlive the object.
  TokenScorer(const InferenceModel& model, int32_t end_of_sentence, ThreadPool& pool);
  ~TokenScorer() override;

  [[nodiscard]] StreamState start() const override;
  /// A layer's steps go one after another, so threads share the work as a pipeline: while a layer works on
  /// some steps, the next layer works on those before, and the head on those before that.
  void score_stream(std::span<const int32_t> words, StreamState& state,
                    std::span<TokenScore> scores) override;
  /// Sentences of like length run side by side.
  void score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                       std::span<TokenScore> scores) override;

 private:
  struct Sentence {
    int64_t first = 0;
    int64_t length = 0;
  };
  struct Worker;

  /// Successive words of a stream on their way through the layers to the head.
  struct Chunk {
    explicit Chunk(const InferenceModel& model);

    HeadBlock block;
    std::vector<int32_t> inputs;
    std::vector<float> activations;  ///< what the next layer reads
    std::vector<float> outputs;      ///< of the layer at work
  };

  void prepare_stream();
  void admit(std::span<const int32_t> words, StreamState& state, std::span<TokenScore> scores, Chunk& chunk);
  void run_layer(size_t layer, Chunk& chunk, float* state);
  void score_group(std::span<const Sentence> group, std::span<const int32_t> words,
                   std::span<TokenScore> scores, Worker& worker) const;
  [[nodiscard]] Worker& worker(int index);

  const InferenceModel* model_;
  ThreadPool* pool_;
  int32_t end_of_sentence_;
  WordProducts word_products_;
  WordProducts::Scratch product_scratch_;         // of the first layer at work on a stream
  std::vector<float> products_;                   // and its input products
  std::vector<Chunk> chunks_;                     // one a layer, one for the head; made when first used
  std::vector<std::vector<float>> run_scratch_;   // one a layer
  std::vector<HeadBlock::Scratch> head_scratch_;  // one a thread
  std::vector<std::unique_ptr<Worker>> workers_;  // one a thread, made when first used
};

/// A TokenScorer that holds its model and weights; what these were made from must outlive it.
std::unique_ptr<TextScorer> make_cpu_scorer(const ModelShape& shape, const HeadLayout& layout,
                                            ScaledWeights weights, int32_t end_of_sentence, ThreadPool& pool);

}  // namespace hsm
