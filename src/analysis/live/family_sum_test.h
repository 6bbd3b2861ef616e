// What conservation is tested by.
#pragma once

#include <cstddef>

#include "analysis/live/energy_accounts.h"

namespace jouleprof::analysis {

// All energy of one domain as a family has it: by entity, outside of all, of those that are not
// shown or have ended, unattributed, at rest. It equals the domain's energy, whatever the family.
inline Energy sum_of(const EnergyAccounts& accounts, Family family, std::size_t d) {
  const auto& a = *accounts.family(family);
  Energy sum = a.outside[d] + a.undivided[d] + a.other[d] + a.ended[d];
  for (const auto& [key, entity] : a.entities) {
    if (entity.energies[d]) sum += entity.energies[d]->energy;
  }
  const auto& domain = accounts.domains()[d];
  return sum + domain.unattributed + domain.rest.value_or(Energy{});
}

}  // namespace jouleprof::analysis
