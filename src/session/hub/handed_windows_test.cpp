#include "session/hub/handed_windows.h"

#include <gmock/gmock.h>

namespace jouleprof::session {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr HostTime kStart{hours{10}};

constexpr HostTime at(int ms) { return kStart + milliseconds{ms}; }

spans::WindowRecord window(int begin, int end, std::uint32_t name, std::uint32_t flags = 0) {
  return {at(begin).time_since_epoch().count(), at(end).time_since_epoch().count(), name, flags};
}

class HandedWindowsTest : public testing::Test {
 protected:
  HandedWindowsTest() {
    handed_.add(1, 10, {});
    handed_.add(2, 20, {});
  }
  std::vector<model::Window> windows() {
    std::vector<model::Window> windows;
    handed_.take(windows, warnings_);
    return windows;
  }
  std::vector<std::string> warnings() {
    windows();
    return std::exchange(warnings_, {});
  }

  HandedWindows handed_{{model::DomainId{0}, model::DomainId{2}}};
  std::vector<std::string> warnings_;
};

// A library has no number for further names; one that had would not grow the hub either.
TEST_F(HandedWindowsTest, NamesOfAProgramAreBoundedAndItIsSaid) {
  constexpr auto kMost = static_cast<std::uint32_t>(NameTable::kMost);
  for (std::uint32_t first = 0; first < kMost; first += 100) {
    EXPECT_THAT(warnings(), IsEmpty());
    std::vector<std::string> names;
    for (std::uint32_t i = first; i != first + 100; ++i) names.push_back("n" + std::to_string(i));
    ASSERT_TRUE(handed_.take(1, meters::Names{first, names}, at(2000)));
  }
  EXPECT_THAT(warnings(), ElementsAre(AllOf(HasSubstr("process 10"), HasSubstr("10,000 names"))));
  ASSERT_TRUE(handed_.take(1, meters::Names{kMost, {"more"}}, at(2000)));
  ASSERT_TRUE(handed_.take(1, meters::Windows{10, {}, {window(0, 100, 5), window(0, 100, kMost)}},
                           at(2000)));
  const auto recorded = windows();
  ASSERT_THAT(recorded, SizeIs(2));
  EXPECT_EQ(recorded[0].name, "n5");
  EXPECT_EQ(recorded[1].name, "");
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(HandedWindowsTest, AreRecordedWithAllThatIsKnown) {
  ASSERT_TRUE(handed_.take(1, meters::Names{0, {"", "epoch"}}, at(0)));
  ASSERT_TRUE(handed_.take(2, meters::Names{0, {"", "step"}}, at(0)));
  ASSERT_TRUE(handed_.take(
      1, meters::Windows{11, {}, {window(1, 2, 1), window(2, 3, 0, kDeviceTime)}}, at(10)));
  ASSERT_TRUE(handed_.take(2, meters::Devices{{model::DomainId{1}, model::DomainId{2}}}, at(10)));
  ASSERT_TRUE(handed_.take(2, meters::Windows{22, {}, {window(3, 4, 1)}}, at(10)));
  EXPECT_THAT(windows(), ElementsAre(model::Window{"epoch", at(1), at(2), 10, 11, false},
                                     model::Window{"", at(2), at(3), 10, 11, true},
                                     model::Window{"step", at(3), at(4), 20, 22, false,
                                                   model::DeviceSet{{model::DomainId{2}}}}));
  EXPECT_THAT(windows(), IsEmpty());
}

TEST_F(HandedWindowsTest, ImpossibleOnesAreLeftOut) {
  const spans::WindowRecord ancient{INT64_MIN, INT64_MAX, 0, 0};
  const spans::WindowRecord negative{-5, 5, 0, 0};
  ASSERT_TRUE(handed_.take(
      1, meters::Windows{11, {}, {ancient, negative, window(5, 4, 0), window(0, 60'000, 0)}},
      at(10)));
  EXPECT_THAT(windows(), IsEmpty());
  // Of a ring that cannot be.
  EXPECT_FALSE(handed_.take(1, meters::Windows{11, 1024, {}}, at(10)));
}

TEST_F(HandedWindowsTest, AProgramThatLostWindowsIsNamed) {
  ASSERT_TRUE(handed_.take(1, meters::Lost{7}, at(0)));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("process 10 lost 7")));
}

}  // namespace
}  // namespace jouleprof::session
