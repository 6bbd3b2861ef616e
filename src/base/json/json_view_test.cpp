#include "base/json/json_view.h"

#include <gtest/gtest.h>

#include <string>

namespace jouleprof {
namespace {

std::string whole(std::string_view text) {
  const JsonExtent extent = json_extent(text);
  if (extent.state == JsonExtent::kMore) return "more";
  if (extent.state == JsonExtent::kNone) return "none";
  return std::string(text.substr(0, extent.size));
}

TEST(JsonView, ValuesEndWhereTheyEnd) {
  EXPECT_EQ(whole("12.50,"), "12.50");
  EXPECT_EQ(whole("true}"), "true");
  EXPECT_EQ(whole("null\n"), "null");
  EXPECT_EQ(whole(R"("a, \"b\" \\", 1)"), R"("a, \"b\" \\")");
  EXPECT_EQ(whole(R"("\\\\" )"), R"("\\\\")");
  EXPECT_EQ(whole(R"({"a": [1, {"}": "]"}], "b": "\"}"} , 5)"),
            R"({"a": [1, {"}": "]"}], "b": "\"}"})");
  EXPECT_EQ(whole("[]]"), "[]");
}

TEST(JsonView, WhatIsCutOffAsksForMore) {
  const std::string_view text = R"({"a": "\\\"{", "b": [1.5, "x"]})";
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_EQ(whole(text.substr(0, n)), "more") << n;
  EXPECT_EQ(whole(text), text);
  EXPECT_EQ(whole("12"), "more");
  EXPECT_EQ(whole("}"), "none");
  EXPECT_EQ(whole(", 1"), "none");
}

TEST(JsonView, MembersInTheirOrder) {
  JsonMembers members(R"({ "a" : 1 ,"b":"x\n", "c": {"a": 2}, "d":[] })");
  std::string seen;
  while (members.next())
    seen += std::string(members.key()) + "=" + std::string(members.value()) + ";";
  EXPECT_EQ(seen, R"(a=1;b="x\n";c={"a": 2};d=[];)");
  for (const char* bad : {"", "{}", "[1]", "5", "{5: 1}", "{\"a\" 1}", "{\"a\":}", "{\"a\"", "{"}) {
    EXPECT_FALSE(JsonMembers(bad).next()) << bad;
  }
}

TEST(JsonView, Strings) {
  EXPECT_EQ(json_string(R"("a\"b\\c\/d\n\u00e4\u20ac\ud83d\ude00")"), "a\"b\\c/d\nä€😀");
  EXPECT_EQ(json_string(R"("\ud83d\u0041")"),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(json_string("12"), "");
  EXPECT_EQ(plain_json_string(R"("abc")"), "abc");
  EXPECT_EQ(plain_json_string(R"("a\nc")"), "");
}

TEST(JsonCheck, TakesJson) {
  for (const char* text :
       {"{}", "[]", " [1, -0.5e+3, 0] ", R"({"a": {"b": [true, null]}, "c": "\u00e9\n\""})", "3",
        R"("x")", "[NaN, -Infinity]", R"([[], {}, [{"x": []}]])"}) {
    EXPECT_TRUE(is_json(text)) << text;
  }
  EXPECT_TRUE(is_json(std::string(9'000, '[') + std::string(9'000, ']')));
}

TEST(JsonCheck, RefusesWhatIsNot) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{a: 1}",
                           R"({"a" 1})",
                           R"({"a": })",
                           R"({"a": 1,})",
                           R"({"a": 1 "b": 2})",
                           "01",
                           "1.",
                           "-",
                           "1e",
                           "12abc",
                           "truth",
                           "nul",
                           R"("\x")",
                           R"("\u12g4")",
                           "\"a\nb\"",
                           "[}",
                           "{]",
                           "1 2",
                           "[]]",
                           R"({1: 2})",
                           R"("open)"}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
  EXPECT_FALSE(is_json(std::string(20'000, '[')));
}

}  // namespace
}  // namespace jouleprof
