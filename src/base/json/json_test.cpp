#include "base/json/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace jouleprof {
namespace {

using testing::HasSubstr;

std::string error_of(const JsonErrors& errors) { return errors.first ? errors.first->message : ""; }

TEST(JsonReader, ReadsValuesOfTheirTypes) {
  const auto document = parse_json(
      R"({"watts": 1.5, "count": 7, "name": "a", "on": true, "kind": "b",
          "sensors": [{"id": 1}, {"id": 2}]})",
      "f");
  ASSERT_TRUE(document);
  JsonErrors errors{"f"};
  JsonReader object(*document, "", errors);
  double watts = 0;
  unsigned count = 0;
  std::string name;
  bool on = false;
  double absent = 3;
  std::optional<double> wrong;
  EXPECT_TRUE(object.read("watts", watts, {0, 10}));
  EXPECT_TRUE(object.read("count", count, {0, 10}));
  EXPECT_TRUE(object.read("name", name));
  EXPECT_TRUE(object.read("on", on));
  EXPECT_FALSE(object.read("absent", absent, {0, 10}));
  EXPECT_EQ(watts, 1.5);
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(name, "a");
  EXPECT_TRUE(on);
  EXPECT_EQ(absent, 3);
  EXPECT_EQ(object.word("kind", {"a", "b"}), 1);
  std::vector<int> ids;
  object.each("sensors", [&](JsonReader& sensor) {
    sensor.require("id", ids.emplace_back(), {0, 9});
  });
  EXPECT_EQ(ids, (std::vector<int>{1, 2}));
  double milliseconds = 0;
  EXPECT_TRUE(object.read("watts", milliseconds, {0, 10, 1000}));
  EXPECT_EQ(milliseconds, 1500);
  EXPECT_EQ(error_of(errors), "");
  EXPECT_FALSE(object.read("watts", wrong, {2, 10}));
  EXPECT_FALSE(wrong);  // a wrong value stays absent
  EXPECT_EQ(error_of(errors), "f: watts: 1.5 is out of range, 2 to 10");
  JsonErrors unread{"f"};
  JsonReader(*document, "", unread).finish();
  EXPECT_THAT(error_of(unread), HasSubstr("f: count: is not a key here"));
}

TEST(JsonReader, ErrorsNameThePlaceOfTheValue) {
  const auto error = [](const char* text) {
    const auto document = parse_json(text, "f", Errc::kCorrupt);
    if (!document) return document.error().message;
    JsonErrors errors{.file = "f", .code = Errc::kCorrupt};
    JsonReader object(*document, "", errors);
    std::int64_t n = 5;
    object.each(
        "a",
        [&](JsonReader& entry) {
          entry.read("n", n, {0, 9});
        },
        true);
    EXPECT_EQ(n, 5) << text;
    EXPECT_TRUE(!errors.first || errors.first->code == Errc::kCorrupt);
    return error_of(errors);
  };
  EXPECT_THAT(error("{"), HasSubstr("f is not JSON"));
  EXPECT_EQ(error("{}"), "f: a: is missing");
  EXPECT_EQ(error("[]"), "f: not a JSON object; it must be an object { }");
  EXPECT_EQ(error(R"({"a": [{}, 1]})"), "f: a[1]: must be an object { }");
  EXPECT_EQ(error(R"({"a": [{"n": 1.5}]})"), "f: a[0].n: must be a whole number");
  EXPECT_THAT(error(R"({"a": {"n": 10}})"), HasSubstr("f: a.n: 10 is out of range"));
  EXPECT_THAT(error(R"({"a": {"n": 18446744073709551615}})"), HasSubstr("out of range"));
  EXPECT_THAT(error(R"({"a": {"of\ntwo lines": 1}})"), HasSubstr("f: a.of two lines: "));
}

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
