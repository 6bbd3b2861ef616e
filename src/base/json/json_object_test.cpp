#include "base/json/json_object.h"

#include <gmock/gmock.h>

namespace jouleprof {
namespace {

using testing::HasSubstr;

std::string error_of(const JsonErrors& errors) { return errors.first ? errors.first->message : ""; }

TEST(JsonObject, ReadsValuesOfTheirTypes) {
  const auto document = parse_json(
      R"({"watts": 1.5, "count": 7, "name": "a", "on": true, "kind": "b", "none": null,
          "sensors": [{"id": 1}, {"id": 2}]})",
      "f");
  ASSERT_TRUE(document);
  JsonErrors errors{"f"};
  JsonObject object(*document, "", errors);
  double watts = 0;
  unsigned count = 0;
  std::string name;
  bool on = false;
  double absent = 3;
  object.number("watts", watts, 0, 10);
  object.unsigned_integer("count", count, 10);
  object.text("name", name);
  object.flag("on", on);
  object.number("absent", absent, 0, 10);
  EXPECT_EQ(watts, 1.5);
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(name, "a");
  EXPECT_TRUE(on);
  EXPECT_EQ(absent, 3);
  EXPECT_EQ(object.word("kind", {"a", "b"}), 1);
  EXPECT_TRUE(object.is_null("none"));
  EXPECT_EQ(object.objects("sensors").size(), 2u);
  EXPECT_EQ(error_of(errors), "");
  object.finish();
  EXPECT_THAT(error_of(errors), HasSubstr("f: none: is not a key here"));
}

TEST(JsonObject, ErrorsNameThePlaceOfTheValue) {
  const auto error = [](const char* text) {
    const auto document = parse_json(text, "f", Errc::kCorrupt);
    if (!document) return document.error().message;
    JsonErrors errors{.file = "f", .code = Errc::kCorrupt};
    JsonObject object(*document, "", errors);
    object.require("a");
    std::int64_t n = 5;
    for (auto& entry : object.objects("a")) entry.integer("n", n, 0, 9);
    EXPECT_EQ(n, 5) << text;
    EXPECT_TRUE(!errors.first || errors.first->code == Errc::kCorrupt);
    return error_of(errors);
  };
  EXPECT_THAT(error("{"), HasSubstr("f is not JSON"));
  EXPECT_EQ(error("{}"), "f: a: is missing");
  EXPECT_EQ(error("[]"), "f: not a JSON object { }");
  EXPECT_EQ(error(R"({"a": [{}, 1]})"), "f: a[1]: must be an object { }");
  EXPECT_EQ(error(R"({"a": [{"n": 1.5}]})"), "f: a[0].n: must be a whole number");
  EXPECT_THAT(error(R"({"a": {"n": 10}})"), HasSubstr("f: a.n: 10 is out of range"));
  EXPECT_THAT(error(R"({"a": {"n": 18446744073709551615}})"), HasSubstr("out of range"));
}

}  // namespace
}  // namespace jouleprof
