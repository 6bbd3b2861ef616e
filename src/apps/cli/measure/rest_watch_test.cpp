#include "apps/cli/measure/rest_watch.h"

#include <gtest/gtest.h>

#include "model/device/sensor.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

// A board whose snapshots a test makes second by second.
struct Board {
  RestWatch watch;
  bool counts_on = false;  // energies since the start, as monitor's; else since the last look
  double error = 0.1;      // joules, of each energy
  std::map<std::string, double, std::less<>> gauges{{std::string(model::gauge::kSmClock), 345e6},
                                                    {std::string(model::gauge::kGpuUtilisation), 0},
                                                    {std::string(model::gauge::kProcessCount), 0},
                                                    {std::string(model::gauge::kTemperature), 31}};
  model::Snapshot snapshot;
  double total = 0;

  Board() {
    snapshot.time = RealTime{100s};
    auto& gpu = snapshot.domains.emplace_back();
    gpu.domain.kind = model::DomainKind::kGpu;
    gpu.domain.uuid = "GPU-1";
    gpu.energy_end = HostTime{1000s};
    gpu.energy_begin = gpu.energy_end;
  }

  bool second(double watts, const std::vector<bool>& held = {}) {
    auto& gpu = snapshot.domains[0];
    total += watts;
    if (!counts_on) gpu.energy_begin = gpu.energy_end;
    gpu.energy_end += 1s;
    gpu.energy.emplace();
    gpu.energy->energy = Energy::joules(counts_on ? total : watts);
    gpu.energy->repeatability = Energy::joules(error);
    gpu.gauges = gauges;
    snapshot.time += 1s;
    return watch.add(snapshot, held);
  }
  void pass(int count, double watts) {
    for (int i = 0; i < count; ++i) second(watts);
  }
  std::optional<double> watts() const {
    const auto power = watch.power("GPU-1");
    return power ? std::optional(power->watts()) : std::nullopt;
  }
};

TEST(RestWatch, LearnsThePowerWhileHeldForItselfAlone) {
  Board board;
  board.gauges[std::string(model::gauge::kSmClock)] = 1.98e9;
  board.gauges[std::string(model::gauge::kProcessCount)] = 1;
  board.pass(8, 115);
  ASSERT_TRUE(board.watch.held("GPU-1"));
  EXPECT_NEAR(board.watch.held("GPU-1")->watts(), 115, 1e-6);
  EXPECT_FALSE(board.watts());
  EXPECT_TRUE(board.watch.levels().empty());
  board.gauges[std::string(model::gauge::kGpuUtilisation)] = 0.02;
  board.pass(8, 90);
  EXPECT_NEAR(board.watch.held("GPU-1")->watts(), 115, 1e-6);  // it worked then
}

TEST(RestWatch, LearnsThePowerAtRest) {
  for (const bool counts_on : {false, true}) {
    Board board;
    board.counts_on = counts_on;
    board.pass(4, 70);
    EXPECT_FALSE(board.watts()) << "too short";
    board.pass(4, 70);
    ASSERT_TRUE(board.watts());
    EXPECT_NEAR(*board.watts(), 70, 1e-6);
    const auto& level = *board.watch.levels().at("GPU-1").rest;
    EXPECT_EQ(level.observed, RealTime{101s});  // of the first look: later levels replace it
    EXPECT_EQ(level.temperature_celsius, 31);
    EXPECT_GT(level.spread, Power{});
    EXPECT_LT(level.spread, Power::watts(0.1));
  }
}

TEST(RestWatch, AnythingThatHoldsTheBoardIsNotRest) {
  const auto with = [](std::string_view gauge, double value) {
    Board board;
    board.gauges[std::string(gauge)] = value;
    board.pass(60, 120);
    return board.watts();
  };
  EXPECT_FALSE(with(model::gauge::kSmClock, 1980e6));
  EXPECT_FALSE(with(model::gauge::kGpuUtilisation, 0.01));
  EXPECT_FALSE(with(model::gauge::kProcessCount, 1));
  EXPECT_TRUE(with(model::gauge::kTemperature, 40));
  Board held;
  for (int i = 0; i < 60; ++i) held.second(120, {true});
  EXPECT_FALSE(held.watts());
}

TEST(RestWatch, WhatIsUnknownIsNotRest) {
  for (const auto gauge : {model::gauge::kSmClock, model::gauge::kGpuUtilisation}) {
    Board board;
    board.gauges.erase(std::string(gauge));
    board.pass(60, 70);
    EXPECT_FALSE(board.watts());
  }
  Board memory;
  memory.snapshot.domains[0].domain.kind = model::DomainKind::kGpuMemory;
  memory.pass(60, 70);
  EXPECT_FALSE(memory.watts());
}

TEST(RestWatch, WaitsUntilPowerHasFallen) {
  Board board;
  for (double watts = 100; watts > 71; watts -= 1) {
    board.second(watts);
    EXPECT_FALSE(board.watts());
  }
  board.pass(60, 70);
  ASSERT_TRUE(board.watts());
  EXPECT_NEAR(*board.watts(), 70, 0.6);
}

TEST(RestWatch, WaitsUntilTheErrorIsSmall) {
  Board board;
  board.error = 5;
  board.pass(20, 70);
  EXPECT_FALSE(board.watts());  // 5 W / sqrt(20)
  board.pass(20, 70);
  EXPECT_TRUE(board.watts());
}

TEST(RestWatch, ALongerTimeAtRestSharpensTheLevel) {
  Board board;
  board.error = 2;
  board.pass(10, 70);
  ASSERT_TRUE(board.watts());
  const Power first = board.watch.levels().at("GPU-1").rest->spread;
  board.pass(50, 70);
  EXPECT_LE(board.watch.levels().at("GPU-1").rest->spread.watts(), first.watts() / 2);
}

TEST(RestWatch, ALowerLevelReplacesAHigherOne) {
  Board board;
  board.pass(10, 80);
  board.gauges[std::string(model::gauge::kGpuUtilisation)] = 1;
  board.pass(3, 300);
  board.gauges[std::string(model::gauge::kGpuUtilisation)] = 0;
  board.pass(10, 70);
  EXPECT_NEAR(*board.watts(), 70, 1e-6);
  board.gauges[std::string(model::gauge::kGpuUtilisation)] = 1;
  board.pass(3, 300);
  board.gauges[std::string(model::gauge::kGpuUtilisation)] = 0;
  bool changed = false;
  for (int i = 0; i < 10; ++i) changed |= board.second(90);
  EXPECT_FALSE(changed);
  EXPECT_NEAR(*board.watts(), 70, 1e-6);
}

}  // namespace
}  // namespace jouleprof::cli
