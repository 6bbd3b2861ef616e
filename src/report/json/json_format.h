// The summary as a JSON object (docs/json.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/live/machine_state.h"
#include "model/activity/activity_profile.h"
#include "model/activity/serving.h"
#include "model/profile.h"
#include "model/snapshot.h"
#include "report/activity/activity.h"
#include "report/costs/costs.h"
#include "report/costs/wall.h"
#include "report/json/values.h"
#include "report/total.h"

namespace jouleprof::report {

// `costs`, `per`: may be null.
Json profile_document(const model::Profile& profile, const Costs* costs = nullptr,
                      const PerUnit* per = nullptr);

// Requests of inference servers (docs/serving.md).
Json serving_document(const model::ServingProfile& profile, bool being_written);

// The command's part of a domain or of a total; null where it is absent.
Json command_json(const std::optional<model::CommandEnergy>& command);

// How the energy of a domain was determined, and its parts.
Json balance_json(const model::Profile& profile, const model::DomainProfile& domain);

// Money and carbon as JSON.

// The object `costs` of docs/json.md.
Json costs_json(const Costs& costs);

// The object `wall` (docs/json.md).

Json wall_json(const WallComparison& wall);

// A table of attributed energy as a JSON object (docs/json.md).

Json activity_document(const std::vector<model::ActivityProfile>& profiles,
                       const ActivityOptions& options);

struct MachineJsonOptions {
  std::string_view version;
  std::string_view host;
  bool estimates = true;  // false: figures that are computed by a model are left out
  std::size_t most = 50;  // entities of each family: those with the highest energy
};

std::string machine_json(const analysis::MachineState& state,
                         const analysis::EnergyAccounts& accounts,
                         const MachineJsonOptions& options);

// A window of `jouleprof serve` as one JSON object: `jouleprof.window/1` (docs/json.md).

// `state` has the domains and clocks of the machine. Without `estimates` figures that are computed
// by a model are left out.
std::string machine_window_json(const analysis::MachineWindow& window,
                                const analysis::MachineState& state, bool estimates);

// A snapshot as JSON, schema jouleprof.snapshot/2 (docs/json.md).

// One object on one line, with the rows of the monitor.
std::string snapshot_json_line(const model::Snapshot& snapshot);

// An object as above without a line end, with every domain, also those without an energy.
std::string snapshot_json(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
