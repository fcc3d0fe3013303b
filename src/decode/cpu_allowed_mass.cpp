#include "decode/cpu_allowed_mass.h"

#include <algorithm>
#include <cmath>

namespace hsm {

CpuAllowedMass::CpuAllowedMass(const RowBatch& rows, Expander& expander, const WordFilter& filter)
    : rows_(&rows), expander_(&expander), filter_(&filter), scorer_(&rows.scorer()) {
  if (filter.bits().empty()) return;  // the arena measures
  for (int32_t cluster = 0; cluster < scorer_->clusters(); ++cluster) {
    const auto words = scorer_->cluster_words(cluster);
    const bool concerned = std::any_of(words.begin(), words.end(), [&](int32_t word) {
      return !filter.allows(word) || word == scorer_->end_of_sentence();
    });
    if (words.size() > 1 && concerned) blocked_clusters_.push_back(cluster);
  }
}

bool CpuAllowedMass::blocked(const MassQuestion& question, int32_t word) const {
  return !filter_->allows(word) || (word == scorer_->end_of_sentence() && !question.end_allowed);
}

void CpuAllowedMass::run(std::span<MassQuestion> questions) {
  const auto shortlist = scorer_->shortlist_words();
  for (MassQuestion& question : questions) {
    question.mass = 1;
    const auto root = rows_->root(question.row);
    for (size_t column = 0; column < shortlist.size(); ++column) {
      if (blocked(question, shortlist[column])) question.mass -= std::exp(double{root[column]});
    }
    for (int64_t cluster = 0; cluster < scorer_->clusters(); ++cluster) {
      const auto words = scorer_->cluster_words(cluster);
      if (words.size() != 1 || !blocked(question, words[0])) continue;
      question.mass -= std::exp(double{root[shortlist.size() + static_cast<size_t>(cluster)]});
    }
  }
  expander_->clear();
  for (size_t i = 0; i < questions.size(); ++i) {
    for (const int32_t cluster : blocked_clusters_) {
      if (expander_->full()) subtract_leaves(questions);
      expander_->add({cluster, static_cast<int32_t>(questions[i].row), static_cast<int32_t>(i), 0});
    }
  }
  subtract_leaves(questions);
}

void CpuAllowedMass::subtract_leaves(std::span<MassQuestion> questions) {
  if (expander_->empty()) return;
  expander_->run(*rows_);
  for (size_t i = 0; i < expander_->items().size(); ++i) {
    const Expansion& item = expander_->items()[i];
    MassQuestion& question = questions[static_cast<size_t>(item.owner)];
    const double root =
        double{rows_->root(item.row)[static_cast<size_t>(scorer_->shortlist() + item.cluster)]};
    const auto words = scorer_->cluster_words(item.cluster);
    const auto leaves = expander_->leaves(static_cast<int64_t>(i));
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (blocked(question, words[leaf])) question.mass -= std::exp(root + double{leaves[leaf]});
    }
  }
  expander_->clear();
}

}  // namespace hsm
