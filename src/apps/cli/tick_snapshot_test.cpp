#include "apps/cli/tick_snapshot.h"

#include <gtest/gtest.h>

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

// Packages with a power sensor each, watched in ticks of a second.
class TickSnapshotTest : public testing::Test {
 protected:
  void add_package() {
    const auto n = static_cast<std::uint32_t>(domains_.size());
    domains_.push_back(
        {model::DomainId{n}, model::DomainKind::kCpu, "package", "", "", {}, true, ""});
    model::Sensor sensor;
    sensor.id = model::SensorId{n};
    sensor.domain = model::DomainId{n};
    sensor.kind = model::SensorKind::kPowerInstant;
    sensors_.push_back(sensor);
  }
  // The first package's utilisation after a tick in which the CPUs were busy for `busy`, all four
  // together, or in which nobody looked.
  std::optional<double> tick(std::optional<Duration> busy) {
    now_ += 1s;
    model::ProcessReadings looks;
    if (busy) {
      busy_ += *busy;
      looks.machine.push_back({now_, busy_, 4 * now_.time_since_epoch(), 0});
    }
    const auto shown = snapshots_.take({now_ - 1s, now_, domains_, sensors_, {}, looks});
    return shown.devices.at(0).utilisation_ratio;
  }

  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  HostTime now_{100s};
  Duration busy_{};
  TickSnapshot snapshots_;
};

TEST_F(TickSnapshotTest, TheCpusUtilisationIsTheirShareOfBusyTime) {
  add_package();
  EXPECT_FALSE(tick(1s));  // one look is no difference
  EXPECT_EQ(tick(1s), 0.25);
  EXPECT_EQ(tick(std::nullopt), 0.25);
  EXPECT_EQ(tick(2s), 0.25);  // over both seconds
  EXPECT_EQ(tick(4s), 1);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(tick(std::nullopt));
  EXPECT_FALSE(tick(std::nullopt));  // too old
}

TEST_F(TickSnapshotTest, WhatSeveralPackagesShareIsNobodysOwn) {
  add_package();
  add_package();
  tick(1s);
  EXPECT_FALSE(tick(1s));
}

}  // namespace
}  // namespace jouleprof::cli
