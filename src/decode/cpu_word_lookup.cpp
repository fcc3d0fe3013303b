#include "decode/cpu_word_lookup.h"

#include <algorithm>
#include <tuple>

namespace hsm {

CpuWordLookup::CpuWordLookup(Arena& arena, const RowBatch& rows, Expander& expander, int64_t capacity)
    : rows_(&rows),
      expander_(&expander),
      scorer_(&rows.scorer()),
      open_(arena.take<Open>(capacity, "words asked for")) {}

void CpuWordLookup::ask(const WordQuestion& question, const Take& take) {
  const WordPlace place = scorer_->place(question.word);
  const auto root = rows_->root(question.row);
  if (place.cluster < 0) {
    take(question, double{root[static_cast<size_t>(place.index)]});
  } else if (scorer_->cluster_words(place.cluster).size() == 1) {
    take(question, double{root[static_cast<size_t>(scorer_->shortlist() + place.cluster)]});
  } else {
    open_[count_++] = {question, place};
    if (count_ == open_.size()) flush(take);
  }
}

void CpuWordLookup::flush(const Take& take) {
  const auto open = open_.first(count_);
  std::sort(open.begin(), open.end(), [](const Open& a, const Open& b) {
    return std::tie(a.question.row, a.place.cluster) < std::tie(b.question.row, b.place.cluster);
  });
  expander_->clear();
  for (size_t i = 0; i < count_; ++i) {
    const int32_t row = open[i].question.row;
    const int32_t cluster = open[i].place.cluster;
    if (i > 0 && row == open[i - 1].question.row && cluster == open[i - 1].place.cluster) continue;
    if (expander_->full()) answer(take);
    expander_->add({cluster, row, 0, static_cast<int32_t>(i)});
  }
  answer(take);
  count_ = 0;
}

void CpuWordLookup::answer(const Take& take) const {
  if (expander_->empty()) return;
  expander_->run(*rows_);
  for (size_t item = 0; item < expander_->items().size(); ++item) {
    const Expansion& expansion = expander_->items()[item];
    const auto leaves = expander_->leaves(static_cast<int64_t>(item));
    const double root =
        double{rows_->root(expansion.row)[static_cast<size_t>(scorer_->shortlist() + expansion.cluster)]};
    for (auto i = static_cast<size_t>(expansion.tag);
         i < count_ && open_[i].question.row == expansion.row && open_[i].place.cluster == expansion.cluster;
         ++i) {
      take(open_[i].question, root + double{leaves[static_cast<size_t>(open_[i].place.index)]});
    }
  }
  expander_->clear();
}

}  // namespace hsm
