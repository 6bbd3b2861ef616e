// The metrics that the service exposes. docs/metrics.md lists them, as metrics_table() writes them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "jouleprof/units.h"

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

// Text that Prometheus reads.

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

}  // namespace jouleprof::report
