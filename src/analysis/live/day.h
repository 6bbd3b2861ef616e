// The energy of today, by the local date of the machine.
#pragma once

#include <optional>
#include <vector>

#include "analysis/live/energy_accounts.h"

namespace jouleprof::analysis {

struct Day {
  std::optional<RealTime> begin;  // the day's first tick, or the start of a service on that day
  std::vector<Energy> before;     // the accounts' totals then, in their order

  // Since `begin`.
  Energy energy(std::size_t domain, const DomainAccount& account) const {
    return domain < before.size() ? account.total - before[domain] : account.total;
  }
};

// Begins another day where `now` has another date than the day's begin.
void follow_day(Day& day, RealTime now, const std::vector<DomainAccount>& accounts);

}  // namespace jouleprof::analysis
