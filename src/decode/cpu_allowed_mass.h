#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "decode/expander.h"
#include "decode/row_batch.h"
#include "decode/word_draw.h"
#include "decode/word_filter.h"

namespace hsm {

/// Subtracts from 1 what the words have that may not be generated; opens the clusters that hold one.
class CpuAllowedMass : public AllowedMass {
 public:
  /// All three outlive the object.
  CpuAllowedMass(const RowBatch& rows, Expander& expander, const WordFilter& filter);

  void run(std::span<MassQuestion> questions) override;

 private:
  void subtract_leaves(std::span<MassQuestion> questions);
  [[nodiscard]] bool blocked(const MassQuestion& question, int32_t word) const;

  const RowBatch* rows_;
  Expander* expander_;
  const WordFilter* filter_;
  const Scorer* scorer_;
  std::vector<int32_t> blocked_clusters_;  ///< of several words, that hold one which may be blocked
};

}  // namespace hsm
