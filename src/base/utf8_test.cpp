#include "base/utf8.h"

#include <gtest/gtest.h>

namespace jouleprof {
namespace {

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

}  // namespace
}  // namespace jouleprof
