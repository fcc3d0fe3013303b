#include "kernels/dropout.h"

#include <algorithm>
#include <cmath>

namespace hsm::kernels {
namespace {

constexpr int64_t kUnitsPerDraw = 8;  // 16 bits each of the four words
constexpr int64_t kRowTile = 16;

struct Mask {
  CounterRandom random;
  uint64_t major;
  uint32_t threshold;  // 16-bit draws below it are dropped
  float scale;
};

void drop_row(const Mask& mask, uint64_t time, uint64_t stream, int64_t units, float* values) {
  const uint64_t row = (time << 40) | (stream << 16);
  for (int64_t first = 0; first < units; first += kUnitsPerDraw) {
    const auto words = mask.random.words(mask.major, row | static_cast<uint64_t>(first / kUnitsPerDraw));
    const int64_t count = std::min(kUnitsPerDraw, units - first);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t draw = (words[static_cast<size_t>(i / 2)] >> (16 * (i % 2))) & 0xFFFFU;
      values[first + i] *= draw < mask.threshold ? 0.0F : mask.scale;
    }
  }
}

}  // namespace

void apply_dropout(const DropoutShape& shape, double probability, bool locked, const DropoutKey& key,
                   float* values, ThreadPool& pool) {
  if (probability <= 0) return;
  const Mask mask{CounterRandom(key.seed, key.purpose),
                  (static_cast<uint64_t>(key.step) << 8) | static_cast<uint64_t>(key.layer),
                  static_cast<uint32_t>(std::lround(probability * 65536)),
                  static_cast<float>(1 / (1 - probability))};
  const int64_t rows = shape.times * shape.streams;
  pool.run((rows + kRowTile - 1) / kRowTile, [&](int64_t tile, int) {
    for (int64_t row = tile * kRowTile; row < std::min(rows, (tile + 1) * kRowTile); ++row) {
      const auto time = static_cast<uint64_t>(locked ? 0 : row / shape.streams);
      const int64_t stream = shape.first_stream + row % shape.streams;
      drop_row(mask, time, static_cast<uint64_t>(stream), shape.units, values + row * shape.units);
    }
  });
}

}  // namespace hsm::kernels
