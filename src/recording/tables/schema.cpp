#include "recording/tables/schema.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "recording/tables/record_columns.h"

namespace jouleprof::recording {
namespace {

struct Fixed {
  std::string_view name;
  std::string_view columns;
};

// Rows of the reading tables lie in the order of their arrival (the hidden rowid): appending
// touches one page of each table however many sensors there are, and two equal stamps do not
// collide.
constexpr std::array<Fixed, 25> kTables{{
    {"run",
     "id INTEGER PRIMARY KEY CHECK (id = 1), "
     "tool_version TEXT NOT NULL, "
     "host TEXT NOT NULL, "
     "source TEXT NOT NULL, "
     "working_directory TEXT NOT NULL, "
     "pid INTEGER, "
     "exit_status INTEGER, "
     "work_begin_nanoseconds INTEGER, "
     "work_end_nanoseconds INTEGER, "
     "complete INTEGER NOT NULL CHECK (complete IN (0, 1)), "
     "trace_folder TEXT"},
    {"command_argument",
     "position INTEGER PRIMARY KEY, "
     "argument TEXT NOT NULL"},
    {"clock_point",
     "host_nanoseconds INTEGER NOT NULL, "
     "real_nanoseconds INTEGER NOT NULL, "
     "suspended_nanoseconds INTEGER NOT NULL"},
    {"domain",
     "id INTEGER PRIMARY KEY, "
     "kind TEXT NOT NULL, "
     "device TEXT NOT NULL, "
     "name TEXT NOT NULL, "
     "uuid TEXT, "
     "parent INTEGER REFERENCES domain DEFERRABLE INITIALLY DEFERRED, "
     "visible INTEGER NOT NULL CHECK (visible IN (0, 1)), "
     "unavailable_reason TEXT"},
    {"board_level",
     "domain INTEGER NOT NULL REFERENCES domain, "
     "level TEXT NOT NULL CHECK (level IN ('rest', 'held')), "
     "power_watts REAL NOT NULL CHECK (power_watts > 0), "
     "spread_watts REAL NOT NULL CHECK (spread_watts >= 0), "
     "temperature_celsius REAL, "
     "observed_real_nanoseconds INTEGER NOT NULL"},
    {"sensor",
     "id INTEGER PRIMARY KEY, "
     "domain INTEGER NOT NULL REFERENCES domain, "
     "kind TEXT NOT NULL, "
     "name TEXT NOT NULL, "
     "provenance TEXT NOT NULL, "
     "refresh_nanoseconds INTEGER, "
     "window_nanoseconds INTEGER, "
     "lag_nanoseconds INTEGER, "
     "rise_nanoseconds INTEGER, "
     "read_cost_nanoseconds INTEGER, "
     "wrap_microjoules INTEGER, "
     "quantum_microjoules INTEGER NOT NULL, "
     "gain_low_ratio REAL NOT NULL CHECK (gain_low_ratio BETWEEN -1000 AND 1000), "
     "gain_high_ratio REAL NOT NULL CHECK (gain_high_ratio BETWEEN gain_low_ratio AND 1000), "
     "offset_low_watts REAL NOT NULL, "
     "offset_high_watts REAL NOT NULL CHECK (offset_high_watts >= offset_low_watts), "
     "scale_source TEXT, "
     "correction_ratio REAL NOT NULL CHECK (correction_ratio BETWEEN 0.1 AND 10)"},
    {"counter_reading",
     "sensor INTEGER NOT NULL REFERENCES sensor, "
     "before_nanoseconds INTEGER NOT NULL, "
     "after_nanoseconds INTEGER NOT NULL CHECK (after_nanoseconds >= before_nanoseconds), "
     "total_microjoules INTEGER NOT NULL"},
    {"power_reading",
     "sensor INTEGER NOT NULL REFERENCES sensor, "
     "at_nanoseconds INTEGER NOT NULL, "
     "power_watts REAL NOT NULL"},
    {"gauge_reading",
     "sensor INTEGER NOT NULL REFERENCES sensor, "
     "at_nanoseconds INTEGER NOT NULL, "
     "value REAL NOT NULL"},
    {"read_failure",
     "sensor INTEGER NOT NULL REFERENCES sensor, "
     "at_nanoseconds INTEGER NOT NULL, "
     "code TEXT NOT NULL, "
     "message TEXT NOT NULL"},
    {"idle_span",
     "begin_nanoseconds INTEGER NOT NULL, "
     "end_nanoseconds INTEGER NOT NULL CHECK (end_nanoseconds >= begin_nanoseconds)"},
    {"process",
     "id INTEGER PRIMARY KEY, "
     "pid INTEGER NOT NULL, "
     "own_pid INTEGER, "
     "parent_pid INTEGER NOT NULL, "
     "name TEXT NOT NULL, "
     "command_line TEXT NOT NULL, "
     "start_nanoseconds INTEGER NOT NULL, "
     "end_nanoseconds INTEGER, "
     "in_tree INTEGER NOT NULL CHECK (in_tree IN (0, 1))"},
    {"process_reading",
     "process INTEGER NOT NULL REFERENCES process, "
     "at_nanoseconds INTEGER NOT NULL, "
     "cpu_time_nanoseconds INTEGER NOT NULL, "
     "unseen_children_cpu_time_nanoseconds INTEGER NOT NULL, "
     "pss_bytes INTEGER, "
     "uss_bytes INTEGER, "
     "rss_bytes INTEGER"},
    {"gpu_process_reading",
     "process INTEGER NOT NULL REFERENCES process, "
     "domain INTEGER NOT NULL REFERENCES domain, "
     "at_nanoseconds INTEGER NOT NULL, "
     "sm_utilisation_ratio REAL, "
     "memory_bytes INTEGER"},
    {"machine_reading",
     "at_nanoseconds INTEGER NOT NULL, "
     "busy_cpu_time_nanoseconds INTEGER NOT NULL, "
     "total_cpu_time_nanoseconds INTEGER NOT NULL, "
     "memory_used_bytes INTEGER NOT NULL"},
    {"warning",
     "at_nanoseconds INTEGER NOT NULL, "
     "text TEXT NOT NULL"},
    {"window_series",
     "id INTEGER PRIMARY KEY, "
     "name TEXT NOT NULL, "
     "pid INTEGER NOT NULL, "
     "thread INTEGER NOT NULL, "
     "device_time INTEGER NOT NULL CHECK (device_time IN (0, 1))"},
    {"window",
     "window_series INTEGER NOT NULL REFERENCES window_series, "
     "begin_nanoseconds INTEGER NOT NULL, "
     "duration_nanoseconds INTEGER NOT NULL CHECK (duration_nanoseconds >= 0)"},
    {"window_series_device",
     "window_series INTEGER NOT NULL REFERENCES window_series, "
     "domain INTEGER NOT NULL REFERENCES domain"},
    {"identity",
     "id INTEGER PRIMARY KEY CHECK (id = 1), "
     "boot_id TEXT, "
     "user TEXT, "
     "node_list TEXT"},
    {"open_window",
     "name TEXT NOT NULL, "
     "begin_nanoseconds INTEGER NOT NULL, "
     "pid INTEGER NOT NULL"},
    {"imported_window",
     "id INTEGER PRIMARY KEY, "
     "name TEXT NOT NULL, "
     "begin_nanoseconds INTEGER, "
     "duration_nanoseconds INTEGER NOT NULL"},
    {"imported_window_energy",
     "imported_window INTEGER NOT NULL REFERENCES imported_window, "
     "domain INTEGER NOT NULL REFERENCES domain, "
     "energy_microjoules INTEGER NOT NULL"},
    {"imported_window_label",
     "imported_window INTEGER NOT NULL REFERENCES imported_window, "
     "name TEXT NOT NULL, "
     "value TEXT NOT NULL"},
    {"overhead",
     "id INTEGER PRIMARY KEY CHECK (id = 1), "
     "cpu_time_nanoseconds INTEGER NOT NULL, "
     "wall_time_nanoseconds INTEGER NOT NULL, "
     "peak_memory_bytes INTEGER NOT NULL"},
}};

// The table of a record whose columns are its fields, after the columns `first`.
template <class Record>
Table table_of(std::string_view name, std::string_view first) {
  Table table{std::string(name), std::string(first)};
  const Record record;
  fields(record, ColumnList(table.columns));
  return table;
}

constexpr std::string_view kId = "id INTEGER PRIMARY KEY";
constexpr std::string_view kIdOfTrace = "id INTEGER PRIMARY KEY REFERENCES trace";
constexpr std::string_view kOfTrace = "trace INTEGER NOT NULL REFERENCES trace";
constexpr std::string_view kPart =
    "trace INTEGER NOT NULL REFERENCES trace, number INTEGER NOT NULL";

}  // namespace

std::string Table::create_statement() const {
  return fmt::format("CREATE TABLE {}({})", name, columns);
}

std::vector<Table> tables() {
  std::vector<Table> all;
  for (const auto& [name, columns] : kTables) {
    all.push_back({std::string(name), std::string(columns)});
    if (name == "identity" || name == "process") {
      const model::Rank rank;
      fields(rank, ColumnList(all.back().columns));
    }
  }
  all.push_back(table_of<model::TracedProcess>("trace", kId));
  all.push_back(table_of<model::TraceStatus>("trace_status", kIdOfTrace));
  all.push_back(table_of<model::TracedDevice>("traced_device", kPart));
  all.push_back(table_of<model::KernelClass>("kernel_class", kPart));
  all.push_back(table_of<model::Layer>("layer", kPart));
  all.push_back(table_of<model::Range>("activity_range", kPart));
  all.push_back(table_of<model::Scope>("scope", kPart));
  all.push_back(table_of<model::ActivityChunk>("activity_chunk", kOfTrace));
  all.push_back(table_of<model::SpoolPosition>("trace_position", kIdOfTrace));
  all.push_back({"remembered_kernel", remembered_columns()});
  return all;
}

}  // namespace jouleprof::recording
