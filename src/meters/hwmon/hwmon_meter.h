// Power and energy sensors that drivers offer in /sys: AMD and Intel GPUs (hwmon, gpu_metrics),
// Jetson rails, NVIDIA Grace sockets, ACPI power meters.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "meters/hwmon/channel.h"
#include "meters/hwmon/gpu_clients.h"
#include "meters/meter.h"

namespace jouleprof::meters {

struct HwmonOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
  bool has_cpu = false;  // another meter counts the processors: no second figure for them
};

// One sensor and one probe a channel, each with its own period:
// - energy inputs and powers: every 100 ms; 10 ms (20 ms for powers) for windows below a second;
//   never more often than the driver renews them;
// - averages over more than 200 ms (kPowerAverage): twice per averaging time.
// - AMD's gpu_metrics: as an energy input; a counter whose unit the kernel names, and the socket's
//   power where hwmon has none;
// - the state of a GPU, as gauges: every 0.9 s.
// A demanded poll period replaces all of these but the last.
//
// A GPU without any sensor has a domain with the reason; one that is part of an Intel processor is
// in missing() only, because the processor's package contains its energy.
//
// Not thread safe, as every Meter. No privileges needed for the sensors.
class HwmonMeter : public Meter {
 public:
  // A channel that does not answer, is switched off, or whose meaning is unknown, is
  // in missing(). Errors: not_found when there is no power or energy channel and no GPU at all.
  static Result<std::unique_ptr<HwmonMeter>> open(const HwmonOptions& options = {});

  std::string name() const override { return "hwmon"; }
  HostTime read(std::size_t index, model::Readings& out) override;
  void set_demand(const Demand& demand) override;
  // Of the GPUs that have a sensor.
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override;

 private:
  using Read = std::function<void(model::Readings&)>;
  using Pace = std::function<Duration(const Demand&)>;

  HwmonMeter() = default;
  void add_channels(const std::vector<hwmon::Channel>& channels,
                    const std::vector<hwmon::Board>& boards, bool has_cpu);
  void add_channel(const hwmon::Channel& channel, const hwmon::Role& role);
  void add_board(const hwmon::Board& board, const std::vector<hwmon::Channel>& channels);
  void add_metrics(const hwmon::Board& board, model::DomainId domain);
  void add_state(const hwmon::Board& board, model::DomainId domain);
  model::Domain& get_domain(const hwmon::Role& role, const std::string& owner);
  bool has_sensor(model::DomainId domain) const;
  model::SensorId add_sensor(model::DomainId domain, model::SensorKind kind, std::string name,
                             model::SensorTraits traits = {});
  void add_probe(std::string name, std::vector<model::SensorId> sensors, Read read, Pace pace);

  std::vector<std::string> owners_;  // as domains_: the device and input that each stands for
  std::vector<Read> reads_;          // as probes_
  std::vector<Pace> paces_;          // as probes_
  std::optional<hwmon::GpuClients> clients_;
};

}  // namespace jouleprof::meters
