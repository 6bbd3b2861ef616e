// Raw sensor values on the host's timeline, as they were read.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/device/sensor.h"

namespace jouleprof::model {

// One read of an energy counter: somewhere between `before` and `after` it stood at `total`.
struct CounterReading {
  SensorId sensor{};
  HostTime before{};
  HostTime after{};
  Energy total;  // raw: not unwrapped, not rebased

  bool operator==(const CounterReading&) const = default;
};

// One power value. `at` is the sensor's own stamp where it gives one, else when it was read.
struct PowerReading {
  SensorId sensor{};
  HostTime at{};
  Power power;

  bool operator==(const PowerReading&) const = default;
};

struct GaugeReading {
  SensorId sensor{};
  HostTime at{};
  double value = 0;

  bool operator==(const GaugeReading&) const = default;
};

// A read that failed. What it would have said is absent; why is kept.
struct ReadFailure {
  SensorId sensor{};
  HostTime at{};
  Error error;

  bool operator==(const ReadFailure&) const = default;
};

// A load was on without a pause.
struct BusySpan {
  HostTime begin{};
  HostTime end{};
};

// Readings in the order they came.
struct Readings {
  std::vector<CounterReading> counters;
  std::vector<PowerReading> powers;
  std::vector<GaugeReading> gauges;
  std::vector<ReadFailure> failures;

  bool empty() const {
    return counters.empty() && powers.empty() && gauges.empty() && failures.empty();
  }
  void clear() {
    counters.clear();
    powers.clear();
    gauges.clear();
    failures.clear();
  }
  bool operator==(const Readings&) const = default;
};

}  // namespace jouleprof::model
