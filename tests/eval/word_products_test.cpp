#include "eval/word_products.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eval/small_model.h"

namespace hsm {
namespace {

TEST(WordProducts, AreTheModelsOwnWhetherKnownOrNot) {
  for (const Cell cell : {Cell::lstm, Cell::gru}) {
    const SmallModel small(usual_sample(cell));
    const int64_t width = small.model.product_width();
    const std::vector<int32_t> text = small.random_text({5, 0, 17, 3}, 1);
    std::vector<float> expected(text.size() * static_cast<size_t>(width));
    std::vector<float> scratch(text.size() * static_cast<size_t>(small.model.shape().embedding));
    small.model.input_products(text, expected.data(), scratch.data());
    ThreadPool pool(3);
    for (const int64_t words : {0, 1, 4, 1000}) {  // for how many there is room
      WordProducts products(small.model, static_cast<uint64_t>(words * width) * sizeof(float));
      WordProducts::Scratch own;
      for (int pass = 0; pass < 3; ++pass) {
        std::vector<float> got(expected.size(), -1);
        products.fill(text, got.data(), own);
        EXPECT_EQ(got, expected) << words << " " << pass;
        products.learn(std::span(text).first(text.size() / 2 * static_cast<size_t>(pass + 1) / 2), pool);
      }
    }
  }
}

TEST(WordProducts, WordsThatTheModelLacksAreRefused) {
  const SmallModel small(usual_sample());
  ThreadPool pool(1);
  WordProducts products(small.model);
  for (const int32_t word : {-1, static_cast<int32_t>(small.model.shape().words)}) {
    const std::vector<int32_t> text{1, word};
    products.learn(text, pool);
    std::vector<float> out(2 * static_cast<size_t>(small.model.product_width()));
    WordProducts::Scratch scratch;
    EXPECT_THROW(products.fill(text, out.data(), scratch), DataError);
  }
}

}  // namespace
}  // namespace hsm
