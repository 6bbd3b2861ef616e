#include "base/new_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

void write(const fs::path& path, const char* text) { std::ofstream(path) << text; }

TEST(NewFile, TakesThePlaceOfTheOldOneOnRequest) {
  const TempTree tree({{"x", "old"}});
  {
    auto fresh = NewFile::next_to(tree / "x");
    ASSERT_TRUE(fresh) << fresh.error().message;
    write(fresh->path(), "new");
    EXPECT_EQ(read_file(tree / "x"), "old");
    ASSERT_TRUE(fresh->take_place());
    EXPECT_EQ(read_file(tree / "x"), "new");
  }
  EXPECT_THAT(list_folder(tree / ".").value(), ElementsAre("x"));
}

TEST(NewFile, LeavesNothingOtherwise) {
  const TempTree tree({{"x", "old"}});
  {
    const auto fresh = NewFile::next_to(tree / "x");
    ASSERT_TRUE(fresh);
    write(fresh->path(), "half");
  }
  EXPECT_EQ(read_file(tree / "x"), "old");
  EXPECT_THAT(list_folder(tree / ".").value(), ElementsAre("x"));
}

TEST(NewFile, KeepsLinksAndPermissions) {
  const TempTree tree({{"real", "old"}});
  ::chmod((tree / "real").c_str(), 0640);
  fs::create_symlink("real", tree / "link");
  auto fresh = NewFile::next_to(tree / "link");
  ASSERT_TRUE(fresh);
  write(fresh->path(), "new");
  ASSERT_TRUE(fresh->take_place());
  EXPECT_TRUE(fs::is_symlink(tree / "link"));
  EXPECT_EQ(read_file(tree / "real"), "new");
  EXPECT_EQ(fs::status(tree / "real").permissions(), static_cast<fs::perms>(0640));
}

TEST(NewFile, ErrorsSayWhatToDo) {
  const TempTree tree({});
  const auto fresh = NewFile::next_to(tree / "missing/x");
  ASSERT_FALSE(fresh);
  EXPECT_EQ(fresh.error().code, Errc::kNotFound);
  EXPECT_THAT(fresh.error().message, testing::HasSubstr("create its folder first"));
}

TEST(SameFile, IsByDeviceAndInode) {
  const TempTree tree({{"a", "x"}, {"b", "x"}});
  fs::create_symlink("a", tree / "link");
  fs::create_hard_link(tree / "a", tree / "hard");
  EXPECT_TRUE(is_same_file(tree / "a", tree / "link"));
  EXPECT_TRUE(is_same_file(tree / "hard", tree / "a"));
  EXPECT_TRUE(is_same_file(tree / "new", tree / "./new"));
  EXPECT_FALSE(is_same_file(tree / "a", tree / "b"));
  EXPECT_FALSE(is_same_file(tree / "a", tree / "new"));
  EXPECT_FALSE(is_same_file("/dev/null", "/dev/null"));
  EXPECT_FALSE(is_same_file("", ""));
}

}  // namespace
}  // namespace jouleprof
