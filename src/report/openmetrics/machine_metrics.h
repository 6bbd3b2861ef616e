// What a service knows of its machine, for Prometheus.
#pragma once

#include <array>
#include <optional>
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
  bool created = false;        // a start timestamp of each counter, in OpenMetrics
  // By family, whether its series are among ours. Those of other exporters' names always are.
  std::array<bool, analysis::kFamilies> families = {true, true, true, true, true, true};
  // Series that began later are shown as zero, and what they have so far is in a gauge of its own:
  // a scraper that has not seen a series at zero does not count what it begins with. Absent: all
  // have their values.
  std::optional<HostTime> shown_until = {};
  unsigned cpus = 0;  // logical ones, where those names have them

  bool shows(const analysis::SeriesEnergy& series) const {
    return !shown_until || series.since <= *shown_until;
  }
};

// The same state gives the same text.
std::string machine_metrics(const analysis::MachineState& state,
                            const analysis::EnergyAccounts& accounts, const MetricsOptions& options,
                            Dialect dialect);

}  // namespace jouleprof::report
