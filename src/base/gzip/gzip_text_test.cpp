#include <gtest/gtest.h>

#include <array>

#include "base/gzip/gzip.h"
#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

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
