#pragma once
#include <cmath>

#include "kernels/device/device_kernels.h"
#include "kernels/device/dropout_body.h"
#include "kernels/device/penalty_bodies.h"
#include "kernels/device/row_bodies.h"

namespace hsm::kernels::device {

/// All kernels but the head's, over a launcher: launch(count, body) calls body(i) for i in [0, count) in any
/// order, after all that was launched before.
template <class Launch>
class IndexKernels : public DeviceKernels {
 public:
  IndexKernels(Launch launch, ElementType type) : launch_(launch), type_(type) {}

  void gather_rows(const void* table, int64_t width, const int32_t* rows, const float* scales, int64_t tokens,
                   void* out) override {
    with_element([&](auto element) {
      using T = decltype(element);
      launch_(tokens * width,
              GatherRows<T>{static_cast<const T*>(table), width, rows, scales, static_cast<T*>(out)});
    });
  }

  void sum_rows(const void* gradient, int64_t width, const int32_t* order, const int32_t* starts,
                const float* scales, int64_t rows, float* out) override {
    with_element([&](auto element) {
      using T = decltype(element);
      launch_(rows * width, SumRows<T>{static_cast<const T*>(gradient), width, order, starts, scales, out});
    });
  }

  void add_rows(const float* from, const int32_t* places, int64_t width, int64_t rows, float* to) override {
    launch_(rows * width, AddRows{from, places, width, to});
  }

  void dropout(const MaskPlace& place, void* values) override {
    if (place.probability <= 0) return;
    const DropoutMask mask = mask_of(place);
    with_element([&](auto element) {
      using T = decltype(element);
      const int64_t groups = divide_up(place.units, DropUnits<T>::kUnits);
      launch_(place.times * place.streams * groups, DropUnits<T>{mask, static_cast<T*>(values)});
    });
  }

  void add_activation_penalty(const PenaltyPlace& place) override {
    with_element([&](auto element) {
      using T = decltype(element);
      launch_(place.steps * place.streams * place.units,
              AddActivationPenalty<T>{place.targets, place.units, place.factor,
                                      static_cast<const T*>(place.output), static_cast<T*>(place.gradient)});
    });
  }

  void add_temporal_penalty(const PenaltyPlace& place) override {
    with_element([&](auto element) {
      using T = decltype(element);
      launch_(place.steps * place.streams * place.units,
              AddTemporalPenalty<T>{place.targets, place.steps, place.streams, place.units, place.factor,
                                    static_cast<const T*>(place.output), static_cast<T*>(place.gradient)});
    });
  }

  void sum_of_squares(const GradientView& gradient, double* squares, double* scratch) override {
    const int64_t parts = smaller<int64_t>(gradient.count, kNormParts);
    const int64_t sums = smaller<int64_t>(parts, kNormSums);
    launch_(parts, SumSquares{gradient.values, gradient.count, parts, scratch});
    launch_(sums, SumParts{scratch, parts, sums, scratch + kNormParts});
    launch_(1, SumParts{scratch + kNormParts, sums, 1, squares});
  }

  void clip_norm(const ClipNorm& clip) override { launch_(1, clip); }

  void update(const UpdateValues<void>& values, int64_t count) override {
    with_element([&](auto element) {
      using T = decltype(element);
      launch_(count, UpdateValues<T>{values.rule, values.outcome, values.gradient, values.rows, values.places,
                                     values.width, values.value, values.first, values.second,
                                     static_cast<T*>(values.copy)});
    });
  }

  void average(const AverageValues& values, int64_t count) override { launch_(count, values); }

 protected:
  [[nodiscard]] ElementType type() const { return type_; }

  /// f(T{}) with the elements' type.
  template <class F>
  void with_element(F f) {
    switch (type_) {
      case ElementType::f32:
        return f(float{});
      case ElementType::bf16:
        return f(BFloat16{});
      case ElementType::f16:
        return f(Half{});
    }
  }

  Launch launch_;

 private:
  static constexpr int64_t kNormParts = 16384;
  static constexpr int64_t kNormSums = 128;
  static_assert(kNormScratch == kNormParts + kNormSums, "");

  // As CounterRandom and apply_dropout have it.
  static DropoutMask mask_of(const MaskPlace& place) {
    DropoutMask mask{};
    mask.key0 = static_cast<uint32_t>(place.seed) ^ (place.purpose * 0x85EBCA6BU);
    mask.key1 = static_cast<uint32_t>(place.seed >> 32) ^ (place.purpose * 0xC2B2AE35U);
    mask.major = (static_cast<uint64_t>(place.step) << 8) | static_cast<uint64_t>(place.layer);
    mask.threshold = static_cast<uint32_t>(std::lround(place.probability * 65536));
    mask.scale = static_cast<float>(1 / (1 - place.probability));
    mask.streams = place.streams;
    mask.first_stream = place.first_stream;
    mask.units = place.units;
    mask.locked = place.locked;
    return mask;
  }

  ElementType type_;
};

}  // namespace hsm::kernels::device
