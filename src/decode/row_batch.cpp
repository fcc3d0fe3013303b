#include "decode/row_batch.h"

#include <algorithm>
#include <cmath>

namespace hsm {
namespace {

// Below so many rows a piece isn't worth waking another thread; above, scratch would only grow.
constexpr int64_t kLeastPiece = 8;
constexpr int64_t kLargestPiece = 64;

int64_t piece_rows(int64_t rows, int threads) {
  return std::clamp((rows + threads - 1) / threads, kLeastPiece, kLargestPiece);
}

}  // namespace

RowBatch::RowBatch(Arena& arena, const Scorer& scorer, int64_t max_rows, ThreadPool& pool, bool carries)
    : scorer_(&scorer),
      pool_(&pool),
      state_size_(scorer.state_size()),
      head_size_(scorer.head_size()),
      root_size_(scorer.shortlist() + scorer.clusters()),
      max_piece_(std::min(max_rows, piece_rows(max_rows, pool.threads()))),
      scratch_size_(scorer.scratch_size(max_piece_)),
      states_{arena.take<float>(max_rows * state_size_, "states"),
              arena.take<float>(max_rows * state_size_, "states")},
      carries_(carries),
      heads_{arena.take<float>(max_rows * head_size_, "head inputs"),
             arena.take<float>(carries ? max_rows * head_size_ : 0, "head inputs")},
      root_(arena.take<float>(max_rows * root_size_, "root scores")),
      scratch_(arena.take<float>(scratch_size_ * pool.threads(), "layer scratch")),
      tokens_(arena.take<int32_t>(max_rows, "rows")) {}

std::span<const float> RowBatch::state(int64_t row) const {
  return states_[current_].subspan(static_cast<size_t>(row * state_size_), static_cast<size_t>(state_size_));
}

std::span<const float> RowBatch::root(int64_t row) const {
  return root_.subspan(static_cast<size_t>(row * root_size_), static_cast<size_t>(root_size_));
}

template <class Body>
void RowBatch::for_pieces(int64_t rows, const Body& body) {
  const int64_t piece = std::min(piece_rows(rows, pool_->threads()), max_piece_);
  pool_->run((rows + piece - 1) / piece, [&](int64_t item, int worker) {
    const int64_t first = item * piece;
    body(first, std::min(piece, rows - first), worker);
  });
}

void RowBatch::step(std::span<const RowSource> sources, int64_t scored) {
  float* next = spare_states().data();
  const float* heads = heads_[head_].data();
  if (carries_) head_ = 1 - head_;
  for (size_t i = 0; i < sources.size(); ++i) {
    float* to = next + static_cast<int64_t>(i) * state_size_;
    if (sources[i].row == kZeroState) {
      std::fill_n(to, state_size_, 0.0F);
    } else {
      std::copy_n(states_[current_].data() + sources[i].row * state_size_, state_size_, to);
    }
    tokens_[i] = sources[i].token;
    if (sources[i].token == kCarried) {
      std::copy_n(heads + sources[i].row * head_size_, head_size_,
                  heads_[head_].data() + static_cast<int64_t>(i) * head_size_);
    }
  }
  feed(spare_states(), tokens_.first(sources.size()), scored);
  current_ = 1 - current_;
}

// Rows that are carried stand between runs of others.
void RowBatch::advance(std::span<const int32_t> tokens, float* states, float* heads, float* scratch) const {
  const auto is_carried = [](int32_t token) { return token == kCarried; };
  for (auto first = tokens.begin(); first != tokens.end();) {
    first = std::find_if_not(first, tokens.end(), is_carried);
    const auto end = std::find_if(first, tokens.end(), is_carried);
    const int64_t row = first - tokens.begin();
    if (first != end) {
      scorer_->advance({first, end}, states + row * state_size_, heads + row * head_size_, scratch);
    }
    first = end;
  }
}

void RowBatch::feed(std::span<float> states, std::span<const int32_t> tokens, int64_t scored) {
  for_pieces(static_cast<int64_t>(tokens.size()), [&](int64_t first, int64_t rows, int worker) {
    float* head = heads_[head_].data() + first * head_size_;
    advance(tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(rows)),
            states.data() + first * state_size_, head, scratch_.data() + worker * scratch_size_);
    const int64_t to_score = std::clamp<int64_t>(scored - first, 0, rows);
    if (to_score > 0) scorer_->root(head, to_score, root_.data() + first * root_size_);
  });
  for (int64_t row = 0; row < scored; ++row) {
    if (std::isnan(root_[static_cast<size_t>(row * root_size_)])) {
      throw not_numbers();
    }
  }
}

}  // namespace hsm
