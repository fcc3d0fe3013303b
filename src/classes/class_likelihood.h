#pragma once
#include <functional>

#include "base/thread_pool.h"
#include "classes/word_classes.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Mean log-likelihood of a token, natural logarithm, under the class bigram model that fits the text best,
/// with counts of pairs that are discounted (kPairDiscount, d) and words of the shortlist as classes of their
/// own:
///   1/N · (Σ N(g, g') ln(N(g, g') − d) − 2 Σ N(g) ln N(g) + Σ N(w) ln N(w))
/// By it classes of the same sizes can be compared. Of a long text a sample is taken (SampledTokens).
/// `progress` is called now and then, with the part that is done, and may throw.
double class_bigram_likelihood(const TokenFile& tokens, const Vocabulary& vocabulary,
                               const WordClasses& classes, ThreadPool& pool,
                               const std::function<void(double)>& progress);

/// Its part Σ N(w) ln N(w), which is the same for all classes, of so many tokens with the vocabulary's
/// shares.
double words_likelihood(const Vocabulary& vocabulary, int64_t tokens);

}  // namespace hsm
