#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/arena.h"
#include "decode/fixed_vector.h"
#include "decode/hypothesis_pool.h"
#include "decode/options.h"
#include "decode/path_ranking.h"
#include "decode/row_engine.h"
#include "decode/strategy.h"

namespace hsm {

/// Beam search through confusion networks: at each position every live path is made longer by every
/// alternative, and the best paths live on; of paths with the same words only the best one does. After the
/// last position the end symbol is scored. docs/decoding.md states the rules.
///
/// Alternatives of several words are phrases: their words are fed one a step in rows of their own, beside the
/// live paths, which are carried over meanwhile. A phrase is dropped as soon as its words so far put it below
/// the paths that are kept, as further words only lower it.
class NetworkSearch : public Strategy {
 public:
  NetworkSearch(Arena& arena, const NetworkOptions& options, RowEngine& engine, int64_t slots);

  /// Live paths, and phrases beside them.
  static int64_t rows_per_input(const NetworkOptions& options);

  [[nodiscard]] int64_t rows_per_input() const override { return rows_per_input(options_); }
  void begin(int64_t slot, const Prompt& prompt, const RowSource& source) override;
  [[nodiscard]] std::span<const RowSource> wanted(int64_t slot) const override;
  void step(std::span<const ActiveInput> active) override;
  void write(int64_t slot, const Prompt& prompt, ResultSink& sink) override;
  void report(DecodeStats& stats) const override;

 private:
  using Alternative = Network::Alternative;

  struct Path {
    double channel = 0;
    double log_prob = 0;
    uint64_t hash = 0;  ///< of its words
    int64_t words = 0;
    int64_t unknown = 0;  ///< of them
    int32_t node = 0;     ///< its last alternative in the pool
    int32_t last = 0;     ///< its last alternative
  };
  /// An alternative of several words after a live path.
  struct Phrase {
    double log_prob = 0;  ///< of the path and the words so far
    int32_t parent = 0;
    int32_t alternative = 0;
    int32_t scored = 0;  ///< words
    int32_t row = 0;     ///< of the state before the word that was scored last
  };
  enum class Stage { feeding, phrases };  ///< what the rows of the next step are for
  enum class Kind { word, phrase, end };  ///< what a question is about

  /// One input under search. Path i has row first_row + i, phrase k comes behind them.
  struct Slot {
    Slot(Arena& arena, const NetworkOptions& options);

    HypothesisPool pool;  ///< of alternatives
    std::span<Path> live;
    std::span<Path> next;
    std::span<int32_t> nodes;  ///< scratch for collecting
    std::span<PathCandidate> memory;
    std::span<Phrase> phrases;
    std::span<RowSource> sources;
    DistinctPaths candidates;
    const Network* network = nullptr;
    size_t position = 0;
    Stage stage = Stage::feeding;
    int64_t first_row = 0;
    int64_t live_count = 0;
    int64_t phrase_count = 0;
    int64_t wanted = 0;
    size_t fed = 0;                     ///< words of the alternatives that were taken
    int64_t cursor = 0;                 ///< pairs of a path and a phrase that have been taken up
    std::span<const Alternative> open;  ///< alternatives of the position being scored

    [[nodiscard]] bool at_end() const { return position == network->positions.size(); }
    [[nodiscard]] const Alternative& taken(const Path& path) const {
      return network->positions[position - 1][static_cast<size_t>(path.last)];
    }
  };

  [[nodiscard]] double total(double channel, double log_prob, int64_t words, int64_t unknown) const;
  void feed_more(Slot& slot) const;
  void ask_all(Slot& slot, int32_t index);
  void ask(int64_t row, int32_t word, int32_t index, Kind kind, int64_t place);
  void take(const WordQuestion& question, double log_prob);
  void offer(Slot& slot, int64_t parent, int64_t alternative, double log_prob) const;
  bool renew_phrases(Slot& slot, int32_t index);
  [[nodiscard]] bool keep(Slot& slot, const Phrase& phrase) const;
  void move_phrases_on(Slot& slot) const;
  void choose_paths(Slot& slot) const;
  void add_path(Slot& slot, const PathCandidate& candidate, Path& path) const;
  void rank(Slot& slot) const;

  NetworkOptions options_;
  int32_t end_of_sentence_;
  int64_t ragged_clusters_;  ///< clusters of several words
  std::unique_ptr<WordLookup> lookup_;
  WordLookup::Take take_;
  std::vector<Slot> slots_;
  std::span<int32_t> choices_;
  int64_t words_written_ = 0;
  int64_t possible_ = 0;
};

}  // namespace hsm
