#pragma once
#include "kernels/device/decode_kernels.h"
#include "kernels/device/head_memory.h"

// Arguments of the search's kernels from the passes of decode_kernels.h.
namespace hsm::kernels::device {

using DecodePrecision = Fma<float>;
using DecodeSearchArgs = SearchArgs<DecodePrecision>;

inline DecodeSearchArgs root_args(const DecodeHead& head, const RootRows& root, const HeadTiles& tiles) {
  DecodeSearchArgs args;
  HeadSizes sizes;
  sizes.tokens = root.rows;
  sizes.words = head.words;
  sizes.shortlist = head.shortlist;
  sizes.clusters = head.clusters;
  sizes.dim = head.dim;
  sizes.largest_cluster = head.largest_cluster;
  args.head.plan = plan_head(sizes, tiles);
  cut_root_for_search(args.head.plan);
  args.head.in.hidden = view_of(root.hidden, root.rows * head.dim);
  args.head.in.word = view_of(head.word, head.words * head.dim);
  args.head.in.cluster = view_of(head.cluster, head.clusters * head.dim);
  args.head.in.word_bias = view_of(head.word_bias, head.words);
  args.head.in.cluster_bias = view_of(head.cluster_bias, head.clusters);
  args.head.in.cluster_offsets = view_of(head.cluster_offsets, head.clusters + 1);
  args.rows = static_cast<int32_t>(root.rows);
  args.end_row = head.end_row;
  args.leaf_stride = head.largest_cluster;
  args.word_of_row = view_of(head.word_of_row, head.words);
  args.forbidden = view_of(head.forbidden, head.words / 32 + 1);
  args.root_logit = view_of(root.logit, root.rows * head.root());
  args.root_part = view_of(root.part, root.rows * args.head.plan.root_splits);
  return args;
}

/// With `queries` of `pairs` each to be expanded.
inline DecodeSearchArgs expansion_args(const DecodeHead& head, const RootRows& root,
                                       const ExpansionMemory& memory, int32_t queries, int32_t pairs,
                                       const HeadTiles& tiles) {
  DecodeSearchArgs args = root_args(head, root, tiles);
  const int64_t slots = int64_t{queries} * pairs;
  args.queries = queries;
  args.pairs_a_round = pairs;
  args.pair = view_of(memory.pair, slots);
  args.pair_count = view_of(memory.pair_count, queries);
  args.order = view_of(memory.order, slots);
  args.item_start = view_of(memory.item_start, slots + 1);
  args.item_count = view_of(memory.item_count, 1);
  args.leaf_logit = view_of(memory.leaf_logit, slots * args.leaf_stride);
  args.leaf_part = view_of(memory.leaf_part, slots);
  return args;
}

inline DecodeSearchArgs search_args(const SearchPass& pass, const HeadTiles& tiles) {
  DecodeSearchArgs args =
      expansion_args(pass.head, pass.root, pass.memory, pass.queries, pass.pairs_a_round, tiles);
  const int64_t slots = int64_t{pass.queries} * pass.pairs_a_round;
  args.kept = pass.kept;
  args.first_row = view_of(pass.first_row, pass.queries + 1);
  args.query_of_row = view_of(pass.query_of_row, pass.root.rows);
  args.score = view_of(pass.score, pass.root.rows);
  args.after = view_of(pass.after, pass.queries);
  args.root_log_sum = view_of(pass.root_log_sum, pass.root.rows);
  args.row_best = view_of(pass.row_best, pass.root.rows * pass.kept);
  args.last_pair = view_of(pass.last_pair, pass.queries);
  args.pair_best = view_of(pass.pair_best, slots * pass.kept);
  args.best = view_of(pass.best, int64_t{pass.queries} * pass.kept);
  args.more = view_of(pass.more, pass.queries);
  args.end_log_prob = view_of(pass.end_log_prob, pass.root.rows);
  args.expanded = view_of(pass.expanded, pass.queries);
  return args;
}

inline DecodeSearchArgs word_score_args(const WordScorePass& pass, const HeadTiles& tiles) {
  DecodeSearchArgs args = expansion_args(pass.head, pass.root, pass.memory, pass.questions, 1, tiles);
  args.first_row = view_of(pass.row, pass.questions);
  return args;
}

inline WordScore word_score_body(const WordScorePass& pass, int64_t parts) {
  return {
      pass.head.root(), parts,     pass.root.logit,           pass.root.part,         pass.row,
      pass.column,      pass.leaf, pass.head.largest_cluster, pass.memory.leaf_logit, pass.memory.leaf_part,
      pass.log_prob};
}

inline DrawArgs<DecodePrecision> draw_args(const DrawPass& pass, const HeadTiles& tiles) {
  DrawArgs<DecodePrecision> args;
  args.search = expansion_args(pass.head, pass.root, pass.memory, pass.draws, 1, tiles);
  args.search.first_row = view_of(pass.row, pass.draws);
  args.power = pass.power;
  args.key0 = pass.key0;
  args.key1 = pass.key1;
  args.starts = pass.starts;
  args.request = view_of(pass.request, pass.draws);
  args.drawn = view_of(pass.drawn, pass.draws);
  args.log_weight = view_of(pass.log_weight, pass.draws * pass.head.root());
  return args;
}

/// A linear layer as a root of `outputs` shortlist words.
inline DecodeSearchArgs linear_args(const LinearPass& pass, const HeadTiles& tiles) {
  DecodeHead head;
  head.words = head.shortlist = pass.outputs;
  head.dim = pass.inputs;
  head.word = pass.weight;
  head.word_bias = pass.bias;
  return root_args(head, {pass.rows, pass.x, pass.y, pass.part}, tiles);
}

/// Parts of a row's log-sum over so many columns: no function of the number of rows.
inline int64_t root_parts(int64_t columns, const HeadTiles& tiles) {
  HeadPlan plan;
  plan.sizes.shortlist = columns;
  plan.tiles = tiles;
  cut_root_for_search(plan);
  return plan.root_splits;
}

}  // namespace hsm::kernels::device
