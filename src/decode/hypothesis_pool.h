#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"

namespace hsm {

inline constexpr int32_t kNoNode = -1;

/// The words of all hypotheses of one input as a tree of (parent, word) nodes, 8 bytes each.
///
/// A parent has a smaller index than its children, and kNoNode as a parent means "preceded by the committed
/// prefix": words that all live hypotheses share are moved out of the tree into a plain array, of which a
/// hypothesis of n words with k nodes uses the first n − k. collect() does that, drops the nodes that no
/// hypothesis reaches any more, and closes the gaps; it is due when the tree has doubled, so that memory in
/// use follows what is reachable, not what was ever made.
class HypothesisPool {
 public:
  /// Room for any search of so many hypotheses (live and finished) of at most `max_length` words.
  HypothesisPool(Arena& arena, int64_t live, int64_t finished, int64_t max_length);

  void clear() noexcept;
  /// True when so many more nodes call for collect() first.
  [[nodiscard]] bool collection_due(int64_t more) const noexcept { return size_ + more > threshold_; }
  /// A new node. At most collection_due's `more` between two questions.
  int32_t add(int32_t parent, int32_t word);
  /// Keeps what `live` and `finished` reach and renumbers both. Later nodes must descend from `live`.
  void collect(std::span<int32_t> live, std::span<int32_t> finished);

  /// The words of a hypothesis of words.size() words that ends in `node`.
  void words(int32_t node, std::span<int32_t> words) const;

  [[nodiscard]] int64_t size() const noexcept { return size_; }
  [[nodiscard]] int64_t committed() const noexcept { return committed_size_; }
  /// Most nodes held at once since the beginning.
  [[nodiscard]] int64_t peak() const noexcept { return peak_; }

 private:
  struct Node {
    int32_t parent;
    int32_t word;
  };

  [[nodiscard]] bool marked(int32_t node) const;
  /// Marks a node and what it descends from, as far as that has no mark yet; returns where it stopped.
  int32_t mark_chain(int32_t node);
  /// Moves `node` and what it descends from to the committed prefix and takes their marks away.
  void commit(int32_t node);
  void count_marks();
  /// The index that a node gets; kNoNode for one without a mark.
  [[nodiscard]] int32_t renumbered(int32_t node) const;
  void close_gaps();

  int64_t live_;
  int64_t size_ = 0;
  int64_t threshold_ = 0;
  int64_t peak_ = 0;
  int64_t committed_size_ = 0;
  std::span<Node> nodes_;
  std::span<int32_t> committed_;
  std::span<uint64_t> marks_;  ///< one bit a node
  std::span<int32_t> ranks_;   ///< marks before each word of marks_
};

}  // namespace hsm
