#include <gtest/gtest.h>

#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/profile.h"
#include "model/record_fields.h"
#include "model/recording.h"

namespace jouleprof::model {
namespace {

TEST(Model, NamesReadBack) {
  for (int i = 0; i < 8; ++i) {
    const auto kind = static_cast<DomainKind>(i);
    EXPECT_EQ(parse_domain_kind(to_string(kind)), kind);
  }
  for (int i = 0; i < 5; ++i) {
    const auto kind = static_cast<SensorKind>(i);
    EXPECT_EQ(parse_sensor_kind(to_string(kind)), kind);
  }
  for (int i = 0; i < 4; ++i) {
    const auto p = static_cast<Provenance>(i);
    EXPECT_EQ(parse_provenance(to_string(p)), p);
  }
  for (int i = 1; i < 4; ++i) {
    const auto phase = static_cast<Phase>(i);
    EXPECT_EQ(parse_word<Phase>(phase_name(phase)), phase);
  }
  EXPECT_EQ(parse_word<Phase>(""), std::nullopt);
  EXPECT_EQ(parse_word<Phase>("sideways"), std::nullopt);
  EXPECT_EQ(parse_domain_kind("psu"), std::nullopt);
}

TEST(Model, OnlySomeRecordingsShowRestAroundTheirTraces) {
  const auto rests = [](const char* source) {
    RunInfo run;
    run.source = source;
    return is_at_rest_around_traces(run);
  };
  EXPECT_TRUE(rests("attach"));
  EXPECT_TRUE(rests("import:csv"));
  EXPECT_FALSE(rests("run"));
  EXPECT_FALSE(rests("monitor"));
  EXPECT_FALSE(rests("library"));
}

TEST(Model, ASumIsOnlyAsGoodAsItsWorstPart) {
  using enum Provenance;
  EXPECT_EQ(combine(kMeasured, kMeasured), kMeasured);
  EXPECT_EQ(combine(kMeasured, kEstimated), kEstimated);
  EXPECT_EQ(combine(kSimulated, kMeasured), kSimulated);
  EXPECT_EQ(combine(kUnavailable, kMeasured), kMeasured);
  EXPECT_EQ(combine(kUnavailable, kUnavailable), kUnavailable);
}

TEST(Model, AnIntervalNeverReachesBelowZero) {
  Measurement m;
  m.energy = Energy::joules(1);
  m.error = Energy::joules(3);
  EXPECT_EQ(m.low(), Energy{});
  EXPECT_EQ(m.high(), Energy::joules(4));
}

// The numbers are those that recordings hold, from the first format on.
TEST(Model, ClockReasonsAreReadFromTheirGauge) {
  using enum ClockReason;
  EXPECT_TRUE(ClockReasons::of_gauge(4).limited_by_power());
  EXPECT_TRUE(ClockReasons::of_gauge(0x80).limited_by_power());
  EXPECT_TRUE(ClockReasons::of_gauge(0x20).thermal());
  EXPECT_TRUE(ClockReasons::of_gauge(0x40).limited_by_heat());
  EXPECT_TRUE(ClockReasons{kHardwareSlowdown}.limited_by_heat());
  EXPECT_FALSE((ClockReasons{kHardwareSlowdown, kPowerBrake}.limited_by_heat()));
  EXPECT_FALSE(ClockReasons::of_gauge(1).limited_by_power());
  EXPECT_EQ((ClockReasons{kIdle, kPowerLimit}.gauge()), 5);
  EXPECT_EQ(ClockReasons::of_gauge(-1).gauge(), 0);
  EXPECT_EQ(ClockReasons::of_gauge(5).names(),
            (std::vector<std::string_view>{"idle", "power_limit"}));
}

}  // namespace
}  // namespace jouleprof::model
