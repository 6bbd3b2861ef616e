// What a service knows of its machine, for Prometheus.
#pragma once

#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "report/openmetrics/exposition.h"

namespace jouleprof::report {

struct MetricsOptions {
  std::string_view version;
  bool estimates = true;  // false: figures that are computed by a model are left out
};

// The same state gives the same text.
std::string machine_metrics(const analysis::MachineState& state,
                            const analysis::EnergyAccounts& accounts, const MetricsOptions& options,
                            Dialect dialect);

}  // namespace jouleprof::report
