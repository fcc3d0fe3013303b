#include "gpu/engine/window_rows.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>

#include "base/random.h"
#include "kernels/head.h"
#include "kernels/row_groups.h"

namespace hsm {
namespace {

using Rows = std::vector<int64_t>;

NumberRange append(std::vector<int32_t>& numbers, std::span<const int64_t> values) {
  const NumberRange range{static_cast<int64_t>(numbers.size()), static_cast<int64_t>(values.size())};
  std::transform(values.begin(), values.end(), std::back_inserter(numbers),
                 [](int64_t value) { return static_cast<int32_t>(value); });
  return range;
}

/// Adds the places of `rows` among `all`, both ascending.
NumberRange append_places(std::vector<int32_t>& numbers, const Rows& rows, const Rows& all) {
  Rows places;
  for (const int64_t row : rows) {
    places.push_back(std::lower_bound(all.begin(), all.end(), row) - all.begin());
  }
  return append(numbers, places);
}

/// Adds for each of `count` rows its place among `rows`, −1 for none.
NumberRange append_map(std::vector<int32_t>& numbers, const Rows& rows, int64_t count) {
  Rows places(static_cast<size_t>(count), -1);
  for (size_t i = 0; i < rows.size(); ++i) places[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  return append(numbers, places);
}

Rows union_of(const Rows& a, const Rows& b) {
  Rows both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

Rows input_rows(const Batch& batch, const HeadLayout& layout) {
  Rows rows;
  for (const int32_t word : batch.inputs) rows.push_back(layout.row_of_word[static_cast<size_t>(word)]);
  return rows;
}

Rows target_rows(const Batch& batch, const HeadLayout& layout) {
  Rows rows;
  for (const int32_t word : batch.targets) {
    rows.push_back(word == kNoTarget ? -1 : layout.row_of_word[static_cast<size_t>(word)]);
  }
  return rows;
}

Rows distinct(Rows rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

kernels::HeadShape shape_of(const HeadLayout& layout) {
  return {layout.words(), layout.shortlist(), 0, layout.cluster_offsets, layout.cluster_of_row};
}

}  // namespace

void append_factors(WindowRows& rows, float scale, double dropped, uint64_t seed, int64_t step) {
  std::vector<int32_t>& all = rows.numbers;
  const CounterRandom random(seed, Purpose::dropout_embedding_rows);
  const auto kept = static_cast<float>(1 / (1 - dropped));
  for (WindowPiece& piece : rows.pieces) {
    if (dropped == 0) break;
    piece.scales = {static_cast<int64_t>(all.size()), piece.inputs.count};
    for (int64_t i = 0; i < piece.inputs.count; ++i) {
      // A dropped row is dropped wherever the window reads it.
      const int32_t row = all[static_cast<size_t>(piece.inputs.first + i)];
      const double draw = random.uniform(static_cast<uint64_t>(step), static_cast<uint64_t>(row));
      all.push_back(std::bit_cast<int32_t>(draw < dropped ? 0.0F : kept));
    }
  }
  rows.scale = {static_cast<int64_t>(all.size()), 1};
  all.push_back(std::bit_cast<int32_t>(scale));
}

int64_t largest_cluster(const HeadLayout& layout) {
  int64_t most = 0;
  for (size_t c = 1; c < layout.cluster_offsets.size(); ++c) {
    most = std::max(most, layout.cluster_offsets[c] - layout.cluster_offsets[c - 1]);
  }
  return most;
}

WindowLister::WindowLister(const HeadLayout& layout, const StepPieces& pieces, bool tied, bool dense)
    : layout_(layout), pieces_(pieces), tied_(tied), dense_(dense) {
  for (int64_t c = 0; c < layout.clusters(); ++c) {
    const auto at = layout.cluster_offsets.begin() + c;
    cluster_rows_.push_back(at[1] - at[0]);
  }
  std::sort(cluster_rows_.begin(), cluster_rows_.end(), std::greater<>());
  std::partial_sum(cluster_rows_.begin(), cluster_rows_.end(), cluster_rows_.begin());
}

int64_t WindowLister::most_hit_rows(int64_t tokens) const {
  const auto clusters = std::min(static_cast<int64_t>(cluster_rows_.size()), tokens);
  return clusters == 0 ? 0 : cluster_rows_[static_cast<size_t>(clusters - 1)];
}

WindowRows WindowLister::list(const Batch& batch) const {
  const Rows read = distinct(input_rows(batch, layout_));
  Rows hit = kernels::touched_rows(shape_of(layout_), target_rows(batch, layout_));
  if (tied_) hit = union_of(hit, read);
  WindowRows rows;
  rows.embedding = append(rows.numbers, tied_ ? hit : read);
  rows.head = append(rows.numbers, hit);
  if (dense_) {
    rows.embedding_places = append_map(rows.numbers, tied_ ? hit : read, layout_.words());
    rows.head_places = append_map(rows.numbers, hit, layout_.words());
  }
  const auto groups = group_streams(batch.streams, pieces_.micro_batches);
  for (const StreamGroup& group : groups) {
    const Batch part = groups.size() == 1 ? batch : part_of(batch, group);
    WindowPiece piece;
    piece.group = group;
    piece.tokens = part.steps * part.streams;
    const Rows inputs = input_rows(part, layout_);
    const Rows targets = target_rows(part, layout_);
    kernels::RowGroups by_row;
    by_row.assign(inputs);
    piece.inputs = append(rows.numbers, inputs);
    piece.targets = append(rows.numbers, targets);
    piece.order = append(rows.numbers, by_row.order);
    piece.starts = append(rows.numbers, by_row.first);
    piece.places = append_places(rows.numbers, by_row.rows, tied_ ? hit : read);
    const int64_t most = pieces_.head_chunk == 0 ? piece.tokens : pieces_.head_chunk;
    for (int64_t first = 0; first < piece.tokens; first += most) {
      const int64_t count = std::min(most, piece.tokens - first);
      const std::span<const int64_t> some(targets.data() + first, static_cast<size_t>(count));
      const Rows touched = kernels::touched_rows(shape_of(layout_), some);
      piece.chunks.push_back({first, count, most_hit_rows(count), append_places(rows.numbers, touched, hit)});
    }
    rows.pieces.push_back(std::move(piece));
  }
  return rows;
}

}  // namespace hsm
