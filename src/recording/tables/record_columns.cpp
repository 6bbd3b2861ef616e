#include "recording/tables/record_columns.h"

#include <cmath>

#include "recording/tables/schema.h"

namespace jouleprof::recording {

std::optional<Errc> parse_errc(std::string_view text) {
  for (int code = 0; code <= static_cast<int>(Errc::kInternal); ++code) {
    if (to_string(Errc{code}) == text) return Errc{code};
  }
  return std::nullopt;
}

std::string remembered_columns() {
  std::string columns = "board TEXT NOT NULL";
  const model::KernelClass kernel;
  fields(kernel, ColumnList(columns));
  columns +=
      ", launch_nanoseconds INTEGER NOT NULL CHECK (launch_nanoseconds > 0), "
      "power_watts REAL NOT NULL CHECK (power_watts > 0), "
      "error_watts REAL NOT NULL CHECK (error_watts >= 0), "
      "sm_clock_hertz REAL, "
      "observed_real_nanoseconds INTEGER NOT NULL";
  return columns;
}

bool is_storable(const model::RememberedKernel& kernel) {
  const auto possible = [](Power p) {
    return std::isfinite(p.watts()) && storable_power(p.watts());
  };
  return kernel.launch > Duration{} && kernel.launch.count() <= kLargestInteger &&
         kernel.power > Power{} && possible(kernel.power) && kernel.error >= Power{} &&
         possible(kernel.error) &&
         std::abs(kernel.observed.time_since_epoch().count()) <= kLargestInteger;
}

void add_columns(Insert& insert, const model::RememberedKernel& kernel) {
  insert.add(kernel.board);
  fields(kernel.kernel, RowWriter(insert));
  insert.add(kernel.launch);
  insert.add(kernel.power);
  insert.add(kernel.error);
  insert.add(kernel.sm_clock_hertz);
  insert.add(kernel.observed);
}

model::RememberedKernel take_columns(Rows& row) {
  model::RememberedKernel kernel;
  kernel.board = row.text();
  fields(kernel.kernel, RowReader(row));
  kernel.launch = row.duration();
  if (kernel.launch <= Duration{}) row.complain("is not above 0");
  kernel.power = row.power();
  if (kernel.power <= Power{}) row.complain("is not above 0");
  kernel.error = row.power();
  if (kernel.error < Power{}) row.complain("is negative");
  kernel.sm_clock_hertz = row.maybe(&Rows::number);
  kernel.observed = row.real_time();
  return kernel;
}

std::vector<model::RememberedKernel> read_remembered(SQLite::Database& db, Inspection& inspection) {
  std::vector<model::RememberedKernel> out;
  for (Rows row(db, inspection, "remembered_kernel"); row.next();) {
    auto kernel = take_columns(row);
    if (inspection.good()) out.push_back(std::move(kernel));
  }
  return out;
}

}  // namespace jouleprof::recording
