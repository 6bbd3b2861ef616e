// Power and energy sensors that drivers offer through hwmon: AMD and Intel GPUs, Jetson rails,
// NVIDIA Grace sockets, ACPI power meters.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "meters/hwmon/channel.h"
#include "meters/meter.h"

namespace jouleprof::meters {

struct HwmonOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
};

// One sensor and one probe a channel, each with its own period:
// - energy inputs and powers: every 100 ms; 10 ms (20 ms for powers) for windows below a second;
//   never more often than the driver renews them;
// - averages over more than 200 ms (kPowerAverage): twice per averaging time.
// A demanded poll period replaces all of these.
//
// Not thread safe, as every Meter. No privileges needed.
class HwmonMeter : public Meter {
 public:
  // A channel that does not answer, is switched off, or whose meaning is unknown, is
  // in missing(). Errors: not_found when there is no power or energy channel at all.
  static Result<std::unique_ptr<HwmonMeter>> open(const HwmonOptions& options = {});

  std::string name() const override { return "hwmon"; }
  HostTime read(std::size_t index, model::Readings& out) override;
  void set_demand(const Demand& demand) override;

 private:
  HwmonMeter() = default;
  model::Domain& get_domain(const hwmon::Role& role, const hwmon::Channel& channel);
  void add_sensor(const hwmon::Channel& channel, model::DomainId domain, const Demand& demand);

  std::vector<std::string> owners_;       // as domains_: the device and input that each stands for
  std::vector<hwmon::Channel> channels_;  // as sensors_ and probes_
};

}  // namespace jouleprof::meters
