#pragma once
#include "base/thread_pool.h"
#include "decode/row_engine.h"
#include "decode/scorer.h"

namespace hsm {

/// The CPU: rows in host memory, in the arena, and a scorer that several threads call.
class CpuDecodeDevice : public DecodeDevice {
 public:
  /// Both outlive the object.
  CpuDecodeDevice(const Scorer& scorer, ThreadPool& pool) : scorer_(&scorer), pool_(&pool) {}

  [[nodiscard]] int64_t words() const override { return scorer_->words(); }
  [[nodiscard]] int64_t clusters() const override { return scorer_->clusters(); }
  [[nodiscard]] int64_t useful_rows() const override;
  [[nodiscard]] int64_t useful_inputs() const override;
  [[nodiscard]] std::unique_ptr<RowEngine> make_engine(Arena& arena, const WordFilter& filter,
                                                       const EngineLimits& limits) const override;

 private:
  const Scorer* scorer_;
  ThreadPool* pool_;
};

}  // namespace hsm
