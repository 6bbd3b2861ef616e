#include "session/machine/folder_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

#include "session/sampling/sampling_fixture.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(FolderReader, ReadsAnewEachTime) {
  int count = 0;
  FolderReader<int> reader("/folder", [&count]() -> Result<int> { return ++count; });
  EXPECT_EQ(reader.now(10s), 1);
  EXPECT_EQ(reader.now(10s), 2);
  EXPECT_FALSE(FolderReader<int>("", nullptr).has_folder());
}

TEST(FolderReader, OneThatHangsIsNotWaitedFor) {
  const auto gate = std::make_shared<Gate>();
  const auto calls = std::make_shared<std::atomic<int>>(0);
  FolderReader<int> reader("/folder", [gate, calls]() -> Result<int> {
    if (++*calls == 1) gate->wait();
    return *calls;
  });
  for (int i = 0; i != 3; ++i) {
    const auto found = reader.now(1ms);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::kTimeout);
    EXPECT_THAT(found.error().message, HasSubstr("/folder"));
  }
  gate->open();
  EXPECT_LE(*calls, 1);  // one call at a time
  for (;;) {
    const auto found = reader.now(10s);
    if (!found) continue;
    EXPECT_EQ(*found, *calls);
    break;
  }
}

TEST(FolderReader, OneThatHangsAtTheEndIsLeftBehind) {
  const auto gate = std::make_shared<Gate>();
  {
    FolderReader<int> reader("/folder", [gate]() -> Result<int> {
      gate->wait();
      return 1;
    });
    EXPECT_FALSE(reader.now(1ms));
  }
  gate->open();
}

TEST(FolderReader, AnExceptionIsAnErrorOfOneCall) {
  int count = 0;
  FolderReader<int> reader("/folder", [&count]() -> Result<int> {
    if (++count == 1) throw std::length_error("too long");
    return count;
  });
  const auto failed = reader.now(10s);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "too long");
  EXPECT_EQ(reader.now(10s), 2);
}

}  // namespace
}  // namespace jouleprof::session
