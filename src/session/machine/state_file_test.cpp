#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/file.h"
#include "session/machine/service_state.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using nlohmann::json;

json state(int total) {
  json entities = json::object();
  for (int i = 0; i < 50; ++i) entities["entity " + std::to_string(i)] = {i, "name", 7 * i};
  entities["entity 0"][2] = total;
  if (total % 2 == 1) entities["now and then/~"] = {1, nullptr, true};
  return {{"total", total}, {"entities", entities}};
}

class StateFileTest : public testing::Test {
 protected:
  std::string bytes() const { return read_file(path).value_or(""); }
  // What a service finds there; a number below zero is of an error.
  json found() const {
    const auto read = StateFile::read(path);
    return read ? *read : json(-static_cast<int>(read.error().code));
  }
  const json corrupt = -static_cast<int>(Errc::kCorrupt);

  TempTree tree;
  std::filesystem::path path = tree / "below/state";
};

TEST_F(StateFileTest, ALinkStaysALink) {
  const auto named = tree / "elsewhere/state";
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::create_symlink("../elsewhere/state", path);
  StateFile file(path);
  ASSERT_TRUE(file.save(state(1)));
  ASSERT_TRUE(file.save(state(2)));
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_FALSE(std::filesystem::is_symlink(named));
  EXPECT_EQ(found(), state(2));
}

TEST_F(StateFileTest, HasTheLatestState) {
  EXPECT_TRUE(found().is_null());
  StateFile file(path);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(file.save(state(i)));
    EXPECT_EQ(found(), state(i));
  }
}

TEST_F(StateFileTest, WhatDidNotChangeIsNotWritten) {
  StateFile file(path);
  ASSERT_TRUE(file.save(state(0)));
  const auto whole = bytes().size();
  ASSERT_TRUE(file.save(state(2)));
  EXPECT_LT(bytes().size() - whole, whole / 2);
}

TEST_F(StateFileTest, IsWrittenAnewBeforeItIsLong) {
  StateFile file(path);
  std::mt19937 random;
  std::size_t longest = 0;
  std::size_t size = 0;
  for (std::size_t before = 0; size >= before; size = bytes().size()) {
    std::string text(50'000, ' ');
    for (char& c : text) c = static_cast<char>('A' + random() % 32);
    ASSERT_TRUE(file.save({{"text", text}}));
    ASSERT_TRUE(found() == json({{"text", text}}));
    before = size;
    longest = std::max(longest, size);
    ASSERT_LT(longest, std::size_t{2} << 20);
  }
  EXPECT_GT(longest, std::size_t{1} << 20);
}

TEST_F(StateFileTest, AnotherServiceBeginsAnew) {
  StateFile first(path);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(first.save(state(i)));
  const auto size = bytes().size();
  StateFile second(path);
  ASSERT_TRUE(second.save(state(9)));
  EXPECT_LT(bytes().size(), size);
  EXPECT_EQ(found(), state(9));
}

TEST_F(StateFileTest, AfterACrashWhileItWritesItHasTheSaveBefore) {
  StateFile file(path);
  ASSERT_TRUE(file.save(state(0)));
  ASSERT_TRUE(file.save(state(1)));
  const auto before = bytes();
  ASSERT_TRUE(file.save(state(2)));
  const auto after = bytes();
  ASSERT_TRUE(after.starts_with(before));
  for (std::size_t size = before.size(); size < after.size(); ++size) {
    tree.write("below/state", after.substr(0, size));
    ASSERT_TRUE(found() == state(1)) << size;
    // Of a file system that had made room already.
    const auto padded = after.substr(0, size) + std::string(after.size() - size, '\0');
    tree.write("below/state", padded);
    ASSERT_TRUE(found() == state(padded == after ? 2 : 1)) << size;
  }
}

TEST_F(StateFileTest, DamageThatIsNotAtTheEndIsNamed) {
  StateFile file(path);
  ASSERT_TRUE(file.save(state(0)));
  const auto whole = bytes().size();
  ASSERT_TRUE(file.save(state(2)));
  const auto before_last = bytes().size();
  ASSERT_TRUE(file.save(state(4)));
  const auto good = bytes();
  std::size_t harmless = 0;  // stamps of gzip's headers, and bits that it does not use
  for (std::size_t at = 0; at < before_last; ++at) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    tree.write("below/state", bad);
    if (found() == state(4)) {
      ++harmless;
    } else {
      ASSERT_TRUE(found() == corrupt) << at;
    }
  }
  EXPECT_LT(harmless, 20u);
  for (std::size_t size = 0; size < whole; ++size) {
    tree.write("below/state", good.substr(0, size));
    ASSERT_TRUE(found() == corrupt) << size;
  }
}

TEST_F(StateFileTest, PlainJsonIsReadToo) {
  tree.write("below/state", state(3).dump());
  EXPECT_EQ(found(), state(3));
}

TEST_F(StateFileTest, AFileThatAnotherProgramChangedIsWrittenAnew) {
  StateFile file(path);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(file.save(state(i)));
  tree.write("below/state", "something else");
  ASSERT_TRUE(file.save(state(3)));
  EXPECT_EQ(found(), state(3));
  std::filesystem::remove(path);
  ASSERT_TRUE(file.save(state(4)));
  EXPECT_EQ(found(), state(4));
}

// As a full disk does: a part of the patch is there, and the whole has no room either.
TEST_F(StateFileTest, WhereThereIsNoRoomTheSaveBeforeStays) {
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  StateFile file(path);
  ASSERT_TRUE(file.save(state(0)));
  rlimit small = before;
  small.rlim_cur = bytes().size() + 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto longer = state(2);
  for (int i = 0; i < 200; ++i) longer["entities"]["new " + std::to_string(i)] = i * i * 7919;
  const auto saved = file.save(longer);
  const auto had = found();
  const auto size = bytes().size();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(saved);
  EXPECT_EQ(size, small.rlim_cur);  // a part was written
  EXPECT_EQ(had, state(0));
  ASSERT_TRUE(file.save(longer));
  EXPECT_EQ(found(), longer);
}

}  // namespace
}  // namespace jouleprof::session
