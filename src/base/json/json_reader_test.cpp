#include "base/json/json_reader.h"

#include <gmock/gmock.h>

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
}

}  // namespace
}  // namespace jouleprof
