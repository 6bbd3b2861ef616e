#include <gtest/gtest.h>

#include <chrono>

#include "analysis/live/machine_state.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// By the local date of whatever zone the test runs in: 36 hours later it is another day.
TEST(Day, BeginsAnewWithTheDate) {
  const RealTime noon{Duration{1'700'000'000'000'000'000}};
  std::vector<DomainAccount> accounts(2);
  accounts[0].total = Energy::joules(10);
  Day day;
  follow_day(day, noon, accounts);
  EXPECT_EQ(day.begin, noon);
  accounts[0].total += Energy::joules(5);
  accounts[1].total += Energy::joules(1);
  follow_day(day, noon + 1ms, accounts);
  EXPECT_EQ(day.begin, noon);
  EXPECT_EQ(day.energy(0, accounts[0]), Energy::joules(5));
  EXPECT_EQ(day.energy(1, accounts[1]), Energy::joules(1));
  follow_day(day, noon + 36h, accounts);
  EXPECT_EQ(day.begin, noon + 36h);
  EXPECT_EQ(day.energy(0, accounts[0]), Energy{});
  accounts[0].total += Energy::joules(2);
  EXPECT_EQ(day.energy(0, accounts[0]), Energy::joules(2));
}

TEST(Day, EndsAtMidnightOfTheMachine) {
  std::tm local{};
  local.tm_year = 126;
  local.tm_mon = 10;
  local.tm_mday = 23;
  local.tm_hour = 23;
  local.tm_min = 59;
  local.tm_sec = 58;
  local.tm_isdst = -1;
  const RealTime late{std::chrono::seconds{mktime(&local)}};
  Day day;
  follow_day(day, late, {});
  follow_day(day, late + 1s, {});
  EXPECT_EQ(day.begin, late);
  follow_day(day, late + 2s, {});
  EXPECT_EQ(day.begin, late + 2s);
}

}  // namespace
}  // namespace jouleprof::analysis
