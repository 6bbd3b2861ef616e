#include <gtest/gtest.h>

#include "apps/cli/measure/serve_options.h"

namespace jouleprof::cli {
namespace {

TEST(ParseSize, KnowsUnitsOfPowersOf1000And1024) {
  EXPECT_EQ(parse_size("1234"), 1234u);
  EXPECT_EQ(parse_size("500M"), 500'000'000u);
  EXPECT_EQ(parse_size("4GiB"), std::uint64_t{4} << 30);
  EXPECT_EQ(parse_size("1.5KiB"), 1536u);
  EXPECT_EQ(parse_size("0"), 0u);
}

TEST(ParseSize, WhatIsNoSizeIsAnError) {
  for (const char* text : {"", "G", "-1G", "4 Gb", "4X", "1e30", "nan", "9999999T"}) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, Errc::kInvalidArgument);
  }
}

TEST(RateText, SaysHowManyDaysFit) {
  const auto month = std::chrono::hours{24 * 30};
  EXPECT_EQ(
      rate_text(743e6, std::uint64_t{4} << 30, month),
      "recordings take 743 MB a day: 5.8 days of them fit in --record-max-size, fewer than the "
      "30 of --record-max-age");
  EXPECT_EQ(rate_text(2.4e6, std::uint64_t{4} << 30, month),
            "recordings take 2 MB a day: 1789.6 days of them fit in --record-max-size");
}

}  // namespace
}  // namespace jouleprof::cli
