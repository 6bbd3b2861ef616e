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

const std::string kMark = "\xEF\xBF\xBD";

TEST(Utf8, WhatIsNoneBecomesOneMarkForEachPiece) {
  for (const auto& [broken, mended, count] :
       {std::tuple<std::string, std::string, std::size_t>{"caf\xE9 x", "caf" + kMark + " x", 1},
        {"\xFF\xFE", kMark + kMark, 2},
        {"\xE6\xB7", kMark, 1},                      // cut off
        {"\xED\xA0\x80", kMark + kMark + kMark, 3},  // a surrogate
        {"\xC0\xAF", kMark + kMark, 2},              // longer than it must be
        {"a\xE6\xB7z", "a" + kMark + "z", 1},
        {"\xF0\x9F\x98\x80 \xC3\xBC \xE2\x82\xAC", "\xF0\x9F\x98\x80 \xC3\xBC \xE2\x82\xAC", 0}}) {
    std::string text = broken;
    EXPECT_EQ(mend_utf8(text), count) << broken;
    EXPECT_EQ(text, mended);
  }
}

TEST(Utf8, ControlCharactersInStringsOfJsonAreEscapedWhateverThePieces) {
  const std::string text = "{\n\t\"a\x01\\\"\x02\": \"\xE2\x82\xAC\xFF\",\n\"b\\\\\": \"\t\"}";
  const std::string mended =
      "{\n\t\"a\\u0001\\\"\\u0002\": \"\xE2\x82\xAC" + kMark + "\",\n\"b\\\\\": \"\\u0009\"}";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Utf8Mender mender(true);
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) {
      mender.append(out, std::string_view(text).substr(at, size));
    }
    mender.finish(out);
    EXPECT_EQ(out, mended) << size;
    EXPECT_EQ(mender.broken(), 1U);
    EXPECT_EQ(mender.controls(), 3U);
  }
}

TEST(Demangle, WritesNamesAsPeopleDo) {
  EXPECT_EQ(demangle("_Z4copyIfEvPT_"), "void copy<float>(float*)");
  EXPECT_EQ(demangle("sgemm_128x64"), "sgemm_128x64");
  EXPECT_EQ(demangle("_Znot a name"), "_Znot a name");
  EXPECT_EQ(demangle(""), "");
}

TEST(Decimal, IsExact) {
  EXPECT_EQ(scaled_integer("1795219288.380954", 9), 1795219288380954000);
  EXPECT_EQ(scaled_integer("-0.0000000015", 9), -2);
  EXPECT_EQ(scaled_integer("7.", 3), 7000);
  EXPECT_EQ(scaled_integer(".5", 0), 1);
  EXPECT_EQ(scaled_integer("9223372036854775807", 0), 9223372036854775807);
  for (const char* bad : {"", "-", ".", "9223372036854775808", "1e5", "0x1", "1 2", "1,5", "1.2x",
                          "9223372036854775807.5", "99999999999999999999", "nan"}) {
    EXPECT_FALSE(scaled_integer(bad, 0)) << bad;
  }
}

}  // namespace
}  // namespace jouleprof
