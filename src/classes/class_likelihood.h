#pragma once
#include "base/thread_pool.h"
#include "classes/word_classes.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Mean log-likelihood of a token, natural logarithm, under the class bigram model that fits the text best,
/// with words of the shortlist as classes of their own:
///   1/N · (Σ f(N(g, g')) − 2 Σ f(N(g)) + Σ f(N(w))),   f(n) = n ln n
/// By it classes of the same sizes can be compared. Of a long text a sample is taken (SampledTokens).
double class_bigram_likelihood(const TokenFile& tokens, const Vocabulary& vocabulary,
                               const WordClasses& classes, ThreadPool& pool);

/// Its part Σ f(N(w)), which is the same for all classes, of so many tokens with the vocabulary's shares.
double words_likelihood(const Vocabulary& vocabulary, int64_t tokens);

}  // namespace hsm
