#include <gtest/gtest.h>

#include "model/domain.h"
#include "model/profile.h"
#include "model/provenance.h"
#include "model/sensor.h"

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
  EXPECT_EQ(parse_domain_kind("psu"), std::nullopt);
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

}  // namespace
}  // namespace jouleprof::model
