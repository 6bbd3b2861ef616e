// The processes on each GPU of a machine: who they are, and who used it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/live/energy_accounts.h"
#include "analysis/live/machine_state.h"
#include "analysis/processes/board_use.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "session/sampling/sampler.h"

namespace jouleprof::session {

// Thread safety: none.
class GpuUses {
 public:
  struct Found {
    analysis::Worker worker;
    HostTime start{};
    analysis::Growing cpu_time = {};  // since it was found
  };
  // The process that has a pid now.
  using Find = std::function<std::optional<Found>(pid_t)>;

  // A use of a domain within another one counts for the outer one.
  GpuUses(const std::vector<model::Domain>& domains, const std::vector<model::Sensor>& sensors,
          Find find);

  // Identifies the processes that are listed: to be called soon after the driver did, while they
  // live.
  void append(const Sampled& sampled);

  // Whether all boards that have lists have one since `t`.
  bool has_looked(HostTime t) const;

  // The processes that the latest look lists, if it is later than `since`, each with the mean of
  // its utilisations since then.
  std::vector<analysis::GpuHolder> holders(std::size_t domain, HostTime since) const;

  // What each process used between two looks at all processes; absent: it was not in the later one.
  using CpuTime = std::function<std::optional<double>(const analysis::Worker&)>;
  void append_cpu_times(HostTime since, HostTime at, const CpuTime& cpu_time);

  // Who used a domain, by board_use(). Processes are those of worker().
  std::vector<analysis::UseSlice> slices(std::size_t domain, HostTime begin, HostTime end) const;
  const analysis::Worker& worker(std::size_t process) const { return known_[process].worker; }

  // Forgets what was before `t`.
  void forget_before(HostTime t);

 private:
  struct Board {
    std::vector<analysis::BoardLook> looks;
    std::map<std::size_t, std::optional<std::uint64_t>> memory;  // of the latest look, by process
    std::vector<model::GaugeReading> utilisation;
    std::vector<analysis::BoardPart> parts;  // where MIG divides it
  };
  analysis::BoardLook& look_at(std::size_t domain, HostTime t);
  std::optional<std::size_t> identify(pid_t pid, std::size_t domain, HostTime at);
  std::optional<std::size_t> place_of(model::SensorId sensor, std::string_view gauge) const;

  const Find find_;
  std::vector<std::size_t> outermost_;  // by place
  std::map<model::DomainId, std::size_t> places_;
  std::vector<model::Sensor> gauges_;
  std::map<std::size_t, Board> boards_;  // by place
  // The board's place, and which part of it, for instances of boards that MIG divides.
  std::map<model::DomainId, std::pair<std::size_t, std::size_t>> parts_;
  std::vector<Found> known_;
  std::unordered_map<pid_t, std::size_t> by_pid_;  // the latest with this pid
};

}  // namespace jouleprof::session
