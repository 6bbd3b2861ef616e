#include <gtest/gtest.h>

#include "session/sampling/sampler.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

TEST(LookBudget, LooksTakeAtMostTheirShareOfACore) {
  EXPECT_EQ(pause_after(0us, 900ms, 5s), 900ms);
  EXPECT_EQ(pause_after(450us, 900ms, 5s), 900ms);
  EXPECT_EQ(pause_after(1ms, 900ms, 5s), 2s);
  EXPECT_EQ(pause_after(2800us, 900ms, 5s), 5s);  // the utilisation of several processes
  EXPECT_EQ(pause_after(1s, 900ms, 5s), 5s);
  EXPECT_EQ(pause_after(1ms, 10s, 5s), 10s);  // a longer period is kept
}

}  // namespace
}  // namespace jouleprof::session
