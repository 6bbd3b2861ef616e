#include "base/gzip/gzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

using ::testing::HasSubstr;

std::string compressed(const std::string& text) {
  std::ostringstream below;
  GzipStream stream(below);
  stream << text;
  stream.finish();
  EXPECT_TRUE(stream.good());
  return below.str();
}

struct Content {
  std::string text;
  std::optional<Error> error;
};

Content content(const std::filesystem::path& path, std::size_t step) {
  Content out;
  auto reader = GzipReader::open(path);
  if (!reader) return {"", reader.error()};
  std::string piece(step, '\0');
  for (;;) {
    const auto got = reader->read(piece.data(), step);
    if (!got) {
      out.error = got.error();
      return out;
    }
    if (*got == 0) return out;
    out.text.append(piece, 0, *got);
  }
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919) + "\n";
  return text;
}

TEST(Gzip, WhatWasWrittenIsRead) {
  const std::string text = long_text();
  const std::string packed = compressed(text);
  EXPECT_LT(packed.size(), text.size() / 2);
  const TempTree tree{{"plain", text}, {"packed", packed}, {"twice", packed + compressed("end")}};
  EXPECT_EQ(content(tree / "plain", 1000).text, text);
  EXPECT_EQ(content(tree / "packed", 1000).text, text);
  EXPECT_EQ(content(tree / "packed", 1 << 20).text, text);
  EXPECT_EQ(content(tree / "twice", 777).text, text + "end");
  EXPECT_FALSE(content(tree / "twice", 777).error);
}

TEST(Gzip, EmptyTexts) {
  const TempTree tree{{"plain", ""}, {"packed", compressed("")}};
  EXPECT_EQ(content(tree / "plain", 10).text, "");
  EXPECT_FALSE(content(tree / "plain", 10).error);
  EXPECT_EQ(content(tree / "packed", 10).text, "");
  EXPECT_FALSE(content(tree / "packed", 10).error);
}

TEST(Gzip, WhatIsCutOffGivesWhatThereIsAndThenAnError) {
  const std::string text = long_text();
  const std::string packed = compressed(text);
  std::string bad = packed;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x55);
  bad[bad.size() / 2 + 1] = static_cast<char>(bad[bad.size() / 2 + 1] ^ 0x55);
  const TempTree tree{{"cut", packed.substr(0, packed.size() / 2)}, {"bad", bad}};
  const Content cut = content(tree / "cut", 1000);
  ASSERT_TRUE(cut.error);
  EXPECT_EQ(cut.error->code, Errc::kCorrupt);
  EXPECT_THAT(cut.error->message, HasSubstr("cut off"));
  EXPECT_GT(cut.text.size(), text.size() / 4);
  EXPECT_TRUE(text.starts_with(cut.text));
  ASSERT_TRUE(content(tree / "bad", 1000).error);
}

TEST(Gzip, FilesThatCannotBeOpened) {
  const TempTree tree;
  EXPECT_EQ(content(tree / "none", 10).error->code, Errc::kNotFound);
  EXPECT_EQ(content(tree.root(), 10).error->code, Errc::kInvalidArgument);
}

TEST(Gzip, AFullStreamBelowIsSeen) {
  std::ofstream full("/dev/full");
  if (!full) GTEST_SKIP() << "no /dev/full";
  GzipStream stream(full);
  stream << long_text();
  stream.finish();
  full.flush();
  EXPECT_FALSE(full.good());
}

std::string read_back(const std::string& compressed) {
  const TempTree tree{{"file", compressed}};
  auto reader = GzipReader::open(tree / "file");
  EXPECT_TRUE(reader);
  std::string out;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto n = reader->read(buffer.data(), buffer.size());
    EXPECT_TRUE(n);
    if (!n || *n == 0) return out;
    out.append(buffer.data(), *n);
  }
}

TEST(GzipText, IsReadBack) {
  std::string random;
  for (unsigned i = 0, x = 1; i < 100'000; ++i)
    random += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  for (const auto& text : {std::string(), std::string("a"), std::string(1 << 20, 'x'), random}) {
    const auto compressed = gzip_text(text);
    EXPECT_EQ(compressed.substr(0, 2), "\x1f\x8b");
    EXPECT_TRUE(read_back(compressed) == text);
  }
  EXPECT_LT(gzip_text(std::string(1 << 20, 'x')).size(), 10'000u);
}

}  // namespace
}  // namespace jouleprof
