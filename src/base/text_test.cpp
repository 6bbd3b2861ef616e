#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jouleprof {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Text, ParsesWholeNumbersOnly) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("12 "), std::nullopt);
  EXPECT_EQ(parse_integer(""), std::nullopt);
  EXPECT_EQ(parse_number("1e3"), 1000);
  EXPECT_EQ(parse_number("1,5"), std::nullopt);
  EXPECT_EQ(parse_number("nan"), std::nullopt);
  EXPECT_EQ(parse_number("inf"), std::nullopt);
}

TEST(Text, SplitsAndKeepsEmptyParts) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split_blanks("  0   62\t38 \r\n"), ElementsAre("0", "62", "38"));
}

TEST(Text, SplitsCsvWithQuotes) {
  EXPECT_THAT(split_csv("\"void f<int, 2>(char*)\",\"say \"\"x\"\"\",3\r").value(),
              ElementsAre("void f<int, 2>(char*)", "say \"x\"", "3"));
  EXPECT_EQ(split_csv("\"open").error().code, Errc::kCorrupt);
}

// A spreadsheet would run them.
TEST(Text, CsvFieldsAreNoFormulas) {
  for (const char* text : {"=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-x", "\t=1"}) {
    EXPECT_EQ(csv_field(text), "'" + std::string(text));
  }
  EXPECT_EQ(csv_field("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
  for (const char* number : {"-0.5", "-1e-05", "a=b", ""}) EXPECT_EQ(csv_field(number), number);
}

TEST(Text, CsvFieldsSurviveTheRoundTrip) {
  for (const std::string field : {"plain", "a,b", "a\"b", "a\nb", ""}) {
    EXPECT_THAT(split_csv(csv_field(field) + ",x").value(), ElementsAre(field, "x"));
  }
}

TEST(Text, DurationsCarryTheirUnit) {
  EXPECT_EQ(parse_duration("20ms"), Duration{20ms});
  EXPECT_EQ(parse_duration("0.5 s"), Duration{500ms});
  EXPECT_EQ(parse_duration("100us"), Duration{100us});
  EXPECT_EQ(parse_duration("2min"), Duration{2min});
  EXPECT_EQ(parse_duration("0"), Duration{});  // in any unit
  for (const char* bad : {"20", "ms", "-1s", "1e300s", "s", "", "1 fortnight"}) {
    EXPECT_EQ(parse_duration(bad).error().code, Errc::kInvalidArgument) << bad;
  }
}

TEST(Text, ShortestReadsBack) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(250), "250");
}

}  // namespace
}  // namespace jouleprof
