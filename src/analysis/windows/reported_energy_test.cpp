#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "analysis/windows/windows.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr model::DomainId kGpu{0};

model::ImportedWindow window(std::optional<HostTime> begin, Duration duration, double joules) {
  model::ImportedWindow w;
  w.begin = begin;
  w.duration = duration;
  w.energies.push_back({kGpu, Energy::joules(joules)});
  return w;
}

TEST(ReportedEnergy, AddsWindowsOneAfterTheOther) {
  const std::vector windows{window(HostTime{10s}, 5s, 20), window(HostTime{0s}, 10s, 30),
                            window(HostTime{60s}, 1s, 4)};
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->energy, Energy::joules(54));
  EXPECT_EQ(sum->windows, 3u);
  EXPECT_EQ(sum->within, 0u);
}

TEST(ReportedEnergy, CountsWhatLiesWithinAnotherOnce) {
  const std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{1s}, 3s, 30),
                            window(HostTime{2s}, 1s, 10), window(HostTime{4s}, 6s, 60)};
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->energy, Energy::joules(100));
  EXPECT_EQ(sum->within, 3u);
}

TEST(ReportedEnergy, HasNoSumOfWindowsThatOverlapInPart) {
  const std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{5s}, 10s, 90)};
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, HasSubstr("overlap in part"));
}

TEST(ReportedEnergy, SamplesOfASweepHaveNoSum) {
  std::vector windows{window(HostTime{0s}, 1s, 30), window(HostTime{5s}, 1s, 40)};
  for (auto& w : windows) w.labels.push_back({"power_limit_watts", "300"});
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, HasSubstr("samples of a sweep"));
}

// It was of something else than what its time lies in.
TEST(ReportedEnergy, HasNoSumWhereAnInnerWindowHasMore) {
  const std::vector windows{window(HostTime{0s}, 10s, 100), window(HostTime{5s}, 1s, 150)};
  EXPECT_FALSE(reported_energy(windows, kGpu));
}

TEST(ReportedEnergy, OneWindowNeedsNoTimeAndSeveralDo) {
  std::vector windows{window(std::nullopt, 10s, 100)};
  ASSERT_TRUE(reported_energy(windows, kGpu));
  windows.push_back(windows.front());
  const auto sum = reported_energy(windows, kGpu);
  ASSERT_FALSE(sum);
  EXPECT_THAT(sum.error().message, HasSubstr("no time"));
  EXPECT_FALSE(reported_energy(windows, model::DomainId{1}));
}

}  // namespace
}  // namespace jouleprof::analysis
