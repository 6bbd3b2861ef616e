// The same figures under other exporters' names and labels, so that existing dashboards work.
#pragma once

#include "analysis/live/machine_state.h"
#include "report/openmetrics/exposition.h"
#include "report/openmetrics/machine_metrics.h"

namespace jouleprof::report {

// NVIDIA's dcgm-exporter: whole GPUs. Its counter of energy is in millijoules, and counts from when
// the service began to; `pci_bus_id` is left out. `hpc_job` is given where one job has the GPU: a
// board's figures are never repeated for each.
void add_dcgm_names(const analysis::MachineState& state, const analysis::EnergyAccounts& accounts,
                    const MetricsOptions& options, Exposition& out);

// Kepler 0.11: nodes, processes, containers and pods, by zone. Names that only the kubelet knows,
// programs' paths and virtual machines are left out.
void add_kepler_names(const analysis::MachineState& state, const analysis::EnergyAccounts& accounts,
                      const MetricsOptions& options, Exposition& out);

// AIPowerMeter's five gauges of a whole machine, which have no labels: sums over its devices. A sum
// that lacks a device is left out.
void add_aipowermeter_names(const analysis::MachineState& state, const MetricsOptions& options,
                            Exposition& out);

}  // namespace jouleprof::report
