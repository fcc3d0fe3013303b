#pragma once
#include <string>
#include <vector>

#include "base/random.h"
#include "text/corpus.h"
#include "text/fixture.h"

namespace hsm {

/// A text as words, its token file and its vocabulary.
struct ClassCorpus {
  Vocabulary vocabulary;
  TokenFile tokens;

  [[nodiscard]] std::vector<int32_t> ids() const {
    std::vector<int32_t> all(static_cast<size_t>(tokens.size()));
    tokens.read(0, all);
    return all;
  }
};

class ClassTextTest : public TextTest {
 protected:
  [[nodiscard]] ClassCorpus corpus_of(const std::string& text) const {
    const std::string file = write("text", text);
    Vocabulary vocabulary = read_training_text({file}, {}, {}, path("tokens"));
    return {std::move(vocabulary), TokenFile(path("tokens"))};
  }

  /// Words of a hidden chain of `kinds` kinds: a word's kind is its number modulo `kinds`, and a kind is
  /// mostly followed by the next. Word numbers are skewed, so that counts are as in real text.
  [[nodiscard]] static std::string chain_text(uint64_t seed, int64_t tokens, uint64_t words, uint64_t kinds,
                                              double noise = 0.1) {
    const CounterRandom random(seed, Purpose::sampling);
    std::string text;
    uint64_t kind = 0;
    for (int64_t i = 0; i < tokens; ++i) {
      const auto at = static_cast<uint64_t>(i);
      kind = random.uniform(at, 0) < noise ? random.below(kinds, at, 1) : (kind + 1) % kinds;
      const double skewed = random.uniform(at, 2) * random.uniform(at, 3);
      const uint64_t of_kind = words / kinds;
      const auto word = static_cast<uint64_t>(skewed * static_cast<double>(of_kind)) * kinds + kind;
      text += "w" + std::to_string(word) + (random.below(12, at, 4) == 0 ? "\n" : " ");
    }
    return text + "\n";
  }
};

}  // namespace hsm
