#include <gtest/gtest.h>

#include "spans/procs/process_tree.h"

namespace jouleprof::spans {
namespace {

using std::chrono::seconds;

TEST(ChildTime, ChildrenNeverListedAreUnseen) {
  ChildTime t;
  t.update(seconds{3}, {});
  EXPECT_EQ(t.unseen(), seconds{3});
  t.update(seconds{5}, {});
  EXPECT_EQ(t.unseen(), seconds{5});
  EXPECT_EQ(t.counted(), seconds{5});
}

TEST(ChildTime, AListedChildLeavesOnlyWhatItUsedAfterItsLastRead) {
  ChildTime t;
  t.update(seconds{10}, seconds{7});
  EXPECT_EQ(t.unseen(), seconds{3});
  EXPECT_EQ(t.counted(), seconds{10});
}

TEST(ChildTime, AChildReapedBetweenTheTwoReadsIsSettledOneLookLater) {
  ChildTime t;
  t.update(seconds{0}, seconds{7});  // gone, and its time not with the parent yet
  EXPECT_EQ(t.unseen(), seconds{0});
  EXPECT_EQ(t.counted(), seconds{7});
  t.update(seconds{9}, {});
  EXPECT_EQ(t.unseen(), seconds{2});
  EXPECT_EQ(t.counted(), seconds{9});
}

TEST(ChildTime, UnseenTimeBeforeALateDebtIsNotCountedTwice) {
  ChildTime t;
  t.update(seconds{4}, seconds{7});   // 4 s of unseen children; the 7 s come later
  t.update(seconds{12}, {});          // 7 s and another second
  EXPECT_EQ(t.unseen(), seconds{5});  // 4 + 1
  EXPECT_EQ(t.counted(), seconds{12});
}

TEST(ChildTime, AParentNotChargedForItsChildrenLosesNothingLater) {
  ChildTime t;  // ignores SIGCHLD: the 7 s never arrive
  t.update(seconds{0}, seconds{7});
  t.update(seconds{0}, {});
  EXPECT_EQ(t.counted(), seconds{0});
  t.update(seconds{2}, {});
  EXPECT_EQ(t.unseen(), seconds{2});
}

TEST(ChildTime, NeverFallsWhenTheKernelsFigureDoes) {
  ChildTime t;
  t.update(seconds{5}, {});
  t.update(seconds{4}, {});
  EXPECT_EQ(t.unseen(), seconds{5});
}

}  // namespace
}  // namespace jouleprof::spans
