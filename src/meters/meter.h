// The interface of all sensors.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process/threads.h"
#include "base/result.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::meters {

// A unit of reading: one call that fills one or more sensors.
struct Probe {
  std::string name;   // for messages: "gpu0 energy counter"
  Duration period{};  // how often to read it
  // The sensors that it fills: when none of them is needed, it need not be read. Empty: any sensor.
  std::vector<model::SensorId> sensors = {};
};

// A sensor that exists or was expected, and cannot be used.
struct Missing {
  std::string what;  // "RAPL package-0"
  Error error;       // why
  std::string fix;   // the least invasive thing that would change it; may be empty
};

// What the readings are needed for; it determines a meter's probes and their periods.
struct Demand {
  // The shortest interval whose energy will be requested. Below a few seconds a meter reads more
  // often, and costs more.
  Duration shortest_window = std::chrono::seconds{5};
  // How often a sensor without a buffer of its own is polled for power; zero: as often as it
  // renews.
  Duration poll_period{};
  // How often an energy counter whose reads are costly is read; zero: as the shortest window asks.
  Duration counter_period{};
  // How often a driver's buffer of power samples is read; zero: every 0.9 s, so that a tool that is
  // killed loses little. A meter reads more often where the buffer is overwritten sooner.
  Duration sample_period{};
  // How often clocks, temperatures and utilisation are read; zero: every 0.9 s.
  Duration state_period{};
};

// A source of readings: one driver or one kernel interface, with all its devices.
//
// Thread safety: none; one thread calls everything. Each implementation has a static
// function open() that returns Result<std::unique_ptr<...>>: missing hardware and missing
// permission are errors to be shown.
class Meter {
 public:
  virtual ~Meter() = default;
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  virtual std::string name() const = 0;  // "NVML", "RAPL", ...

  // Fixed after opening. Ids count from zero within the meter; the session renumbers them.
  virtual const std::vector<model::Domain>& domains() const { return domains_; }
  virtual const std::vector<model::Sensor>& sensors() const { return sensors_; }
  virtual const std::vector<Missing>& missing() const { return missing_; }
  virtual const std::vector<Probe>& probes() const { return probes_; }

  // Reads probe `index` and appends its readings and failures. Takes as long as the driver (an
  // energy counter: 2.6 ms; a hanging driver: forever). Returns when to read it next.
  virtual HostTime read(std::size_t index, model::Readings& out) = 0;

  // Whether the last read() of this probe came before its time and has not ended: another read at
  // the time that it returned is a part of it. A counter waits for its next update in this way.
  virtual bool is_waiting(std::size_t index) const {
    (void)index;
    return false;
  }

  // From now on the readings are needed for this; before the next read() of each probe. A meter
  // whose sensors' traits depend on their periods goes on as before.
  virtual void set_demand(const Demand& demand) { (void)demand; }

  // What the user should know, since the last call.
  virtual std::vector<std::string> take_notices() { return {}; }

  // Which processes use this meter's devices now. Absent where the interface does not
  // list processes; an empty list means that none uses them. Appends to `out` how many processes
  // each device listed, where it has the gauge process_count. Errors: of the driver.
  virtual std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) {
    (void)out;
    return std::nullopt;
  }

 protected:
  Meter() = default;

  // Adds a domain, or a sensor of one, with the next number. The reference holds until the next
  // call.
  model::Domain& add_domain(model::DomainKind kind, std::string device, std::string name) {
    model::Domain& domain = domains_.emplace_back();
    domain.id = model::DomainId{static_cast<std::uint32_t>(domains_.size() - 1)};
    domain.kind = kind;
    domain.device = std::move(device);
    domain.name = std::move(name);
    return domain;
  }
  model::Sensor& add_sensor(model::DomainId domain, model::SensorKind kind, std::string name) {
    model::Sensor& sensor = sensors_.emplace_back();
    sensor.id = model::SensorId{static_cast<std::uint32_t>(sensors_.size() - 1)};
    sensor.domain = domain;
    sensor.kind = kind;
    sensor.name = std::move(name);
    return sensor;
  }

  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  std::vector<Missing> missing_;
  std::vector<Probe> probes_;
};

// Ends the reads of these probes that wait, all at the same time. `due`: of each. `read` reads a
// probe, and returns when it is due next.
template <typename ReadProbe>
void end_waits(const Meter& meter, const std::vector<std::size_t>& probes,
               std::vector<HostTime>& due, const ReadProbe& read) {
  constexpr Duration kTogether = std::chrono::microseconds{900};  // of one wake-up
  for (;;) {
    HostTime next = HostTime::max();
    for (std::size_t i = 0; i < probes.size(); ++i) {
      if (meter.is_waiting(probes[i])) next = std::min(next, due[i]);
    }
    if (next == HostTime::max()) return;
    std::this_thread::sleep_until(steady(next));
    for (std::size_t i = 0; i < probes.size(); ++i) {
      if (!meter.is_waiting(probes[i]) || due[i] > HostClock::now() + kTogether) continue;
      due[i] = read(probes[i]);
    }
  }
}

}  // namespace jouleprof::meters
