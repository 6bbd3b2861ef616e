// Energies and snapshots as the window protocol sends them.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json/json_fields.h"
#include "session/windows/window_protocol.h"

namespace jouleprof::session {

void put(nlohmann::json& object, const Error& error);
Error error_of(JsonFields& fields);

nlohmann::json to_json(const DomainEnergy& energy);
DomainEnergy domain_energy_of(JsonFields& fields);

// The keys time, begin, elapsed and domains.
void put(nlohmann::json& object, const model::Snapshot& snapshot);
model::Snapshot snapshot_of(JsonFields& fields);

}  // namespace jouleprof::session
