// What a service knows of its machine, for Prometheus.
#pragma once

#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "report/openmetrics/exposition.h"

namespace jouleprof::report {

// Other exporters' names for the same figures, in addition to ours (foreign_names.cpp).
struct ForeignNames {
  bool dcgm = false;    // NVIDIA's dcgm-exporter
  bool kepler = false;  // Kepler 0.11
  bool aipowermeter = false;
};

struct MetricsOptions {
  std::string_view version;
  bool estimates = true;  // false: figures that are computed by a model are left out
  ForeignNames names = {};
  std::string_view host = {};  // the machine's name, where those names have it
};

// The same state gives the same text.
std::string machine_metrics(const analysis::MachineState& state,
                            const analysis::EnergyAccounts& accounts, const MetricsOptions& options,
                            Dialect dialect);

}  // namespace jouleprof::report
