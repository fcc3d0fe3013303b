#include "config/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hsm {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("beam", "beam"), 0U);
  EXPECT_EQ(edit_distance("bema", "beam"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, FindsTheLikeliestName) {
  const std::vector<std::string> known{"lr", "hidden", "layers", "learning_rate", "embedding"};
  EXPECT_EQ(nearest_name("hiden", known), "hidden");
  EXPECT_EQ(nearest_name("learningrate", known), "learning_rate");
  EXPECT_EQ(nearest_name("embeddings", known), "embedding");
  EXPECT_EQ(nearest_name("layer", known), "layers");
  EXPECT_EQ(nearest_name("learn", known), "learning_rate");
  EXPECT_EQ(nearest_name("vocabulary", known), std::nullopt);
  EXPECT_EQ(nearest_name("x", known), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1000, 'x'), known), std::nullopt);
}

}  // namespace
}  // namespace hsm
