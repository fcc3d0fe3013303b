#include "eval/prefix_scorer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hsm {
namespace {

constexpr int64_t kLeastPiece = 32;  // sentences that a thread takes at a time
constexpr int64_t kLargestPiece = 256;

using Sentence = std::span<const int32_t>;

/// Sentences [first, last) of the piece, in order, that begin with the same words.
struct Branch {
  size_t first = 0;
  size_t last = 0;
  int64_t row = 0;  ///< of the state after those words
};

}  // namespace

/// What a thread needs. Branches of one depth are worked on together, those of the next come from them.
struct PrefixScorer::Worker {
  explicit Worker(const InferenceModel& scored)
      : model(&scored), state_size(scored.shape().state_size()), block(scored) {}

  void start(size_t sentences) {
    branches.assign(1, {0, sentences, 0});
    states.assign(static_cast<size_t>(state_size), 0.0F);
  }

  /// Feeds every branch its last word.
  void feed() {
    const auto rows = static_cast<int64_t>(inputs.size());
    scratch.resize(std::max(scratch.size(), static_cast<size_t>(model->run_scratch(1, rows))));
    heads.resize(std::max(heads.size(), static_cast<size_t>(rows * model->shape().head_dim())));
    model->run(inputs, 1, rows, states.data(), heads.data(), scratch.data());
    rows_fed += rows;
  }

  /// Has the word scored that the branch's row predicts.
  void predict(const Branch& branch, int32_t word, TokenScore* score) {
    const int64_t dim = model->shape().head_dim();
    if (block.room() == 0) flush();
    std::copy_n(heads.data() + branch.row * dim, dim, block.input(block.size()));
    block.add(word, score);
  }

  void flush() {
    block.plan();
    for (int64_t task = 0; task < block.tasks(); ++task) block.run(task, head_scratch);
    block.clear();
  }

  /// Replaces the branches by `next`, whose rows are those of the branches they come from.
  void descend() {
    next_states.resize(next.size() * static_cast<size_t>(state_size));
    float* to = next_states.data();
    int64_t row = 0;
    for (Branch& branch : next) {
      to = std::copy_n(states.data() + branch.row * state_size, state_size, to);
      branch.row = row++;
    }
    states.swap(next_states);
    branches.swap(next);
  }

  const InferenceModel* model;
  int64_t state_size;
  HeadBlock block;
  HeadBlock::Scratch head_scratch;
  std::vector<Branch> branches;
  std::vector<Branch> next;    // where the next word parts them
  std::vector<Branch> parted;  // the same and those that end with that word
  std::vector<TokenScore> scores;
  std::vector<int32_t> inputs;
  std::vector<float> states;
  std::vector<float> next_states;
  std::vector<float> heads;
  std::vector<float> scratch;
  int64_t rows_fed = 0;
};

PrefixScorer::PrefixScorer(const InferenceModel& model, int32_t end_of_sentence, ThreadPool& pool)
    : model_(&model),
      pool_(&pool),
      end_of_sentence_(end_of_sentence),
      workers_(static_cast<size_t>(pool.threads())) {}

PrefixScorer::~PrefixScorer() = default;

void PrefixScorer::score(std::span<const Sentence> sentences, std::span<double> log_probs) {
  std::fill(log_probs.begin(), log_probs.end(), 0.0);
  std::vector<int32_t> order(sentences.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Sentence left = sentences[static_cast<size_t>(a)];
    const Sentence right = sentences[static_cast<size_t>(b)];
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  });
  const auto count = static_cast<int64_t>(order.size());
  const int64_t share = (count + pool_->threads() - 1) / pool_->threads();
  const int64_t piece = std::clamp(share, kLeastPiece, kLargestPiece);
  pool_->run((count + piece - 1) / piece, [&](int64_t index, int thread) {
    std::unique_ptr<Worker>& worker = workers_[static_cast<size_t>(thread)];
    if (!worker) worker = std::make_unique<Worker>(*model_);
    const int64_t first = index * piece;
    score_piece(sentences,
                std::span(order).subspan(static_cast<size_t>(first),
                                         static_cast<size_t>(std::min(piece, count - first))),
                log_probs, *worker);
  });
  for (const auto& worker : workers_) {
    if (worker) rows_fed_ += std::exchange(worker->rows_fed, 0);
  }
}

void PrefixScorer::score_piece(std::span<const Sentence> sentences, std::span<const int32_t> order,
                               std::span<double> log_probs, Worker& worker) const {
  const auto sentence = [&](size_t place) { return sentences[static_cast<size_t>(order[place])]; };
  worker.start(order.size());
  for (size_t depth = 0; !worker.branches.empty(); ++depth) {
    worker.inputs.clear();
    for (const Branch& branch : worker.branches) {
      worker.inputs.push_back(depth == 0 ? end_of_sentence_ : sentence(branch.first)[depth - 1]);
    }
    worker.feed();

    worker.parted.clear();
    worker.next.clear();
    worker.scores.resize(order.size());
    for (const Branch& branch : worker.branches) {
      size_t first = branch.first;
      while (first < branch.last && sentence(first).size() == depth) ++first;
      while (first < branch.last) {
        const int32_t word = sentence(first)[depth];
        size_t last = first;
        while (last < branch.last && sentence(last)[depth] == word) ++last;
        const Branch part{first, last, branch.row};
        worker.predict(part, word, &worker.scores[worker.parted.size()]);
        worker.parted.push_back(part);
        if (sentence(last - 1).size() > depth + 1) worker.next.push_back(part);
        first = last;
      }
    }
    worker.flush();
    for (size_t part = 0; part < worker.parted.size(); ++part) {
      for (size_t place = worker.parted[part].first; place < worker.parted[part].last; ++place) {
        log_probs[static_cast<size_t>(order[place])] += worker.scores[part].log_prob();
      }
    }
    worker.descend();
  }
}

}  // namespace hsm
