// What is known of a machine's domains while they are being measured: readings in, energies and
// snapshots out.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/live/live_energy.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/process/process.h"
#include "model/snapshot.h"

namespace jouleprof::session {

// The latest power of every domain. For display: energies come from a timeline.
class LivePower {
 public:
  explicit LivePower(const std::vector<model::Sensor>& sensors);

  void append(const model::Readings& readings);

  struct Value {
    Power power;
    model::Provenance provenance{};
  };
  // The mean of the newest batch of the domain's fastest sensor, with that sensor's provenance.
  // Absent when there is none, and once it is older than ten seconds. A counter that stands still
  // shows no power.
  std::optional<Value> of(model::DomainId domain, HostTime now) const;

  // When the domain's newest reading of energy or power was taken; absent before the first.
  std::optional<HostTime> newest(model::DomainId domain) const;

 private:
  struct Track {
    model::DomainId domain{};
    model::Provenance provenance{};
    int rank = 0;  // the lowest is shown
    Duration shortest_difference{};
    std::optional<model::CounterReading> counter;  // where the current difference began
    model::CounterReading moved;                   // the first read of the counter's present value
    HostTime unmoved{};                            // the newest read of that value
    std::optional<Power> power;
    HostTime at{};  // of `power`
    std::optional<HostTime> newest;
  };
  void drop_failed(const model::ReadFailure& failure);

  std::unordered_map<model::SensorId, Track> tracks_;
};

// What is known of a machine's domains while they are being measured: readings in, energies and
// snapshots out.
// Passive: its owner feeds it readings and chooses its thread. It reads no clock and no sensor, and
// takes no lock.
// Thread safety: none.
class LiveEngine {
 public:
  // `history`: as EnergyLedger's.
  LiveEngine(std::vector<model::Domain> domains, std::vector<model::Sensor> sensors,
             Duration history);

  void append(const model::Readings& readings);
  void append(const std::vector<model::MachineReading>& readings);

  // Energies of windows, and what bounds the memory.
  analysis::LiveEnergy& ledger() { return ledger_; }

  // What is known at `now`, with energies from `since` on. Later snapshots of the same `since`
  // never show less energy.
  model::Snapshot snapshot(const ClockPoint& now, HostTime since);

 private:
  struct Value {
    double value = 0;
    HostTime at{};
  };

  model::DomainSnapshot snapshot_of(std::size_t domain, HostTime now);
  void add_energy(std::size_t domain, HostTime now, model::DomainSnapshot& out);
  void add_gauges(HostTime now, model::DomainSnapshot& out) const;

  std::vector<model::Sensor> sensors_;
  analysis::LiveEnergy ledger_;
  LivePower power_;
  std::unordered_map<model::SensorId, Value> gauges_;
  std::size_t packages_ = 0;
  std::optional<model::MachineReading> machine_;
  std::optional<Value> busy_;  // the share of all CPU time that was busy between the last two looks
  HostTime since_{};
  std::vector<HostTime> begins_;  // by domain: from where its energy counts
  std::vector<Energy> shown_;     // by domain: the most that a snapshot since then has shown
};

}  // namespace jouleprof::session
