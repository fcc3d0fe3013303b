#include "text/batch_parts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace hsm {

void check_options(const BatchOptions& options) {
  const auto refuse = [](const std::string& name, const std::string& value, const std::string& expected) {
    throw UsageError("train." + name + ": " + value + " given, expected " + expected);
  };
  if (options.streams < 1) refuse("batch", std::to_string(options.streams), "1 or more");
  if (options.bptt < 1) refuse("bptt", std::to_string(options.bptt), "1 or more");
  if (!(options.bptt_jitter >= 0 && options.bptt_jitter < 1)) {
    refuse("bptt_jitter", std::to_string(options.bptt_jitter), "a number from 0 to below 1");
  }
}

WindowLengths::WindowLengths(const BatchOptions& options)
    : random_(options.seed, Purpose::bptt_length), shortest_(options.bptt), longest_(options.bptt) {
  // The whole numbers from bptt − spread to bptt + spread. A jitter of 0.3 is a hair less than that in
  // binary.
  const double spread = static_cast<double>(options.bptt) * options.bptt_jitter;
  const auto whole = static_cast<int64_t>(std::floor(spread * (1 + 1e-12)));
  shortest_ = std::max<int64_t>(1, options.bptt - whole);
  longest_ = options.bptt + whole;
}

int64_t WindowLengths::draw(int64_t epoch, int64_t index) const {
  if (fixed()) return shortest_;
  const auto choices = static_cast<uint64_t>(longest_ - shortest_ + 1);
  return shortest_ + static_cast<int64_t>(
                         random_.below(choices, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)));
}

UnknownSingletons::UnknownSingletons(const Vocabulary& vocabulary, const BatchOptions& options)
    : random_(options.seed, Purpose::unknown_singletons),
      unknown_(vocabulary.unknown()),
      end_of_sentence_(vocabulary.end_of_sentence()) {
  if (!options.unk_singletons) return;
  // Counts fall with the id, so words seen once stand together.
  last_ = static_cast<int32_t>(vocabulary.size());
  while (last_ > 0 && vocabulary.count(last_ - 1) < 1) --last_;
  first_ = last_;
  while (first_ > 0 && vocabulary.count(first_ - 1) == 1) --first_;
}

void UnknownSingletons::apply(int64_t epoch, int64_t position, std::span<int32_t> tokens) const {
  if (first_ == last_) return;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < first_ || tokens[i] >= last_ || tokens[i] == end_of_sentence_) continue;
    const uint64_t bits = random_.bits(static_cast<uint64_t>(epoch), static_cast<uint64_t>(position) + i);
    if ((bits & 1) != 0) tokens[i] = unknown_;
  }
}

RandomOrder::RandomOrder(int64_t size, uint64_t key)
    : size_(static_cast<uint64_t>(size)), key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)} {
  while ((uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
}

uint64_t RandomOrder::shuffle_bits(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint32_t round = 0; round < 6; ++round) {
    const auto bits =
        philox({static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32), round, 0}, key_);
    const uint64_t mixed = left ^ (bits[0] & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

int64_t RandomOrder::operator()(int64_t index) const {
  auto value = static_cast<uint64_t>(index);
  do {
    value = shuffle_bits(value);
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

}  // namespace hsm
