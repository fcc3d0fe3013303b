#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "text/token_file.h"

namespace hsm {

/// An item and how often it stands beside another.
struct Neighbour {
  int32_t item = 0;
  uint32_t count = 0;
};

/// For each item its neighbours on one side, by rising item.
class NeighbourLists {
 public:
  /// `offsets` has an entry more than there are items.
  NeighbourLists(std::vector<int64_t> offsets, std::vector<Neighbour> neighbours)
      : offsets_(std::move(offsets)), neighbours_(std::move(neighbours)) {}

  [[nodiscard]] int64_t items() const noexcept { return static_cast<int64_t>(offsets_.size()) - 1; }
  [[nodiscard]] int64_t pairs() const noexcept { return static_cast<int64_t>(neighbours_.size()); }
  [[nodiscard]] std::span<const Neighbour> of(int64_t item) const {
    const auto first = static_cast<size_t>(offsets_[static_cast<size_t>(item)]);
    const auto last = static_cast<size_t>(offsets_[static_cast<size_t>(item) + 1]);
    return std::span(neighbours_).subspan(first, last - first);
  }
  /// The other side of the items below `items`: where a has neighbour b here, b has neighbour a there.
  [[nodiscard]] NeighbourLists transposed(int64_t items) const;

 private:
  std::vector<int64_t> offsets_;
  std::vector<Neighbour> neighbours_;
};

/// A token file, or where it is long an even sample of it, that counts may be taken from: at most kMostTokens
/// tokens, so that memory is bounded and counts fit into 32 bits.
class SampledTokens {
 public:
  static constexpr int64_t kMostTokens = int64_t{1} << 27;
  static constexpr int64_t kWindow = int64_t{1} << 18;

  /// `most` ≥ 1; the file must outlive this.
  explicit SampledTokens(const TokenFile& tokens, int64_t most = kMostTokens);

  [[nodiscard]] int64_t size() const noexcept { return size_; }
  /// Calls body for one window after the other.
  void for_each_window(const std::function<void(std::span<const int32_t>)>& body) const;

 private:
  const TokenFile* tokens_;
  int64_t windows_ = 0;
  int64_t size_ = 0;
};

/// What a pass over a text may collect, in bytes, where nothing else is asked for.
inline constexpr int64_t kPassBytes = int64_t{1} << 27;

/// Counts which item follows which. Item item_of[id] stands for token id. The last token is taken to be
/// followed by the first, so that an item has as many neighbours on either side as it has tokens.
/// The text is read as often as it takes to collect no more than `pass_bytes` at a time (4 a token), but for
/// an item that is more frequent. `progress` is called now and then, with the part that is done, and may
/// throw.
NeighbourLists count_successors(const SampledTokens& tokens, std::span<const int32_t> item_of, int64_t items,
                                ThreadPool& pool, int64_t pass_bytes,
                                const std::function<void(double)>& progress);

}  // namespace hsm
