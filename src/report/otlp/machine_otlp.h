// What a service knows of its machine, for OpenTelemetry.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"

namespace jouleprof::report {

struct OtlpOptions {
  std::string_view version;
  std::string_view host;  // the machine's name
  bool estimates = true;  // false: figures that are computed by a model are left out
  // By family, whether its sums are among the metrics.
  std::array<bool, analysis::kFamilies> families = {true, true, true, true, true, true};
};

// An ExportMetricsServiceRequest (opentelemetry-proto 1), by the semantic conventions for hardware
// where they have a name. docs/metrics.md lists the metrics. The same state gives the same bytes.
std::string machine_otlp(const analysis::MachineState& state,
                         const analysis::EnergyAccounts& accounts, const OtlpOptions& options);

}  // namespace jouleprof::report
