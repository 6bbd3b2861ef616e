#include "report/csv/snapshot_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

std::string row(const model::Snapshot& snapshot, const model::DomainSnapshot& d) {
  std::string line =
      fmt::format("{},{},{},{},{},{},{},{}", utc_text(snapshot.time),
                  seconds_decimal(snapshot.time.time_since_epoch()),
                  seconds_decimal(snapshot.elapsed), to_string(d.domain.kind),
                  csv_field(printable(d.domain.device)), csv_field(printable(d.domain.name)),
                  to_string(d.provenance), d.energy ? joules_decimal(d.energy->energy) : "");
  for (const auto name : snapshot_figures()) {
    const auto value = figure_of(d, name);
    line += ',' + (value ? shortest(*value) : "");
  }
  const auto limits = clock_limits_of(d);
  line += ',' + (limits ? fmt::format("{}", fmt::join(*limits, " ")) : "");
  line += ',' + (d.age ? seconds_decimal(*d.age) : "");
  return line + '\n';
}

}  // namespace

std::string snapshot_csv_header() {
  return fmt::format(
      "time,time_unix_seconds,elapsed_seconds,domain,device,name,provenance,energy_joules,{},"
      "clock_limits,age_seconds\n",
      fmt::join(snapshot_figures(), ","));
}

std::string snapshot_csv_rows(const model::Snapshot& snapshot) {
  std::string text;
  for (const auto* domain : rows_of(snapshot)) text += row(snapshot, *domain);
  return text;
}

}  // namespace jouleprof::report
