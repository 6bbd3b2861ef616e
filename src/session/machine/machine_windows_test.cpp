#include "session/machine/machine_windows.h"

#include <gtest/gtest.h>

#include <string>

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr HostTime kNow{1h};

TEST(MachineWindows, BeginEndAndSettle) {
  MachineWindows windows;
  int ended = 0;
  windows.on_end([&ended] { ++ended; });
  ASSERT_TRUE(windows.begin("a", kNow));
  EXPECT_FALSE(windows.find("a")->end);
  EXPECT_FALSE(windows.wanted());
  EXPECT_EQ(windows.oldest(), kNow);
  ASSERT_TRUE(windows.end("a", kNow + 3s));
  EXPECT_EQ(windows.end("a", kNow + 5s)->end, kNow + 3s);  // again: the same
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(windows.wanted(), kNow + 3s);
  EXPECT_EQ(windows.take_marks(), (std::vector<HostTime>{kNow, kNow + 3s}));
  EXPECT_TRUE(windows.take_marks().empty());

  analysis::LiveEnergy none({}, {}, 10s);
  windows.settle(kNow + 2s, none);
  EXPECT_FALSE(windows.find("a")->is_settled);
  windows.settle(kNow + 3s, none);
  EXPECT_TRUE(windows.find("a")->is_settled);
  EXPECT_FALSE(windows.wanted());
  EXPECT_FALSE(windows.oldest());
}

TEST(MachineWindows, OneOfANameIsOpenAtATime) {
  MachineWindows windows;
  ASSERT_TRUE(windows.begin("a", kNow));
  EXPECT_EQ(windows.begin("a", kNow + 1s).error().code, Errc::kUnsupported);
  ASSERT_TRUE(windows.end("a", kNow + 1s));
  ASSERT_TRUE(windows.begin("a", kNow + 2s));
  EXPECT_EQ(windows.find("a")->begin, kNow + 2s);
  EXPECT_FALSE(windows.find("a")->end);
  EXPECT_EQ(windows.end("b", kNow).error().code, Errc::kNotFound);
  EXPECT_EQ(windows.find("b").error().code, Errc::kNotFound);
}

TEST(MachineWindows, NamesAreChecked) {
  MachineWindows windows;
  for (const char* name : {"", "a b", "a/b", "\xc3\xa4", "a%20", "\n"}) {
    EXPECT_EQ(windows.begin(name, kNow).error().code, Errc::kInvalidArgument) << name;
  }
  EXPECT_TRUE(windows.begin(std::string(128, 'a'), kNow));
  EXPECT_FALSE(windows.begin(std::string(129, 'a'), kNow));
  EXPECT_TRUE(windows.begin("Epoch-3_b.1", kNow));
}

TEST(MachineWindows, OneCallerLeavesRoomForOthers) {
  MachineWindows::Options options;
  options.most_open = 2;
  options.most_open_of_all = 5;
  options.most_ended = 3;
  MachineWindows windows(options);
  for (const char* name : {"a1", "a2"}) ASSERT_TRUE(windows.begin(name, kNow, "uid 1"));
  EXPECT_EQ(windows.begin("a3", kNow, "uid 1").error().code, Errc::kUnavailable);
  ASSERT_TRUE(windows.begin("b1", kNow, "uid 2"));
  ASSERT_TRUE(windows.end("b1", kNow + 1s));
  for (const char* name : {"a1", "a2"}) ASSERT_TRUE(windows.end(name, kNow + 2s));
  ASSERT_TRUE(windows.begin("a3", kNow, "uid 1"));
  ASSERT_TRUE(windows.end("a3", kNow + 3s));
  windows.tidy(kNow + 3s);
  EXPECT_TRUE(windows.find("b1"));  // the oldest, and alone
  EXPECT_FALSE(windows.find("a1") && windows.find("a2"));
  EXPECT_TRUE(windows.find("a3"));
}

TEST(MachineWindows, TheirNumberAndAgeAreBounded) {
  MachineWindows::Options options;
  options.most_open = 2;
  options.most_ended = 1;
  MachineWindows windows(options);
  ASSERT_TRUE(windows.begin("a", kNow));
  ASSERT_TRUE(windows.begin("b", kNow));
  EXPECT_EQ(windows.begin("c", kNow).error().code, Errc::kUnavailable);
  for (const char* name : {"a", "b"}) ASSERT_TRUE(windows.end(name, kNow + 1s));
  for (const char* name : {"c", "d"}) ASSERT_TRUE(windows.begin(name, kNow));
  windows.tidy(kNow + 1s);
  EXPECT_FALSE(windows.find("a") && windows.find("b"));  // one of both
  EXPECT_TRUE(windows.find("c") && windows.find("d"));
  windows.tidy(kNow + 2h);
  EXPECT_FALSE(windows.find("a") || windows.find("b"));
  EXPECT_TRUE(windows.find("c"));
  windows.tidy(kNow + 13h);
  EXPECT_FALSE(windows.find("c"));
}

}  // namespace
}  // namespace jouleprof::session
