#include "recording/tables/schema.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace jouleprof::recording {
namespace {

// The table of a record whose columns are its fields, after the columns `first`.
template <class Record>
Table table_of(std::string_view name, std::string_view first = {}) {
  Table table{std::string(name), std::string(first)};
  const Record record;
  fields(record, ColumnList(table.columns));
  return table;
}

constexpr std::string_view kId = "id INTEGER PRIMARY KEY";
constexpr std::string_view kOne = "id INTEGER PRIMARY KEY CHECK (id = 1)";
constexpr std::string_view kOfImported =
    "imported_window INTEGER NOT NULL REFERENCES imported_window";
constexpr std::string_view kIdOfTrace = "id INTEGER PRIMARY KEY REFERENCES trace";
constexpr std::string_view kOfTrace = "trace INTEGER NOT NULL REFERENCES trace";
constexpr std::string_view kPart =
    "trace INTEGER NOT NULL REFERENCES trace, number INTEGER NOT NULL";

}  // namespace

std::string Table::create_statement() const {
  return fmt::format("CREATE TABLE {}({})", name, columns);
}

// In the reading tables rows lie in the order of their arrival (the hidden rowid): appending
// touches one page of each table however many sensors there are, and two equal stamps do not
// collide.
std::vector<Table> tables() {
  std::string identity = std::string(kOne) + ", boot_id TEXT, user TEXT, node_list TEXT";
  const model::Rank rank;
  fields(rank, ColumnList(identity));
  return {
      {"run", std::string(kOne) +
                  ", tool_version TEXT NOT NULL, host TEXT NOT NULL, source TEXT NOT NULL, "
                  "working_directory TEXT NOT NULL, pid INTEGER, exit_status INTEGER, "
                  "work_begin_nanoseconds INTEGER, work_end_nanoseconds INTEGER, "
                  "complete INTEGER NOT NULL CHECK (complete IN (0, 1)), trace_folder TEXT"},
      {"identity", identity},
      {"command_argument", "position INTEGER PRIMARY KEY, argument TEXT NOT NULL"},
      {"open_window",
       "name TEXT NOT NULL, begin_nanoseconds INTEGER NOT NULL, pid INTEGER NOT NULL"},
      {"clock_point",
       "host_nanoseconds INTEGER NOT NULL, real_nanoseconds INTEGER NOT NULL, "
       "suspended_nanoseconds INTEGER NOT NULL"},
      table_of<model::Domain>("domain"),
      table_of<model::KnownLevel>("board_level",
                                  "domain INTEGER NOT NULL REFERENCES domain, "
                                  "level TEXT NOT NULL CHECK (level IN ('rest', 'held'))"),
      table_of<model::Sensor>("sensor"),
      table_of<model::CounterReading>("counter_reading"),
      table_of<model::PowerReading>("power_reading"),
      table_of<model::GaugeReading>("gauge_reading"),
      table_of<model::ReadFailure>("read_failure"),
      table_of<model::IdleSpan>("idle_span"),
      table_of<model::Process>("process"),
      table_of<model::ProcessReading>("process_reading"),
      table_of<model::GpuProcessReading>("gpu_process_reading"),
      table_of<model::MachineReading>("machine_reading"),
      table_of<model::Warning>("warning"),
      {"window_series",
       "id INTEGER PRIMARY KEY, name TEXT NOT NULL, pid INTEGER NOT NULL, "
       "thread INTEGER NOT NULL, device_time INTEGER NOT NULL CHECK (device_time IN (0, 1))"},
      {"window",
       "window_series INTEGER NOT NULL REFERENCES window_series, "
       "begin_nanoseconds INTEGER NOT NULL, "
       "duration_nanoseconds INTEGER NOT NULL CHECK (duration_nanoseconds >= 0)"},
      {"window_series_device",
       "window_series INTEGER NOT NULL REFERENCES window_series, "
       "domain INTEGER NOT NULL REFERENCES domain"},
      table_of<model::ImportedWindow>("imported_window", kId),
      table_of<model::ImportedWindow::DomainEnergy>("imported_window_energy", kOfImported),
      table_of<model::ImportedWindow::Label>("imported_window_label", kOfImported),
      table_of<model::Overhead>("overhead", kOne),
      table_of<model::TracedProcess>("trace", kId),
      table_of<model::TraceStatus>("trace_status", kIdOfTrace),
      table_of<model::TracedDevice>("traced_device", kPart),
      table_of<model::KernelClass>("kernel_class", kPart),
      table_of<model::Layer>("layer", kPart),
      table_of<model::Range>("activity_range", kPart),
      table_of<model::Scope>("scope", kPart),
      table_of<model::ActivityChunk>("activity_chunk", kOfTrace),
      table_of<model::SpoolPosition>("trace_position", kIdOfTrace),
      {"remembered_kernel", remembered_columns()},
  };
}

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
