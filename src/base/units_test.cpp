#include "jouleprof/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace jouleprof {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_convertible_v<double, Energy>);
static_assert(!std::is_convertible_v<Energy, double>);
static_assert(!std::is_convertible_v<double, Power>);

TEST(Units, PowerTimesDurationIsEnergy) {
  EXPECT_EQ(Power::watts(250) * Duration{10s}, Energy::joules(2500));
  EXPECT_EQ(Duration{1us} * Power::watts(1), Energy::microjoules(1));
}

TEST(Units, EnergyOverDurationIsPower) {
  EXPECT_DOUBLE_EQ((Energy::joules(500) / Duration{2s}).watts(), 250);
}

TEST(Units, EnergyIsExact) {
  Energy sum;
  for (int i = 0; i < 10; ++i) sum += Energy::joules(0.1);
  EXPECT_EQ(sum, Energy::joules(1));
  EXPECT_EQ(Energy::millijoules(3), Energy::microjoules(3000));
  EXPECT_DOUBLE_EQ(Energy::microjoules(-1500000).joules(), -1.5);
}

}  // namespace
}  // namespace jouleprof
