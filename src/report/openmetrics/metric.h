// The metrics that the service exposes. docs/metrics.md lists them, as metrics_table() writes them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace jouleprof::report {

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

}  // namespace jouleprof::report
