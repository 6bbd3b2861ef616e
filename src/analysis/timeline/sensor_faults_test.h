// Simulated GPU generations, and faults of their sensors: the matrix of sensor_faults_test.cpp.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/timeline/simulated_timeline_test.h"

namespace jouleprof::analysis::simulated {

struct Generation {
  std::string_view name;
  GpuSensors sensors;
  model::SensorKind power = model::SensorKind::kPowerRing;
  bool has_counter = true;
  bool has_power = true;
};

inline std::vector<Generation> generations() {
  using model::SensorKind;
  GpuSensors volta;
  volta.window = 0.010;
  volta.lag = 0;
  GpuSensors turing;
  turing.window = turing.sample_every = 0.100;
  turing.lag = 0;
  GpuSensors ampere;
  ampere.lag = 0;
  GpuSensors polled = turing;
  polled.jitter = false;
  GpuSensors hopper;
  hopper.window = 0.003;
  hopper.lag = 0.0027;
  hopper.rise = 0.014;
  hopper.earliest_visible = 0;
  hopper.latest_visible = 0.012;
  return {{"pascal", volta, SensorKind::kPowerRing, false, true},
          {"volta", volta},
          {"turing", turing},
          {"ampere", ampere},
          {"ga102", polled, SensorKind::kPowerInstant},
          {"hopper", hopper},
          {"counter alone", ampere, SensorKind::kPowerRing, true, false}};
}

enum class Fault {
  kNone,
  kDenied,
  kFrozen,
  kZero,
  kAllOnes,
  kGlitchUp,
  kGlitchDown,
  kReset,
  kReload,
  kJump,
  kLate,
  kDuplicate,
  kReordered,
  kHang,
  kLostAndBack,
};
inline constexpr std::pair<Fault, std::string_view> kFaults[] = {
    {Fault::kNone, "none"},
    {Fault::kDenied, "denied"},
    {Fault::kFrozen, "frozen"},
    {Fault::kZero, "zero"},
    {Fault::kAllOnes, "all ones"},
    {Fault::kGlitchUp, "glitch up"},
    {Fault::kGlitchDown, "glitch down"},
    {Fault::kReset, "reset"},
    {Fault::kReload, "reload"},
    {Fault::kJump, "jump"},
    {Fault::kLate, "late"},
    {Fault::kDuplicate, "duplicate"},
    {Fault::kReordered, "reordered"},
    {Fault::kHang, "hang"},
    {Fault::kLostAndBack, "lost and back"},
};

enum class Faulty { kOnlyCounter, kOnlyPower, kBoth };
inline constexpr std::pair<Faulty, std::string_view> kFaulty[] = {
    {Faulty::kOnlyCounter, "counter"}, {Faulty::kOnlyPower, "power"}, {Faulty::kBoth, "both"}};

inline HostTime& time_of(model::PowerReading& r) { return r.at; }
inline HostTime& time_of(model::CounterReading& r) { return r.before; }
inline Power scaled(Power p, double k) { return p * k; }
inline Energy scaled(Energy e, double k) { return Energy::joules(e.joules() * k); }
inline void set_late(model::PowerReading& r, Duration by) { r.at += by; }
inline void set_late(model::CounterReading& r, Duration by) { r.after += by; }

// `moment`: seconds at which the fault begins. Times and values are the sensor's.
template <class Reading, class Value>
void damage(std::vector<Reading>& readings, Fault fault, double moment, Value Reading::*value,
            Value all_ones, Value jump) {
  std::vector<Reading> out;
  std::optional<Value> held;
  bool glitched = false;
  std::optional<Reading> delayed;
  const HostTime from = at(moment);
  for (Reading r : readings) {
    const HostTime t = time_of(r);
    const bool on = t >= from;
    const bool within = on && t < from + 5s;
    const bool shortly = on && t < from + 2s;
    Value& v = r.*value;
    if (!on || !held) held = v;
    switch (fault) {
      case Fault::kNone:
        break;
      case Fault::kDenied:
        if (on) continue;
        break;
      case Fault::kFrozen:
        if (on) v = *held;
        break;
      case Fault::kZero:
        if (on) v = Value{};
        break;
      case Fault::kAllOnes:
        if (on) v = all_ones;
        break;
      case Fault::kGlitchUp:
        if (on && !glitched) v = v + jump, glitched = true;
        break;
      case Fault::kGlitchDown:
        if (on && !glitched) v = scaled(v, 0.05), glitched = true;
        break;
      case Fault::kReset:
        if constexpr (std::is_same_v<Value, Energy>) {
          if (on) v -= *held;
        }
        break;
      case Fault::kReload:
        if (shortly) continue;
        if constexpr (std::is_same_v<Value, Energy>) {
          if (on) v -= *held;
        }
        break;
      case Fault::kJump:
        if constexpr (std::is_same_v<Value, Energy>) {
          if (on) v += Energy::joules(3e6);
        }
        break;
      case Fault::kLate:
        if (within) set_late(r, 40ms);
        break;
      case Fault::kDuplicate:
        if (within) out.push_back(r);
        break;
      case Fault::kReordered:
        if (within && !delayed) {
          delayed = r;
          continue;
        }
        break;
      case Fault::kHang:
        if (within) {
          if (!delayed) delayed = r;
          continue;
        }
        if (delayed) set_late(*delayed, 5s), out.push_back(*delayed), delayed.reset();
        break;
      case Fault::kLostAndBack:
        if (within) continue;
        break;
    }
    out.push_back(r);
    if (fault == Fault::kReordered && delayed) out.push_back(*delayed), delayed.reset();
  }
  readings = std::move(out);
}

struct FaultyRun {
  TimelineSensors sensors;
  std::vector<model::PowerReading> powers;
  std::vector<model::CounterReading> counters;
};

struct FaultyCase {
  Generation generation;
  Faulty which{};
  std::string_view faulty_name;
  Fault fault{};
  std::string_view fault_name;
  double moment = 0;  // seconds
  double length = 0;
  unsigned seed = 0;
};

template <class F>
void for_each_case(const F& run) {
  for (const auto& generation : generations()) {
    for (const auto& [which, where] : kFaulty) {
      if (which != Faulty::kOnlyPower && !generation.has_counter) continue;
      if (which != Faulty::kOnlyCounter && !generation.has_power) continue;
      for (const auto& [fault, name] : kFaults) {
        for (const double length : {8.0, 40.0}) {
          for (const double moment : {0.0, 1.4, 4.0, 0.45 * length, length - 1.2}) {
            for (unsigned seed = 1; seed <= 3; ++seed) {
              run(FaultyCase{generation, which, where, fault, name, moment, length, seed});
            }
          }
        }
      }
    }
  }
}

inline FaultyRun faulty_run(const FaultyCase& c, const Truth& truth) {
  GpuSensors gpu = c.generation.sensors;
  gpu.seed = c.seed;
  gpu.phase = 0.001 * static_cast<double>(c.seed * 37 % 100);
  FaultyRun out;
  if (c.generation.has_counter) {
    out.sensors.counter = gpu.counter();
    if (c.seed % 2 == 1) gpu.read_every = 5;
    out.counters = counter_reads(gpu, truth);
    for (auto& r : out.counters) r.total += Energy::joules(1e5);
    if (c.which != Faulty::kOnlyPower) {
      damage(out.counters, c.fault, c.moment, &model::CounterReading::total,
             Energy::millijoules(0xFFFFFFFF), Energy::joules(3e6));
    }
  }
  if (c.generation.has_power) {
    out.sensors.power = gpu.ring();
    out.sensors.power->kind = c.generation.power;
    out.powers = gpu.samples(truth, 0, truth.end());
    if (c.which != Faulty::kOnlyCounter) {
      damage(out.powers, c.fault, c.moment, &model::PowerReading::power,
             Power::milliwatts(0xFFFFFFFF), Power::watts(3000));
    }
  }
  return out;
}

}  // namespace jouleprof::analysis::simulated
