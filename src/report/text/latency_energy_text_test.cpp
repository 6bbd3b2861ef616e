#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/results/bench.h"

namespace jouleprof::report {
namespace {

using ::testing::HasSubstr;

constexpr Duration kLatency = std::chrono::microseconds{4370};

// DeiT-B on an A100: 87 W at work, 61 W idle, 4.37 ms.
TEST(LatencyEnergyText, HasThePublishedFigures) {
  const analysis::PowerSummary idle{Power::watts(61), Power::watts(61), 7};
  const analysis::PowerSummary work{Power::watts(87), Power::watts(86.57), 97};
  const auto text = latency_energy_to_text({{"gpu0", idle, work}}, kLatency);
  EXPECT_THAT(text, HasSubstr("energy of 4.370 ms"));
  EXPECT_THAT(text, HasSubstr("266.6 mJ"));
  EXPECT_THAT(text, HasSubstr("380.2 mJ"));
  EXPECT_THAT(text, ::testing::ContainsRegex("active +26.00 +25.57 +113.6 mJ"));
  EXPECT_THAT(text, HasSubstr("97 rows"));
}

TEST(LatencyEnergyText, WithoutIdlePowerActiveIsUnavailable) {
  const analysis::PowerSummary work{Power::watts(87), Power::watts(87), 97};
  const auto text = latency_energy_to_text({{"gpu0", {}, work}}, kLatency);
  EXPECT_THAT(text, HasSubstr("unavailable"));
  EXPECT_THAT(text, HasSubstr("380.2 mJ"));
}

}  // namespace
}  // namespace jouleprof::report
