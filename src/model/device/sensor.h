// A sensor of a domain, and its known traits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::model {

enum class SensorKind {
  kEnergyCounter,  // accumulates energy; steps at its update edges
  kPowerRing,      // the driver's own buffer of stamped samples, each a mean over `window`
  kPowerInstant,   // polled; a mean over `window`, renewed every `refresh`
  kPowerAverage,   // polled; a moving average of about a second, never used for less than seconds
  kGauge,          // anything that is not power: clocks, temperature, utilisation, ...
};

std::string_view to_string(SensorKind kind);  // energy_counter, power_ring, ...
std::optional<SensorKind> parse_sensor_kind(std::string_view text);

enum class SensorId : std::uint32_t {};

// Where the truth lies, at 95 %, of a sensor that shows a power P:
//   from P x (1 + gain_low) + offset_low to P x (1 + gain_high) + offset_high.
// It is the same for every reading of one device, so it bounds joules; between two energies of one
// device the gain cancels, and so does the offset where both took the same time.
struct ScaleError {
  double gain_low = -0.05;
  double gain_high = 0.05;
  Power offset_low{};
  Power offset_high{};
  std::string source;  // what it rests on, in words; empty: the sensor's maker or nothing

  static ScaleError symmetric(double gain) { return {-gain, gain, {}, {}, {}}; }

  // Half of each interval, and how far its middle lies above what the sensor shows.
  double gain_half() const { return (gain_high - gain_low) / 2; }
  double gain_shift() const { return (gain_high + gain_low) / 2; }
  Power offset_half() const { return (offset_high - offset_low) * 0.5; }
  Power offset_shift() const { return (offset_high + offset_low) * 0.5; }
  // The gain's larger side.
  double gain_most() const { return gain_high > -gain_low ? gain_high : -gain_low; }

  bool operator==(const ScaleError&) const = default;
};

// The traits of a sensor. An absent trait is unknown, not zero.
struct SensorTraits {
  std::optional<Duration> refresh;  // between two new values
  std::optional<Duration> window;   // each value is the mean over this long ...
  std::optional<Duration> lag;      // ... ending this long before its stamp
  // Before that mean is taken, power follows the load with a first-order lag of this time constant:
  // board and sensor together. Absent: without delay.
  std::optional<Duration> rise;
  std::optional<Duration> read_cost;  // CPU time of one read
  std::optional<Energy> wrap;         // a counter restarts from zero after this much
  Energy quantum{};                   // a counter's smallest step
  ScaleError scale = {};
  // Analysis multiplies every reading by it: the board was calibrated against a meter. Recordings
  // hold readings as they were read.
  double correction = 1;

  bool operator==(const SensorTraits&) const = default;
};

struct Sensor {
  SensorId id{};
  DomainId domain{};
  SensorKind kind{};
  // The interface it is read through: "nvmlDeviceGetTotalEnergyConsumption",
  // "powercap:intel-rapl:0/energy_uj". For a gauge, the quantity with its unit: see gauge_names.h.
  std::string name;
  Provenance provenance = Provenance::kMeasured;
  SensorTraits traits;

  bool operator==(const Sensor&) const = default;
};

// Raw sensor values on the host's timeline, as they were read.

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
