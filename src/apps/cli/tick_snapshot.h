// What the machine's devices showed by the end of a monitor's tick.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "report/snapshot.h"
#include "session/live_power.h"
#include "session/session.h"

namespace jouleprof::cli {

class TickSnapshot {
 public:
  // A figure that no reading renewed for ten seconds is absent.
  report::Snapshot take(const session::Tick& tick);

 private:
  struct Gauge {
    double value = 0;
    HostTime at{};
  };
  std::unique_ptr<session::LivePower> power_;
  std::map<model::SensorId, Gauge> gauges_;
  HostTime begin_{};
};

}  // namespace jouleprof::cli
