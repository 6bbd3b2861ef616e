#include <gtest/gtest.h>

#include <string>

#include "base/json/json_view.h"

namespace jouleprof {
namespace {

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
