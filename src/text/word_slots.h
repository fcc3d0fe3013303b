#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace hsm {

/// Index from a word to its id by open addressing. The words themselves stay with the owner, who passes
/// `word_of(id)` to every call, so that a vocabulary of millions holds each word once. 8 bytes a slot.
class WordSlots {
 public:
  /// Id of `word`, or -1.
  template <class WordOf>
  [[nodiscard]] int32_t find(std::string_view word, const WordOf& word_of) const {
    if (slots_.empty()) return -1;
    return slots_[position(word, hash(word), word_of)].id;
  }

  /// Id of `word`; when it is new, `next_id` is entered for it and returned (the owner then adds the word).
  template <class WordOf>
  int32_t find_or_add(std::string_view word, int32_t next_id, const WordOf& word_of) {
    if (2 * (used_ + 1) > slots_.size()) grow(word_of);
    const uint64_t code = hash(word);
    Slot& slot = slots_[position(word, code, word_of)];
    if (slot.id >= 0) return slot.id;
    slot = {static_cast<uint32_t>(code >> 32), next_id};
    ++used_;
    return next_id;
  }

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash: spares most comparisons of different words
    int32_t id = -1;
  };

  static uint64_t hash(std::string_view word) { return std::hash<std::string_view>{}(word); }

  // Where `word` is, or the free slot where it would go.
  template <class WordOf>
  size_t position(std::string_view word, uint64_t code, const WordOf& word_of) const {
    const size_t mask = slots_.size() - 1;
    const auto tag = static_cast<uint32_t>(code >> 32);
    size_t at = code & mask;
    while (slots_[at].id >= 0 && (slots_[at].tag != tag || word_of(slots_[at].id) != word))
      at = (at + 1) & mask;
    return at;
  }

  template <class WordOf>
  void grow(const WordOf& word_of) {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.id < 0) continue;
      size_t at = hash(word_of(slot.id)) & mask;
      while (slots_[at].id >= 0) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t used_ = 0;
};

}  // namespace hsm
