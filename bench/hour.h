// A synthetic recording of one hour: an H100's sensors, a package, gauges and processes.
#pragma once

#include <chrono>
#include <cmath>
#include <random>
#include <string>

#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::bench {

inline constexpr double kHour = 3600;

inline HostTime at(double s) { return HostTime{duration_of(1000 + s)}; }

// True power: bursts of half a second over a slow wave.
inline double watts_at(double t) {
  const double wave = 60 * std::sin(t / 40);
  return 180 + wave + (std::fmod(t, 1.3) < 0.5 ? 350 : 0);
}

inline model::Sensor ring_sensor() {
  model::Sensor s{model::SensorId{1}, {}, model::SensorKind::kPowerRing, "ring", {}, {}};
  s.traits.refresh = std::chrono::milliseconds{20};
  s.traits.window = std::chrono::milliseconds{25};
  s.traits.lag = std::chrono::microseconds{2500};
  return s;
}

inline model::Sensor counter_sensor() {
  model::Sensor s{model::SensorId{0}, {}, model::SensorKind::kEnergyCounter, "counter", {}, {}};
  s.traits.refresh = std::chrono::milliseconds{100};
  s.traits.quantum = Energy::millijoules(1);
  return s;
}

// The GPU's readings: a sample every 20 ms, the counter every five seconds and densely at first.
inline model::Readings gpu_readings(double length) {
  model::Readings out;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  double joules = 0;
  double next_read = 0;
  for (double t = 0; t < length; t += 0.02) {
    const double watts = watts_at(t) * (1 + 0.002 * normal(random));
    out.powers.push_back({model::SensorId{1}, at(t + 0.0003 * normal(random)),
                          Power::milliwatts(std::llround(watts * 1e3))});
    joules += watts_at(t) * 0.02;
    if (t < next_read) continue;
    next_read += t < 2 ? 0.1 : 5;
    out.counters.push_back({model::SensorId{0}, at(t), at(t + 0.003), Energy::joules(joules)});
  }
  return out;
}

inline void add_processes(model::Recording& r, double length) {
  constexpr unsigned kProcesses = 20;
  for (unsigned i = 0; i < kProcesses; ++i) {
    model::Process p;
    p.id = model::ProcessId{i};
    p.pid = static_cast<pid_t>(4000 + i);
    p.parent_pid = i == 0 ? 1 : 4000;
    p.name = "python";
    p.command_line = "python train.py --rank " + std::to_string(i);
    p.start = at(0);
    p.in_tree = i < kProcesses - 4;
    r.processes.push_back(p);
  }
  for (double t = 0; t < length; t += 1) {
    for (unsigned i = 0; i < kProcesses; ++i) {
      r.process_readings.processes.push_back({model::ProcessId{i},
                                              at(t),
                                              duration_of(t * 0.3),
                                              {},
                                              200'000'000 + i,
                                              100'000'000 + i,
                                              {}});
    }
    r.process_readings.machine.push_back(
        {at(t), duration_of(t * 7), duration_of(t * 16), 8'000'000'000});
    r.process_readings.gpu_processes.push_back(
        {model::ProcessId{1}, model::DomainId{0}, at(t), 0.7, 20'000'000'000});
  }
}

inline model::Recording one_hour() {
  model::Recording r;
  r.run.source = "run";
  r.run.command = {"python", "train.py"};
  r.run.work_begin = at(2);
  r.run.work_end = at(kHour - 10);
  r.run.complete = true;
  r.clock_points = {{at(0), RealTime{std::chrono::seconds{1'790'000'000}}, {}}};
  r.domains = {{model::DomainId{0}, model::DomainKind::kGpu, "gpu0", "GPU", "", {}, true, ""},
               {model::DomainId{1}, model::DomainKind::kCpu, "package-0", "CPU", "", {}, true, ""}};
  r.sensors = {counter_sensor(), ring_sensor()};
  model::Sensor rapl{model::SensorId{2},
                     model::DomainId{1},
                     model::SensorKind::kEnergyCounter,
                     "powercap",
                     {},
                     {}};
  rapl.traits.refresh = std::chrono::milliseconds{1};
  rapl.traits.wrap = Energy::joules(262143);
  r.sensors.push_back(rapl);
  r.readings = gpu_readings(kHour);
  for (double t = 0; t < kHour; t += 0.1) {
    const double joules = 90 * t;
    r.readings.counters.push_back(
        {model::SensorId{2}, at(t), at(t + 1e-5), Energy::joules(std::fmod(joules, 262143))});
  }
  constexpr unsigned kGauges = 20;
  for (unsigned i = 0; i < kGauges; ++i) {
    r.sensors.push_back(
        {model::SensorId{10 + i},
         model::DomainId{0},
         model::SensorKind::kGauge,
         i == 0 ? std::string(model::gauge::kSmClock) : "gauge_" + std::to_string(i),
         {},
         {}});
  }
  for (double t = 0; t < kHour; t += 2) {
    for (unsigned i = 0; i < kGauges; ++i) {
      r.readings.gauges.push_back({model::SensorId{10 + i}, at(t), 1e9 + t * i});
    }
  }
  add_processes(r, kHour);
  return r;
}

// Consecutive windows of `each` seconds, with ten names.
inline void add_windows(model::Recording& r, int count) {
  const double each = (kHour - 20) / count;
  for (int i = 0; i < count; ++i) {
    const double begin = 5 + each * i;
    r.windows.push_back(
        {"step " + std::to_string(i % 10), at(begin), at(begin + 0.8 * each), 4000, 4000, false});
  }
}

}  // namespace jouleprof::bench
