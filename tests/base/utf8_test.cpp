#include "base/utf8.h"

#include <gtest/gtest.h>

namespace hsm {
namespace {

TEST(Utf8, TakesWellFormedText) {
  for (const char* text :
       {"", "plain", "größe", "日本語", "🙂", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\xEE\x80\x80"}) {
    EXPECT_FALSE(find_malformed_utf8(text).has_value()) << text;
  }
}

TEST(Utf8, FindsTheFirstMalformedByte) {
  struct Case {
    std::string text;
    size_t at;
  };
  for (const Case& c : {Case{"ab\xFF", 2}, Case{"\x80", 0}, Case{"a\xC3", 1}, Case{"\xC0\xAF", 0},
                        Case{"\xE0\x80\xAF", 0}, Case{"\xED\xA0\x80", 0}, Case{"x\xF4\x90\x80\x80", 1},
                        Case{"\xE2\x82", 0}, Case{"é\xE2\x28\xA1", 2}, Case{"\xF8\x88\x80\x80\x80", 0}}) {
    EXPECT_EQ(find_malformed_utf8(c.text), c.at) << quote(c.text);
  }
}

TEST(Utf8, QuotesForMessagesWithoutCuttingCharacters) {
  EXPECT_EQ(quote("a\tb\xFF"), "\"a\\x09b\\xFF\"");
  EXPECT_EQ(quote("ééééé", 4), "\"éé…\"");
  EXPECT_EQ(quote(""), "\"\"");
}

}  // namespace
}  // namespace hsm
