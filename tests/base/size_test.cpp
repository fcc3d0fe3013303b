#include "base/size.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hsm {
namespace {

TEST(Size, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_size("4096", "--memory-budget"), 4096U);
  EXPECT_EQ(parse_size("512MiB", "x"), 512U << 20);
  EXPECT_EQ(parse_size("2GB", "x"), 2000000000U);
  EXPECT_EQ(parse_size("1.5 gib", "x"), (3ULL << 30) / 2);
  EXPECT_EQ(parse_size("64K", "x"), 65536U);
  EXPECT_EQ(parse_size("0", "x"), 0U);
}

TEST(Size, RefusesWhatIsNoSizeAndNamesThePlace) {
  for (const char* text : {"", "MiB", "-1", "12 parsecs", "1e30GB", "nan", "0x10"}) {
    try {
      parse_size(text, "--memory-budget");
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("--memory-budget"), std::string::npos) << error.what();
    }
  }
}

TEST(Size, FormatsForPeople) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(uint64_t{5} << 40), "5.0 TiB");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(-123456), "-123,456");
  EXPECT_EQ(format_count(12749525), "12,749,525");
  EXPECT_EQ(format_seconds(12.4), "12s");
  EXPECT_EQ(format_seconds(200), "3m20s");
  EXPECT_EQ(format_seconds(3725), "1h02m");
}

}  // namespace
}  // namespace hsm
