#include "eval/token_scorer.h"

#include <algorithm>

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

}  // namespace

/// What a thread needs for a group of sentences.
struct TokenScorer::Worker {
  explicit Worker(const InferenceModel& model) : block(model) {}

  HeadBlock block;
  HeadBlock::Scratch head_scratch;
  std::vector<float> state;
  std::vector<float> run_scratch;
  std::vector<int32_t> inputs;

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
      blocks_{HeadBlock(model), HeadBlock(model)},
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

void TokenScorer::score_stream(std::span<const int32_t> words, StreamState& state,
                               std::span<TokenScore> scores) {
  for (HeadBlock& block : blocks_) block.clear();
  HeadBlock* filling = &blocks_[0];
  HeadBlock* scoring = &blocks_[1];
  while (!words.empty() || scoring->size() > 0) {
    const auto rows = std::min(words.size(), static_cast<size_t>(filling->capacity()));
    const int64_t recurrent = rows > 0 ? 1 : 0;  // the first task, as it is the longest
    pool_->run(recurrent + scoring->tasks(), [&](int64_t task, int thread) {
      if (task < recurrent) {
        fill(words.first(rows), state, scores.first(rows), *filling);
      } else {
        scoring->run(task - recurrent, head_scratch_[static_cast<size_t>(thread)]);
      }
    });
    words = words.subspan(rows);
    scores = scores.subspan(rows);
    scoring->clear();
    filling->plan();
    std::swap(filling, scoring);
  }
}

void TokenScorer::fill(std::span<const int32_t> words, StreamState& state, std::span<TokenScore> scores,
                       HeadBlock& block) {
  float* scratch = reserve(run_scratch_, model_->run_scratch(kRunSteps, 1));
  const auto count = static_cast<int64_t>(words.size());
  for (int64_t first = 0; first < count; first += kRunSteps) {
    const int64_t steps = std::min(kRunSteps, count - first);
    const auto part = words.subspan(static_cast<size_t>(first), static_cast<size_t>(steps));
    inputs_.assign(1, state.last);
    inputs_.insert(inputs_.end(), part.begin(), part.end() - 1);
    model_->run(inputs_, steps, 1, state.state.data(), block.next_input(), scratch);
    for (int64_t step = 0; step < steps; ++step) {
      block.add(part[static_cast<size_t>(step)], &scores[static_cast<size_t>(first + step)]);
    }
    state.last = part.back();
  }
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
    model_->run(worker.inputs, steps, active, worker.state.data(), worker.block.next_input(), scratch);
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

}  // namespace hsm
