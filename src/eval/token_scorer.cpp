#include "eval/token_scorer.h"

#include <algorithm>
#include <utility>

namespace hsm {
namespace {

constexpr int64_t kRunSteps = 64;      // steps of one stream in a call: bounds the recurrent layers' scratch
constexpr int64_t kRunRows = 512;      // steps × streams in a call, for sentences
constexpr int64_t kGroupStreams = 32;  // sentences side by side
constexpr int64_t kLongSentence = 4096;  // from here on the threads share one sentence

template <class T>
T* reserve(std::vector<T>& buffer, int64_t count) {
  if (buffer.size() < static_cast<size_t>(count)) buffer.resize(static_cast<size_t>(count));
  return buffer.data();
}

/// A scorer that holds its model and the weights it was packed from.
class FrozenScorer final : public TextScorer {
 public:
  FrozenScorer(const ModelShape& shape, const HeadLayout& layout, ScaledWeights weights,
               int32_t end_of_sentence, ThreadPool& pool)
      : weights_(std::move(weights)),
        model_(shape, layout, weights_.view()),
        scorer_(model_, end_of_sentence, pool) {}

  [[nodiscard]] StreamState start() const override { return scorer_.start(); }
  void score_stream(std::span<const int32_t> words, StreamState& state,
                    std::span<TokenScore> scores) override {
    scorer_.score_stream(words, state, scores);
  }
  void score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                       std::span<TokenScore> scores) override {
    scorer_.score_sentences(words, lengths, scores);
  }

 private:
  ScaledWeights weights_;
  InferenceModel model_;
  TokenScorer scorer_;
};

}  // namespace

/// What a thread needs for a group of sentences.
struct TokenScorer::Worker {
  explicit Worker(const InferenceModel& model) : block(model) {}

  HeadBlock block;
  HeadBlock::Scratch head_scratch;
  std::vector<float> state;
  std::vector<float> run_scratch;
  std::vector<int32_t> inputs;
  std::vector<float> products;
  WordProducts::Scratch product_scratch;

  void score_block() {
    block.plan();
    for (int64_t task = 0; task < block.tasks(); ++task) block.run(task, head_scratch);
    block.clear();
  }
};

TokenScorer::TokenScorer(const InferenceModel& model, int32_t end_of_sentence, ThreadPool& pool)
    : model_(&model),
      pool_(&pool),
      end_of_sentence_(end_of_sentence),
      word_products_(model),
      head_scratch_(static_cast<size_t>(pool.threads())),
      workers_(static_cast<size_t>(pool.threads())) {}

TokenScorer::~TokenScorer() = default;

TokenScorer::Worker& TokenScorer::worker(int index) {
  std::unique_ptr<Worker>& made = workers_[static_cast<size_t>(index)];
  if (!made) made = std::make_unique<Worker>(*model_);
  return *made;
}

StreamState TokenScorer::start() const {
  return {std::vector<float>(static_cast<size_t>(model_->shape().state_size())), end_of_sentence_};
}

TokenScorer::Chunk::Chunk(const InferenceModel& model) : block(model) {
  const ModelShape& shape = model.shape();
  const int64_t widest =
      std::max(shape.embedding, *std::max_element(shape.hidden.begin(), shape.hidden.end()));
  activations.resize(static_cast<size_t>(block.capacity() * widest));
  outputs.resize(activations.size());
}

void TokenScorer::prepare_stream() {
  if (!chunks_.empty()) return;
  const size_t layers = model_->shape().hidden.size();
  chunks_.assign(layers + 1, Chunk(*model_));
  run_scratch_.assign(layers, std::vector<float>(static_cast<size_t>(model_->run_scratch(kRunSteps, 1))));
}

// In each round a layer has the chunk that the layer below had in the round before.
void TokenScorer::score_stream(std::span<const int32_t> words, StreamState& state,
                               std::span<TokenScore> scores) {
  prepare_stream();
  word_products_.learn(std::span(&state.last, 1), *pool_);
  word_products_.learn(words, *pool_);
  const auto layers = static_cast<int64_t>(run_scratch_.size());
  const int64_t capacity = chunks_.front().block.capacity();
  const auto count = static_cast<int64_t>(words.size());
  const int64_t chunks = (count + capacity - 1) / capacity;
  const auto chunk = [this](int64_t index) -> Chunk& {
    return chunks_[static_cast<size_t>(index) % chunks_.size()];
  };
  for (int64_t round = 0; round < chunks + layers; ++round) {
    if (round < chunks) {
      const auto first = static_cast<size_t>(round * capacity);
      const auto rows = static_cast<size_t>(std::min(capacity, count - round * capacity));
      admit(words.subspan(first, rows), state, scores.subspan(first, rows), chunk(round));
    }
    const int64_t first_layer = std::max<int64_t>(0, round - chunks + 1);
    const int64_t recurrent = std::max<int64_t>(0, std::min(layers, round + 1) - first_layer);
    const HeadBlock* scoring = round >= layers ? &chunk(round - layers).block : nullptr;
    pool_->run(recurrent + (scoring == nullptr ? 0 : scoring->tasks()), [&](int64_t task, int thread) {
      if (task < recurrent) {
        const int64_t layer = first_layer + task;
        run_layer(static_cast<size_t>(layer), chunk(round - layer), state.state.data());
      } else {
        scoring->run(task - recurrent, head_scratch_[static_cast<size_t>(thread)]);
      }
    });
  }
}

void TokenScorer::admit(std::span<const int32_t> words, StreamState& state, std::span<TokenScore> scores,
                        Chunk& chunk) {
  chunk.inputs.assign(1, state.last);
  chunk.inputs.insert(chunk.inputs.end(), words.begin(), words.end() - 1);
  state.last = words.back();
  chunk.block.clear();
  for (size_t place = 0; place < words.size(); ++place) chunk.block.add(words[place], &scores[place]);
  chunk.block.plan();
}

void TokenScorer::run_layer(size_t layer, Chunk& chunk, float* state) {
  const ModelShape& shape = model_->shape();
  const int64_t input = shape.layer_input(layer);
  const int64_t hidden = shape.hidden[layer];
  const auto rows = static_cast<int64_t>(chunk.inputs.size());
  const bool last = layer + 1 == shape.hidden.size();
  float* output = last && !shape.has_projection() ? chunk.block.input(0) : chunk.outputs.data();
  for (int64_t first = 0; first < rows; first += kRunSteps) {
    const int64_t steps = std::min(kRunSteps, rows - first);
    float* scratch = run_scratch_[layer].data();
    if (layer == 0) {
      float* products = reserve(products_, kRunSteps * model_->product_width());
      word_products_.fill(
          std::span(chunk.inputs).subspan(static_cast<size_t>(first), static_cast<size_t>(steps)), products,
          product_scratch_);
      model_->run_first_layer(products, steps, 1, state, output + first * hidden, scratch);
    } else {
      model_->run_layer(layer, chunk.activations.data() + first * input, steps, 1, state,
                        output + first * hidden, scratch);
    }
  }
  if (last && shape.has_projection()) model_->project(output, rows, chunk.block.input(0));
  chunk.activations.swap(chunk.outputs);
}

void TokenScorer::score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                                  std::span<TokenScore> scores) {
  std::vector<Sentence> sentences;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    if (length >= kLongSentence) {
      StreamState state = start();
      score_stream(words.subspan(static_cast<size_t>(first), static_cast<size_t>(length)), state,
                   scores.subspan(static_cast<size_t>(first), static_cast<size_t>(length)));
    } else if (length > 0) {
      sentences.push_back({first, length});
    }
    first += length;
  }
  std::stable_sort(sentences.begin(), sentences.end(),
                   [](const Sentence& a, const Sentence& b) { return a.length > b.length; });
  const auto count = static_cast<int64_t>(sentences.size());
  word_products_.learn(std::span(&end_of_sentence_, 1), *pool_);
  word_products_.learn(words, *pool_);
  const int64_t share = (count + pool_->threads() - 1) / pool_->threads();
  const int64_t streams = std::clamp<int64_t>(share, 1, kGroupStreams);
  pool_->run((count + streams - 1) / streams, [&](int64_t group, int thread) {
    const int64_t begin = group * streams;
    score_group(std::span(sentences).subspan(static_cast<size_t>(begin),
                                             static_cast<size_t>(std::min(streams, count - begin))),
                words, scores, worker(thread));
  });
}

// Sentences come longest first, so those still running are always the first `active` streams.
void TokenScorer::score_group(std::span<const Sentence> group, std::span<const int32_t> words,
                              std::span<TokenScore> scores, Worker& worker) const {
  const int64_t state_size = model_->shape().state_size();
  worker.block.clear();
  worker.state.assign(group.size() * static_cast<size_t>(state_size), 0.0F);
  auto active = static_cast<int64_t>(group.size());
  for (int64_t step = 0; active > 0;) {
    if (worker.block.room() < active) worker.score_block();
    const int64_t most = std::max<int64_t>(1, std::min(kRunRows, worker.block.room()) / active);
    const int64_t steps = std::min(most, group[static_cast<size_t>(active) - 1].length - step);
    worker.inputs.clear();
    for (int64_t t = step; t < step + steps; ++t) {
      for (int64_t stream = 0; stream < active; ++stream) {
        const int64_t place = group[static_cast<size_t>(stream)].first + t;
        worker.inputs.push_back(t == 0 ? end_of_sentence_ : words[static_cast<size_t>(place) - 1]);
      }
    }
    float* scratch = reserve(worker.run_scratch, model_->run_scratch(steps, active));
    float* products = reserve(worker.products, steps * active * model_->product_width());
    word_products_.fill(worker.inputs, products, worker.product_scratch);
    model_->run_products(products, steps, active, worker.state.data(),
                         worker.block.input(worker.block.size()), scratch);
    for (int64_t t = step; t < step + steps; ++t) {
      for (int64_t stream = 0; stream < active; ++stream) {
        const auto place = static_cast<size_t>(group[static_cast<size_t>(stream)].first + t);
        worker.block.add(words[place], &scores[place]);
      }
    }
    step += steps;
    while (active > 0 && group[static_cast<size_t>(active) - 1].length == step) --active;
  }
  worker.score_block();
}

std::unique_ptr<TextScorer> make_cpu_scorer(const ModelShape& shape, const HeadLayout& layout,
                                            ScaledWeights weights, int32_t end_of_sentence,
                                            ThreadPool& pool) {
  return std::make_unique<FrozenScorer>(shape, layout, std::move(weights), end_of_sentence, pool);
}

}  // namespace hsm
