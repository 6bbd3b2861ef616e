#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/new_file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace jouleprof
