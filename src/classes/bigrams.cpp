#include "classes/bigrams.h"

#include <algorithm>
#include <numeric>

namespace hsm {
namespace {

// Calls body(item, next item) for each pair, and progress(part of the text) before each window.
template <class Body>
void for_each_pair(const SampledTokens& tokens, std::span<const int32_t> item_of,
                   const std::function<void(double)>& progress, Body&& body) {
  int64_t read = 0;
  int32_t first = -1;
  int32_t before = -1;
  tokens.for_each_window([&](std::span<const int32_t> window) {
    progress(static_cast<double>(read) / static_cast<double>(tokens.size()));
    read += static_cast<int64_t>(window.size());
    for (const int32_t token : window) {
      const int32_t item = item_of[static_cast<size_t>(token)];
      if (before < 0) {
        first = item;
      } else {
        body(before, item);
      }
      before = item;
    }
  });
  if (before >= 0) body(before, first);
}

std::vector<int64_t> count_items(const SampledTokens& tokens, std::span<const int32_t> item_of,
                                 int64_t items) {
  std::vector<int64_t> counts(static_cast<size_t>(items));
  tokens.for_each_window([&](std::span<const int32_t> window) {
    for (const int32_t token : window) ++counts[static_cast<size_t>(item_of[static_cast<size_t>(token)])];
  });
  return counts;
}

// Appends the different values of `sorted` and how often each is there.
void count_runs(std::span<const int32_t> sorted, std::vector<Neighbour>& neighbours) {
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[i]) ++end;
    neighbours.push_back({sorted[i], static_cast<uint32_t>(end - i)});
    i = end;
  }
}

}  // namespace

SampledTokens::SampledTokens(const TokenFile& tokens, int64_t most)
    : tokens_(&tokens),
      windows_(std::max<int64_t>(1, std::min(tokens.size(), most) / kWindow)),
      size_(std::min({tokens.size(), most, windows_ * kWindow})) {
  if (tokens.size() <= most) {
    windows_ = (tokens.size() + kWindow - 1) / kWindow;
    size_ = tokens.size();
  }
}

void SampledTokens::for_each_window(const std::function<void(std::span<const int32_t>)>& body) const {
  std::vector<int32_t> window;
  int64_t left = size_;
  for (int64_t w = 0; w < windows_; ++w) {
    window.resize(static_cast<size_t>(std::min(left, kWindow)));
    left -= static_cast<int64_t>(window.size());
    // All of the text has its windows one after the other; a sample has them as far apart as can be.
    const int64_t first =
        size_ == tokens_->size()
            ? w * kWindow
            : static_cast<int64_t>(static_cast<double>(tokens_->size() - kWindow) * static_cast<double>(w) /
                                   static_cast<double>(std::max<int64_t>(1, windows_ - 1)));
    tokens_->read(first, window);
    body(window);
  }
}

NeighbourLists count_successors(const SampledTokens& tokens, std::span<const int32_t> item_of, int64_t items,
                                ThreadPool& pool, int64_t pass_bytes,
                                const std::function<void(double)>& progress) {
  const std::vector<int64_t> counts = count_items(tokens, item_of, items);
  std::vector<int64_t> offsets{0};
  std::vector<Neighbour> neighbours;
  std::vector<int32_t> successors;
  std::vector<int64_t> ends;
  const auto all = static_cast<double>(std::max<int64_t>(1, tokens.size()));
  int64_t done = 0;
  for (int64_t first = 0; first < items;) {
    // As many items as fit into a pass, one at least.
    int64_t last = first;
    int64_t room = pass_bytes / static_cast<int64_t>(sizeof(int32_t));
    ends.clear();
    int64_t place = 0;
    while (last < items && (last == first || counts[static_cast<size_t>(last)] <= room)) {
      room -= counts[static_cast<size_t>(last)];
      ends.push_back(place);
      place += counts[static_cast<size_t>(last++)];
    }
    successors.resize(static_cast<size_t>(place));
    const auto of_pass = [&](double part) {
      progress((static_cast<double>(done) + part * static_cast<double>(place)) / all);
    };
    for_each_pair(tokens, item_of, of_pass, [&](int32_t item, int32_t next) {
      if (item < first || item >= last) return;
      successors[static_cast<size_t>(ends[static_cast<size_t>(item - first)]++)] = next;
    });
    const auto list = [&](int64_t item) {
      const auto begin = static_cast<size_t>(item == 0 ? 0 : ends[static_cast<size_t>(item - 1)]);
      return std::span(successors)
          .subspan(begin, static_cast<size_t>(ends[static_cast<size_t>(item)]) - begin);
    };
    const int64_t listed = last - first;
    pool.run(listed, [&](int64_t item, int /*worker*/) { std::sort(list(item).begin(), list(item).end()); });
    for (int64_t i = 0; i < listed; ++i) {
      count_runs(list(i), neighbours);
      offsets.push_back(static_cast<int64_t>(neighbours.size()));
    }
    first = last;
    done += place;
  }
  return {std::move(offsets), std::move(neighbours)};
}

NeighbourLists NeighbourLists::transposed(int64_t items) const {
  std::vector<int64_t> offsets(static_cast<size_t>(items) + 1);
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.item < items) ++offsets[static_cast<size_t>(neighbour.item) + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  std::vector<Neighbour> turned(static_cast<size_t>(offsets.back()));
  for (int64_t item = 0; item < this->items(); ++item) {
    for (const Neighbour& neighbour : of(item)) {
      if (neighbour.item >= items) continue;
      const auto at = static_cast<size_t>(next[static_cast<size_t>(neighbour.item)]++);
      turned[at] = {static_cast<int32_t>(item), neighbour.count};
    }
  }
  return {std::move(offsets), std::move(turned)};
}

}  // namespace hsm
