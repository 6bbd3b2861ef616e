#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(File, ReadsAttributesAndIntegers) {
  const TempTree tree(
      {{"energy_uj", "  123456789 \n"}, {"name", "package-0\n"}, {"bad", "12 W\n"}});
  EXPECT_EQ(read_attribute(tree / "name"), "package-0");
  EXPECT_EQ(read_integer(tree / "energy_uj"), 123456789);
  EXPECT_EQ(read_integer(tree / "bad").error().code, Errc::kCorrupt);
}

TEST(File, ErrorsNameThePath) {
  const TempTree tree({});
  const auto missing = read_file(tree / "nowhere");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_THAT(missing.error().message, testing::HasSubstr((tree / "nowhere").string()));
}

TEST(File, RefusesMoreThanTheLimit) {
  const TempTree tree({{"long", std::string(100, 'x')}});
  EXPECT_EQ(read_file(tree / "long", 99).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(read_file(tree / "long", 100).value().size(), 100U);
}

TEST(File, ListsSorted) {
  const TempTree tree({{"b", ""}, {"a/x", ""}, {"c", ""}});
  EXPECT_THAT(list_folder(tree.root()).value(), testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(list_folder(tree / "none").error().code, Errc::kNotFound);
}

TEST(File, ListsFoldersWithoutLinksToThem) {
  const TempTree tree({{"b/x", ""}, {"a/x", ""}, {"c", ""}});
  std::filesystem::create_directory_symlink(tree.root(), tree / "a/above");
  std::filesystem::create_directory_symlink(tree / "b", tree / "d");
  EXPECT_THAT(folders_in(tree.root()), testing::ElementsAre("a", "b"));
  EXPECT_THAT(folders_in(tree / "a"), testing::IsEmpty());
  EXPECT_THAT(folders_in(tree / "none"), testing::IsEmpty());
}

TEST(KeptFile, SaysWhatTheFileHoldsNow) {
  const TempTree tree{{"stat", "cpu 1 2 3\n"}};
  KeptFile file(tree / "stat");
  EXPECT_EQ(file.read().value(), "cpu 1 2 3\n");
  tree.write("stat", "cpu 4\n");
  EXPECT_EQ(file.read().value(), "cpu 4\n");
  tree.write("stat", "");
  EXPECT_EQ(file.read().value(), "");
}

TEST(KeptFile, ReadsAllOfALongOneOrItsBeginning) {
  const std::string text(20000, 'x');
  const TempTree tree{{"long", text + "y"}};
  KeptFile file(tree / "long");
  EXPECT_EQ(file.read(5).value(), "xxxxx");
  EXPECT_EQ(file.read().value(), text + "y");
  EXPECT_EQ(file.read(20000).value(), text);
}

TEST(KeptFile, OneThatIsNotThereMayComeLater) {
  const TempTree tree;
  KeptFile file(tree / "later");
  EXPECT_EQ(file.read().error().code, Errc::kNotFound);
  tree.write("later", "here");
  EXPECT_EQ(file.read().value(), "here");
}

TEST(KeptFile, AFolderIsAnError) {
  const TempTree tree;
  KeptFile file(tree.root());
  EXPECT_EQ(file.read().error().code, Errc::kInvalidArgument);
}

TEST(KeptFile, ReadsTheKernels) {
  KeptFile file("/proc/self/stat");
  const auto first = file.read();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->back(), '\n');
  EXPECT_TRUE(file.read());
}

// Of a program that closed all descriptors, and has opened its own.
TEST(KeptFile, AFileOfTheProgramUnderItsNumberIsNeitherReadNorClosed) {
  const TempTree tree{{"stat", "cpu 1\n"}, {"log", "the program's\n"}};
  const int number = ::open(tree.root().c_str(), O_RDONLY | O_CLOEXEC);
  ::close(number);
  {
    KeptFile file(tree / "stat");
    EXPECT_EQ(file.read().value(), "cpu 1\n");
    ::close(number);
    ASSERT_EQ(::open((tree / "log").c_str(), O_RDONLY | O_CLOEXEC), number);
    EXPECT_EQ(file.read().value(), "cpu 1\n");
  }
  EXPECT_EQ(::close(number), 0);
  KeptFile file(tree / "stat");
  EXPECT_TRUE(file.read());
  ASSERT_EQ(::close(number), 0);  // and opened nothing
  EXPECT_EQ(file.read().value(), "cpu 1\n");
  EXPECT_EQ(file.read().value(), "cpu 1\n");
  EXPECT_EQ(::close(number), 0);
}

TEST(SharedFile, ReplacesTheWholeContent) {
  const TempTree tree;
  const auto path = tree / "folder/that/is/new/x.json";
  ASSERT_TRUE(replace_file(path, "a long first content"));
  ASSERT_TRUE(replace_file(path, "short"));
  EXPECT_EQ(read_file(path), "short");
  EXPECT_THAT(list_folder(path.parent_path()).value(), ElementsAre("x.json"));
}

TEST(SharedFile, AFailureKeepsTheOldContent) {
  const TempTree tree({{"x.json/entry", "a folder is where the file should be"}});
  const auto replaced = replace_file(tree / "x.json", "new");
  ASSERT_FALSE(replaced);
  EXPECT_THAT(replaced.error().message, HasSubstr((tree / "x.json").string()));
  EXPECT_THAT(list_folder(tree.root()).value(), ElementsAre("x.json"));
  EXPECT_TRUE(read_file(tree / "x.json/entry"));

  EXPECT_FALSE(replace_file(tree / "x.json/entry/y.json", "new"));
  EXPECT_FALSE(FileLock::take(tree / "x.json/entry/lock"));
}

TEST(SharedFile, LinksToOtherFilesAreNotFollowed) {
  const TempTree tree({{"victim", "untouched"}});
  std::filesystem::create_symlink(tree / "victim", tree / "x.json.new");
  std::filesystem::create_symlink(tree / "victim", tree / "x.lock");
  ASSERT_TRUE(replace_file(tree / "x.json", "content"));
  EXPECT_EQ(read_file(tree / "x.json"), "content");
  EXPECT_EQ(read_file(tree / "victim"), "untouched");
  EXPECT_FALSE(FileLock::take(tree / "x.lock"));
}

// Without the lock, increments would be lost.
TEST(SharedFile, WritersWithALockLoseNothing) {
  const TempTree tree({{"count", "0"}});
  constexpr int kWriters = 3;
  constexpr int kTimes = 10;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < kTimes; ++i) {
        const auto lock = FileLock::take(tree / "count.lock");
        ASSERT_TRUE(lock) << lock.error().message;
        const int count = std::stoi(read_file(tree / "count").value());
        std::this_thread::yield();
        ASSERT_TRUE(replace_file(tree / "count", std::to_string(count + 1)));
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(read_file(tree / "count"), std::to_string(kWriters * kTimes));
}

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

TEST(TemporaryFolder, GoesWithAllThatItHolds) {
  fs::path path;
  {
    auto folder = TemporaryFolder::create();
    ASSERT_TRUE(folder) << folder.error().message;
    const TemporaryFolder moved = std::move(*folder);
    path = moved.path();
    std::ofstream(path / "file") << "text";
    EXPECT_TRUE(fs::exists(path / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(UserFolder, IsNamedByAVariableOrInTheHomeFolder) {
  const char* const kVariable = "JOULEPROF_TEST_FOLDER";
  EXPECT_EQ(user_folder(kVariable, ".local/state"), fs::path(environment("HOME")) / ".local/state");
  ::setenv(kVariable, "/named", 1);
  EXPECT_EQ(user_folder(kVariable, ".local/state"), "/named");
  ::unsetenv(kVariable);
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
