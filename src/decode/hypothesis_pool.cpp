#include "decode/hypothesis_pool.h"

#include <algorithm>
#include <bit>

namespace hsm {
namespace {

constexpr int64_t kMarksInWord = 64;
// Nodes that may lie around before the first collection.
constexpr int64_t kLeastThreshold = 1024;

int64_t mark_words(int64_t nodes) {
  return (nodes + kMarksInWord - 1) / kMarksInWord;
}
size_t word_of(int32_t node) {
  return static_cast<size_t>(node / kMarksInWord);
}
uint64_t bit_of(int32_t node) {
  return uint64_t{1} << (node % kMarksInWord);
}

}  // namespace

HypothesisPool::HypothesisPool(Arena& arena, int64_t live, int64_t finished, int64_t max_length)
    : live_(live),
      nodes_(arena.take<Node>((live + finished) * max_length, "hypothesis pool")),
      committed_(arena.take<int32_t>(max_length, "hypothesis pool")),
      marks_(arena.take<uint64_t>(mark_words((live + finished) * max_length), "hypothesis pool")),
      ranks_(arena.take<int32_t>(mark_words((live + finished) * max_length), "hypothesis pool")) {
  clear();
}

void HypothesisPool::clear() noexcept {
  size_ = 0;
  committed_size_ = 0;
  threshold_ = std::min(std::max(kLeastThreshold, 4 * live_), static_cast<int64_t>(nodes_.size()));
}

int32_t HypothesisPool::add(int32_t parent, int32_t word) {
  const auto node = static_cast<int32_t>(size_++);
  nodes_[static_cast<size_t>(node)] = {parent, word};
  peak_ = std::max(peak_, size_);
  return node;
}

void HypothesisPool::collect(std::span<int32_t> live, std::span<int32_t> finished) {
  std::fill_n(marks_.begin(), mark_words(size_), 0);
  // Where a chain stops on another one's own part, the two meet later than that one met the first, so the
  // smallest stop is the last node that all share.
  int32_t shared = live.empty() ? kNoNode : live[0];
  for (size_t i = 0; i < live.size(); ++i) {
    const int32_t stop = mark_chain(live[i]);
    if (i > 0) shared = std::min(shared, stop);
  }
  for (const int32_t node : finished) mark_chain(node);
  commit(shared);
  count_marks();
  for (int32_t& node : live) node = renumbered(node);
  for (int32_t& node : finished) node = renumbered(node);
  close_gaps();
  threshold_ = std::min(std::max({kLeastThreshold, 4 * live_, 2 * size_ + live_}),
                        static_cast<int64_t>(nodes_.size()));
}

bool HypothesisPool::marked(int32_t node) const {
  return (marks_[word_of(node)] & bit_of(node)) != 0;
}

int32_t HypothesisPool::mark_chain(int32_t node) {
  while (node != kNoNode && !marked(node)) {
    marks_[word_of(node)] |= bit_of(node);
    node = nodes_[static_cast<size_t>(node)].parent;
  }
  return node;
}

void HypothesisPool::commit(int32_t node) {
  const int64_t first = committed_size_;
  for (; node != kNoNode; node = nodes_[static_cast<size_t>(node)].parent) {
    committed_[static_cast<size_t>(committed_size_++)] = nodes_[static_cast<size_t>(node)].word;
    marks_[word_of(node)] &= ~bit_of(node);
  }
  std::reverse(committed_.begin() + first, committed_.begin() + committed_size_);
}

void HypothesisPool::count_marks() {
  int32_t before = 0;
  for (size_t word = 0; word < static_cast<size_t>(mark_words(size_)); ++word) {
    ranks_[word] = before;
    before += std::popcount(marks_[word]);
  }
}

int32_t HypothesisPool::renumbered(int32_t node) const {
  if (node == kNoNode || !marked(node)) return kNoNode;
  return ranks_[word_of(node)] + std::popcount(marks_[word_of(node)] & (bit_of(node) - 1));
}

void HypothesisPool::close_gaps() {
  int32_t kept = 0;
  for (int32_t node = 0; node < size_; ++node) {
    if (!marked(node)) continue;
    const Node old = nodes_[static_cast<size_t>(node)];
    nodes_[static_cast<size_t>(kept++)] = {renumbered(old.parent), old.word};
  }
  size_ = kept;
}

void HypothesisPool::words(int32_t node, std::span<int32_t> words) const {
  size_t place = words.size();
  for (; node != kNoNode; node = nodes_[static_cast<size_t>(node)].parent) {
    words[--place] = nodes_[static_cast<size_t>(node)].word;
  }
  std::copy_n(committed_.begin(), place, words.begin());
}

}  // namespace hsm
