// Text that Prometheus reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "report/openmetrics/metric.h"

namespace jouleprof::report {

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
