// The state of a machine whose service has run for ten seconds, for tests.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "analysis/live/machine_state.h"

namespace jouleprof::session {

inline constexpr HostTime kServiceStart{std::chrono::hours{1}};
inline constexpr RealTime kServiceStartReal{Duration{1'700'000'000'000'000'000}};

// With a GPU for each UUID.
inline analysis::MachineState machine_state(const std::vector<std::string>& uuids) {
  analysis::MachineState state;
  state.started = {kServiceStart, kServiceStartReal, {}};
  state.snapshot.time = kServiceStartReal + std::chrono::seconds{10};
  for (const auto& uuid : uuids) {
    model::DomainSnapshot domain;
    domain.domain.kind = model::DomainKind::kGpu;
    domain.domain.uuid = uuid;
    state.snapshot.domains.push_back(domain);
    state.domains.push_back({model::Provenance::kMeasured, true, true, true, 0});
  }
  return state;
}

}  // namespace jouleprof::session
