// A run of ten seconds on a GPU and a CPU, as a recording.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/analysed_test.h"
#include "analysis/timeline/simulated_sensors_test.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis::simulated {

inline constexpr model::DomainId kPackage0{1};
inline constexpr model::SensorId kRapl{2};
inline constexpr model::SensorId kReasons{3};
inline constexpr model::SensorId kUtilisation{4};

// A GPU at 120 W idle that works at 500 W from 3 s to 13 s, and a package at 40 and 100 W.
class Recorded {
 public:
  Recorded() {
    recording.run.complete = true;
    recording.run.work_begin = at(3);
    recording.run.work_end = at(13);
    recording.domains.push_back(
        {kGpu0, model::DomainKind::kGpu, "gpu0", "a GPU", "", {}, true, ""});
    recording.domains.push_back(
        {kPackage0, model::DomainKind::kCpu, "package-0", "a CPU", "", {}, true, ""});
    recording.idle_spans = {{at(0.5), at(2.9)}, {at(13.5), at(15.9)}};
    recording.sensors = {gpu.counter(), gpu.ring()};
    model::Sensor rapl{kRapl, kPackage0, model::SensorKind::kEnergyCounter, "rapl", {}, {}};
    rapl.traits.refresh = 1ms;
    rapl.traits.wrap = Energy::joules(262143.328850);
    rapl.traits.scale = model::ScaleError::symmetric(0.03);
    recording.sensors.push_back(rapl);
    recording.sensors.push_back({kReasons,
                                 kGpu0,
                                 model::SensorKind::kGauge,
                                 std::string(model::gauge::kClockEventReasons),
                                 {},
                                 {}});
    recording.sensors.push_back({kUtilisation,
                                 kGpu0,
                                 model::SensorKind::kGauge,
                                 std::string(model::gauge::kGpuUtilisation),
                                 {},
                                 {}});
    recording.clock_points = {{at(0), RealTime{1'700'000'000s}, {}},
                              {at(16), RealTime{1'700'000'016s}, {}}};
  }

  // It draws `working` watts in its ten seconds, and `idle` and `after` before and after them.
  void read_gpu(double until = 16, double idle = 120, double working = 500, double after = 120) {
    power.hold(idle, 3);
    power.hold(working, 10);
    power.hold(after, 4);
    recording.readings.powers = gpu.samples(power, 0, until);
    recording.readings.counters = gpu.reads(power, 0.1, until);
  }
  void read_cpu(double until = 16) {
    Truth truth;
    truth.hold(40, 3);
    truth.hold(100, 10);
    truth.hold(40, 4);
    for (double t = 0; t < until; t += 0.05) {
      recording.readings.counters.push_back(
          {kRapl, at(t), at(t + 1e-5),
           Energy::joules(262000 + truth.joules(t) - (truth.joules(t) > 143 ? 262143.328850 : 0))});
    }
  }
  // A process of the command's with three quarters of a busy machine's time, others with the rest.
  void add_processes() {
    recording.processes.push_back(
        {model::ProcessId{7}, 100, {}, 1, "train", "train", at(3), {}, true});
    recording.processes.push_back(
        {model::ProcessId{8}, 101, {}, 100, "load", "load", at(3), {}, true});
    recording.processes.push_back(
        {model::ProcessId{9}, 55, {}, 1, "desktop", "", at(0), {}, false});
    for (double t = 2; t <= 14; t += 0.5) {
      const double w = std::clamp(t - 3, 0.0, 10.0);
      auto& p = recording.process_readings;
      p.machine.push_back({at(t), duration_of(100 + 4 * w), duration_of(1000 + 8 * t), 0});
      if (t < 3) continue;
      p.processes.push_back({model::ProcessId{7}, at(t), duration_of(2 * w), {}, 1000, 900, {}});
      p.processes.push_back(
          {model::ProcessId{8}, at(t), duration_of(0.5 * w), duration_of(0.5 * w), 500, {}, {}});
    }
  }

  GpuSensors gpu;
  Truth power;
  model::Recording recording;
};

inline const model::DomainProfile& domain(const model::Profile& profile, model::DomainId id) {
  for (const auto& d : profile.domains) {
    if (d.domain.id == id) return d;
  }
  static const model::DomainProfile none;
  return none;
}

inline void expect_conserved(const model::Profile& profile) {
  for (const auto& d : profile.domains) {
    if (!d.idle_part) continue;
    Energy sum = *d.idle_part + *d.within_command + *d.others + d.held_unowned.value_or(Energy{}) +
                 *d.unattributed;
    for (const auto& p : profile.processes) {
      for (const auto& share : p.shares) {
        EXPECT_GE(share.energy, Energy{});
        if (share.domain == d.domain.id) sum += share.energy;
      }
    }
    EXPECT_EQ(sum, d.energy->energy) << d.domain.device;
    EXPECT_EQ(d.balance.parts, sum) << d.domain.device;
    EXPECT_GE(*d.others, Energy{});
  }
}

inline Energy share(const model::Profile& profile, model::ProcessId process, model::DomainId id) {
  for (const auto& p : profile.processes) {
    if (p.process.id != process) continue;
    for (const auto& s : p.shares) {
      if (s.domain == id) return s.energy;
    }
  }
  return {};
}

}  // namespace jouleprof::analysis::simulated
