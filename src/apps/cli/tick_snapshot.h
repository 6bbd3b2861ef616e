// What the machine's devices showed by the end of a monitor's tick.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "report/snapshot.h"
#include "session/run/session.h"
#include "session/sampling/live_power.h"

namespace jouleprof::cli {

class TickSnapshot {
 public:
  // A figure that no reading renewed for ten seconds is absent. The CPU's utilisation is the share
  // of the machine's CPU time that was busy between the last two looks at it, and absent where that
  // is the time of several packages.
  report::Snapshot take(const session::Tick& tick);

 private:
  struct Gauge {
    double value = 0;
    HostTime at{};
  };
  void add_machine(const std::vector<model::MachineReading>& readings);

  std::unique_ptr<session::LivePower> power_;
  std::map<model::SensorId, Gauge> gauges_;
  std::optional<model::MachineReading> machine_;
  std::optional<Gauge> busy_;  // a ratio
  HostTime begin_{};
};

}  // namespace jouleprof::cli
