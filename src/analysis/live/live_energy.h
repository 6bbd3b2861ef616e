// The energy of windows in every domain, while it is being measured.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/live/energy_ledger.h"
#include "analysis/live/window_totals.h"
#include "model/domain.h"

namespace jouleprof::analysis {

// Thread safety: none.
class LiveEnergy {
 public:
  // `history`: as EnergyLedger's.
  LiveEnergy(std::vector<model::Domain> domains, const std::vector<model::Sensor>& sensors,
             Duration history);

  const std::vector<model::Domain>& domains() const { return domains_; }

  void append(const model::Readings& readings);

  // A window that has ended: its edges sharpen the timelines, and it counts in its name's total. To
  // be added within a few seconds of its end.
  void add(std::uint32_t name, HostTime begin, HostTime end);

  // Whether all sensors have reported everything up to `t`. One that has been silent for three
  // seconds is not waited for.
  bool knows(HostTime t, HostTime now);
  // How long after `t` that can be the case at the earliest.
  Duration delay() const;

  // The energy of one domain, by its place in domains(), from `since` (or its first reading, where
  // that is later) up to the newest instant that one of its sensors has reported. Beyond the last
  // read of a counter it is the samples', and may become less. Errors: unavailable.
  struct SoFar {
    model::Measurement energy;
    HostTime begin{};
    HostTime end{};
  };
  Result<SoFar> energy_since(HostTime since, std::size_t domain);
  // The provenance of the sensors that its energy comes from; unavailable without one.
  model::Provenance provenance(std::size_t domain) const;

  // By domain. Errors: as EnergyTimeline::energy's, and unavailable for a domain without a sensor.
  std::vector<Result<model::Measurement>> energy(HostTime begin, HostTime end);
  // Is unavailable, too, where a counter that is not silent has not reported `end`: a guess of what
  // it will report would stay for good.
  std::vector<Result<model::Measurement>> reported_energy(HostTime begin, HostTime end,
                                                          HostTime now);
  // Like energy(), for one domain by its place in domains().
  Result<model::Measurement> energy_of(std::size_t domain, HostTime begin, HostTime end);
  // Whether its sensors have reported everything up to `t`.
  bool knows(std::size_t domain, HostTime t);
  // Up to where its energy is known; absent: none is.
  std::optional<HostTime> known_until(std::size_t domain);
  // See EnergyLedger::counter_at(); and the energy after which the counter begins at zero again.
  std::optional<Energy> counter_at(std::size_t domain, HostTime t);
  std::optional<Energy> counter_wrap(std::size_t domain) const;

  std::optional<HostTime> latest_end(std::uint32_t name) const { return totals_.latest_end(name); }
  // Absent for a name without a window. Of many short windows, from all of them together where that
  // is known better (RepeatedTotals).
  std::optional<WindowTotal> total(std::uint32_t name);

  // An edge of a window that will be asked for: its energy is then more precise.
  void mark(HostTime t);

  // Bounds the memory; to be called every second or so, does its work every five.
  void tidy(HostTime now);
  // See EnergyLedger::forget_before().
  void forget_before(HostTime t);

 private:
  tl::unexpected<Error> no_sensor(std::size_t domain) const;
  bool is_silent(std::size_t domain, HostTime t, HostTime now);
  WindowTotals::Ledgers ledgers();

  std::vector<model::Domain> domains_;
  std::vector<std::unique_ptr<EnergyLedger>> ledgers_;  // by domain; nullptr without a sensor
  WindowTotals totals_;
  RepeatedTotals repeated_;
  RepeatedTotals::Ledgers for_repeated_;         // by domain; empty where it is possible for none
  std::unordered_map<std::int64_t, int> marks_;  // lately, by 4 ms
  HostTime next_tidy_{};
  // By domain: the newest reading when it was waited for, and since when it has been in vain.
  struct Awaited {
    HostTime newest{};
    HostTime since{};
  };
  std::vector<std::optional<Awaited>> awaited_;
};

}  // namespace jouleprof::analysis
