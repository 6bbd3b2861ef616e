#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/cells.h"
#include "report/html/page.h"

namespace jouleprof::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlText, MarkupIsText) {
  EXPECT_EQ(markup_text(R"(</script><b a="1">&amp;)"),
            "&lt;/script&gt;&lt;b a=&quot;1&quot;&gt;&amp;amp;");
}

TEST(HtmlText, WhatCannotBeShownIsReplaced) {
  for (const std::string_view bad : {"\xff", "\xc3", "\x01", "\xe2\x80\xae"}) {  // U+202E
    const std::string text = markup_text("a" + std::string(bad) + "b");
    EXPECT_THAT(text, Not(HasSubstr(bad)));
    EXPECT_TRUE(text.starts_with('a') && text.ends_with('b')) << text;
  }
}

TEST(ScriptJson, EndsNoScript) {
  const std::string hostile = "</script><!-- <script> \xe2\x80\xa8 \xe2\x80\xa9 \xff \\ \" \n";
  Json document;
  document[hostile] = text_json(hostile);
  const std::string json = script_json(document);
  for (const auto* bad : {"<", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xff", "\n"}) {
    EXPECT_THAT(json, Not(HasSubstr(bad)));
  }
}

TEST(ScriptJson, ParsesToTheSameText) {
  const std::string hostile = "</script><!-- \xe2\x80\xa8\xe2\x80\xa9 \xc3\xa4 \\u2028";
  Json document;
  document["name"] = text_json(hostile);
  EXPECT_EQ(nlohmann::json::parse(script_json(document))["name"].get<std::string>(), hostile);
}

TEST(PackedRows, KeepKeysOnceAndAbsentCells) {
  Json rows = Json::array();
  rows.push_back({{"name", "a"}, {"energy", 1}, {"symbol", "x"}});
  rows.push_back({{"name", "b"}, {"symbol", "y"}});
  EXPECT_EQ(packed_rows(rows, {"symbol"}).dump(),
            R"({"keys":["name","energy"],"rows":[["a",1],["b",null]]})");
  EXPECT_EQ(packed_rows(Json::array()).dump(), R"({"keys":[],"rows":[]})");
}

}  // namespace
}  // namespace jouleprof::report
