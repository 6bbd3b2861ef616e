// The seam between sensors and everything else.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/domain.h"
#include "model/process.h"
#include "model/readings.h"
#include "model/sensor.h"

namespace jouleprof::meters {

// Something read in one go: it fills one or more sensors.
struct Probe {
  std::string name;   // for messages: "gpu0 energy counter"
  Duration period{};  // how often it wants to be read
  // What it fills: where nobody wants any of them, it need not be read. None named: anything.
  std::vector<model::SensorId> sensors = {};
};

// A sensor that was looked for and can't be used.
struct Missing {
  std::string what;  // "RAPL package-0"
  Error error;       // why
  std::string fix;   // the least invasive thing that would change it; may be empty
};

// What the readings are for; a meter chooses its probes and their periods by it.
struct Demand {
  // The length of the shortest stretch whose energy will be asked for. Below a few seconds a meter
  // reads more often, and costs more.
  Duration shortest_window = std::chrono::seconds{5};
  // How often a sensor without a buffer of its own is polled for power; zero: as often as it
  // renews.
  Duration poll_period{};
  // How often an energy counter whose reads are costly is read; zero: as the shortest window asks.
  Duration counter_period{};
};

// A source of readings: one driver or one kernel interface, with all its devices.
//
// Thread safety: none; one thread calls everything. Opening is a static function of each
// implementation that returns Result<std::unique_ptr<...>>: "there is no such hardware" and "not
// for this user" are errors to be shown, not exceptions.
class Meter {
 public:
  virtual ~Meter() = default;
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  virtual std::string name() const = 0;  // "NVML", "RAPL", ...

  // Fixed after opening. Ids count from zero within the meter; whoever joins meters renumbers.
  virtual const std::vector<model::Domain>& domains() const = 0;
  virtual const std::vector<model::Sensor>& sensors() const = 0;
  virtual const std::vector<Missing>& missing() const = 0;
  virtual const std::vector<Probe>& probes() const = 0;

  // Reads probe `index` and appends what it said, failures included. May take as long as the driver
  // takes (an energy counter: 2.6 ms, a hanging driver: for ever). Returns when to read it next.
  virtual HostTime read(std::size_t index, model::Readings& out) = 0;

  // Which processes use this meter's devices now. Absent where the interface can't tell processes
  // apart; an empty list means that none uses them. Errors: as the driver gives them.
  virtual std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes() {
    return std::nullopt;
  }

 protected:
  Meter() = default;
};

}  // namespace jouleprof::meters
