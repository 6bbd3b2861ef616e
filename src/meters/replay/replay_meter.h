// Plays a recording's readings back as if they came from sensors now.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "meters/meter.h"
#include "model/recording.h"

namespace jouleprof::meters {

struct ReplayOptions {
  // How many times faster than it happened. Power stays what it was and time shrinks, so energy
  // shrinks with it, counters included.
  double speed = 1;
  // A replay measures nothing of what runs now, so its sensors are kSimulated. True leaves them the
  // provenance that they were recorded with.
  bool keep_provenance = false;
  std::function<HostTime()> clock = HostClock::now;
};

// The earliest stamp of the recording falls on the moment of opening; all others keep their
// distance from it. Domains and sensors are the recording's own, with ids counted from zero.
//
// Not thread safe, as every Meter.
class ReplayMeter : public Meter {
 public:
  // Errors: invalid_argument for a speed that is not above zero; unavailable when the recording
  // holds no reading; corrupt when a reading or a sensor names what is not there.
  static Result<std::unique_ptr<ReplayMeter>> open(model::Recording recording,
                                                   const ReplayOptions& options = {});

  std::string name() const override { return "replay"; }
  const std::vector<model::Domain>& domains() const override { return domains_; }
  const std::vector<model::Sensor>& sensors() const override { return sensors_; }
  const std::vector<Missing>& missing() const override { return missing_; }
  const std::vector<Probe>& probes() const override { return probes_; }  // one
  // Hands out what lies between the call before and the clock's now, each kind in the order of its
  // stamps. After finished(), nothing more.
  HostTime read(std::size_t index, model::Readings& out) override;

  // True once every reading was handed out.
  bool finished() const;

 private:
  ReplayMeter() = default;
  Result<void> renumber(model::Recording& recording);
  void shift(HostTime start, double speed);

  struct Position {
    std::size_t counters = 0, powers = 0, gauges = 0, failures = 0;
  };

  std::function<HostTime()> clock_;
  model::Readings readings_;  // shifted, each kind by its stamp
  Position next_;
  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  std::vector<Missing> missing_;
  std::vector<Probe> probes_;
};

}  // namespace jouleprof::meters
