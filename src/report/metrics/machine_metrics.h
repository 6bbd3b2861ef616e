// What a service knows of its machine, as metrics for Prometheus and OpenTelemetry.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::report {

// --- The metrics that the service exposes: docs/metrics.md, which metrics_table() writes ---

enum class MetricType { kCounter, kGauge, kInfo };

struct Metric {
  std::string_view name;  // as it is exposed: counters end in _total, information in _info
  MetricType type{};
  std::string_view unit;  // empty: none
  std::string_view help;
  std::string_view labels;  // for the documentation
};

// In the order of the output.
std::span<const Metric> all_metrics();

// The metric of this name. It must exist.
const Metric& metric(std::string_view name);

// A Markdown table of all metrics.
std::string metrics_table();

// --- Text that Prometheus reads ---

enum class Dialect {
  kOpenMetrics,  // 1.0.0: application/openmetrics-text
  kText,         // 0.0.4: text/plain
};

// The labels of a sample. A label without a value is left out, because that is the same to readers.
class Labels {
 public:
  Labels& add(std::string_view name, std::string_view value);
  Labels& append(const Labels& more);
  const std::string& text() const { return text_; }  // name="value",...

 private:
  std::string text_;
};

class Exposition {
 public:
  // `created`: whether OpenMetrics has the start timestamps of counters, a sample each.
  explicit Exposition(Dialect dialect, bool created = true)
      : dialect_(dialect), created_(created && dialect == Dialect::kOpenMetrics) {}

  // The samples that follow are of this metric. A metric without samples is not shown.
  void begin(const Metric& metric) { metric_ = &metric, announced_ = false; }
  void sample(const Labels& labels, double value, std::optional<RealTime> since = {});
  // Exact to the microjoule.
  void sample(const Labels& labels, Energy energy, std::optional<RealTime> since = {});

  std::string finish() &&;

 private:
  void add(const Labels& labels, std::string_view value, std::optional<RealTime> since);
  void announce();

  Dialect dialect_;
  bool created_ = false;
  const Metric* metric_ = nullptr;
  bool announced_ = false;
  std::string out_;
};

// What a value may be in quotes: escaped, and valid UTF-8.
std::string escaped_label(std::string_view value);

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

// Writes the metrics of a state; one state always gives one text.
std::string machine_metrics(const analysis::MachineState& state,
                            const analysis::EnergyAccounts& accounts, const MetricsOptions& options,
                            Dialect dialect);

// --- The same figures under other exporters' names and labels, for existing dashboards ---

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

// --- For OpenTelemetry ---

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
