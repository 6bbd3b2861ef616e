// What a service knows of its machine after a tick, in addition to the energy accounts.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/live/energy_accounts.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/process/process.h"
#include "model/profile.h"
#include "model/snapshot.h"

namespace jouleprof::analysis {

// The energy of today, by the local date of the machine.
struct Day {
  std::optional<RealTime> begin;  // the day's first tick, or the start of a service on that day
  std::vector<Energy> before;     // the accounts' totals then, in their order

  // Since `begin`.
  Energy energy(std::size_t domain, const DomainAccount& account) const {
    return domain < before.size() ? account.total - before[domain] : account.total;
  }
};

// Begins another day where `now` has another date than the day's begin.
inline void follow_day(Day& day, RealTime now, const std::vector<DomainAccount>& accounts) {
  const auto date_of = [](RealTime t) {
    const std::time_t seconds =
        std::chrono::floor<std::chrono::seconds>(t.time_since_epoch()).count();
    std::tm local{};
    localtime_r(&seconds, &local);
    return std::tuple(local.tm_year, local.tm_yday);
  };
  if (day.begin && date_of(*day.begin) == date_of(now)) return;
  day.begin = now;
  day.before.clear();
  for (const auto& account : accounts) day.before.push_back(account.total);
}

// A process that holds a GPU.
struct GpuHolder {
  std::size_t domain = 0;
  Worker worker;
  std::optional<double> utilisation;  // 0 to 1, of the multiprocessors
  std::optional<std::uint64_t> memory_bytes;
};

// A job to which the scheduler gave a GPU or a MIG instance on it.
struct Allocation {
  std::size_t domain = 0;
  std::optional<unsigned> instance;
  std::string job;
};

// Where a device's own counter stood.
struct CounterMark {
  Energy total;
  RealTime at{};
};

// In addition to its DomainSnapshot.
struct DomainState {
  model::Provenance provenance = model::Provenance::kUnavailable;  // of its energy's sensors
  bool divided = false;   // among processes; otherwise the accounts have its total only
  bool counted = false;   // its energy is counted since some tick; before that it has none
  bool reported = false;  // its sensors have reported everything up to this tick
  // Intervals whose energy its sensors did not report at all, and which the totals therefore lack.
  std::uint64_t gaps = 0;
  // Used between services, by the device's own counter; part of the unattributed energy.
  Energy between_services{};
  std::string reason{};                  // why the energy of the latest tick is unknown
  std::optional<CounterMark> counter{};  // at the latest tick
  // Where the service before left it, until what was used since then is counted.
  std::optional<CounterMark> before{};
};

struct OwnCost {
  Duration cpu_time{};
  Duration elapsed{};
  std::uint64_t resident_bytes = 0;
};

// Clients that read a service's metrics again and again.
struct MetricsReaders {
  std::size_t count = 0;
  HostTime seen{};  // what began by then, each of them has seen
};

struct MachineState {
  model::Snapshot snapshot;  // energies there are those since the tick before
  HostTime now{};
  std::vector<DomainState> domains;  // in the snapshot's order, which is that of the accounts
  std::vector<GpuHolder> holders;
  std::vector<Allocation> allocations;
  model::KubeNames names;
  std::optional<std::uint64_t> memory_used_bytes;  // of the machine
  OwnCost cost;
  std::uint64_t ticks = 0;
  std::vector<std::string> warnings;  // all so far
  Day day;

  // For times in the wall clock that do not change when that is set.
  ClockPoint started{};
  RealTime real(HostTime t) const { return started.real + (t - started.host); }
  // From when a domain's energy is counted.
  RealTime since(const DomainAccount& account) const {
    return account.since ? real(*account.since) : started.real;
  }
  // The counters continue those of a service that saved them last at this time; absent: they do
  // not.
  std::optional<RealTime> continued_from;
  std::optional<MetricsReaders> readers;  // absent, or of the service before: until the first tick
  // Devices that an earlier service counted and that are not there now, as its state has them.
  std::vector<std::string> gone;
  // Between services, in total. Nothing is attributed of that time, and the counters lack its
  // energy where the device's own counter did not go on.
  Duration missing_time{};
};

// The wall clock at `t`, if it was not set since then, nor the machine suspended.
inline RealTime wall_time(const ClockPoint& now, HostTime t) { return now.real - (now.host - t); }

// A named interval of a machine whose energy was asked for.
struct MachineWindow {
  std::string name;
  HostTime begin{};
  std::optional<HostTime> end;  // absent: it is open
  RealTime begin_time{};        // by the wall clock of that moment
  RealTime end_time{};
  // Whether its energy is known: all sensors have reported the interval, or had some seconds to.
  // From then on it never changes.
  bool is_settled = false;
  std::vector<Result<model::Measurement>> energies;  // by domain, in the order of the machine's
};

}  // namespace jouleprof::analysis
