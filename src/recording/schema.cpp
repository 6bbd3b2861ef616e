#include "recording/schema.h"

#include <fmt/format.h>

#include <array>

namespace jouleprof::recording {
namespace {

// Rows of the reading tables lie in the order of their arrival (the hidden rowid): appending
// touches one page of each table however many sensors there are, and two equal stamps do not
// collide.
constexpr std::array<Table, 32> kTables{{
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
     "complete INTEGER NOT NULL CHECK (complete IN (0, 1))"},
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
    {"sensor",
     "id INTEGER PRIMARY KEY, "
     "domain INTEGER NOT NULL REFERENCES domain, "
     "kind TEXT NOT NULL, "
     "name TEXT NOT NULL, "
     "provenance TEXT NOT NULL, "
     "refresh_nanoseconds INTEGER, "
     "window_nanoseconds INTEGER, "
     "lag_nanoseconds INTEGER, "
     "read_cost_nanoseconds INTEGER, "
     "wrap_microjoules INTEGER, "
     "quantum_microjoules INTEGER NOT NULL, "
     "gain_error_ratio REAL NOT NULL CHECK (gain_error_ratio BETWEEN 0 AND 1000)"},
    {"sensor_rise",
     "id INTEGER PRIMARY KEY REFERENCES sensor, "
     "rise_nanoseconds INTEGER NOT NULL",
     2},
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
     "device_time INTEGER NOT NULL CHECK (device_time IN (0, 1))",
     2},
    {"window",
     "window_series INTEGER NOT NULL REFERENCES window_series, "
     "begin_nanoseconds INTEGER NOT NULL, "
     "duration_nanoseconds INTEGER NOT NULL CHECK (duration_nanoseconds >= 0)",
     2},
    {"trace",
     "id INTEGER PRIMARY KEY, "
     "pid INTEGER NOT NULL, "
     "program TEXT NOT NULL, "
     "bin_nanoseconds INTEGER NOT NULL",
     3},
    {"trace_status",
     "id INTEGER PRIMARY KEY REFERENCES trace, "
     "activities INTEGER NOT NULL, "
     "dropped INTEGER NOT NULL, "
     "late INTEGER NOT NULL, "
     "graph_launches INTEGER NOT NULL, "
     "graph_expanded INTEGER NOT NULL, "
     "problem TEXT, "
     "ended INTEGER NOT NULL CHECK (ended IN (0, 1))",
     3},
    {"trace_folder",
     "id INTEGER PRIMARY KEY CHECK (id = 1), "
     "path TEXT NOT NULL",
     4},
    {"trace_position",
     "id INTEGER PRIMARY KEY REFERENCES trace, "
     "start_nanoseconds INTEGER NOT NULL, "
     "file INTEGER NOT NULL, "
     "bytes INTEGER NOT NULL",
     4},
    {"traced_device",
     "trace INTEGER NOT NULL REFERENCES trace, "
     "number INTEGER NOT NULL, "
     "ordinal INTEGER NOT NULL, "
     "uuid TEXT, "
     "name TEXT NOT NULL",
     3},
    {"kernel_class",
     "trace INTEGER NOT NULL REFERENCES trace, "
     "number INTEGER NOT NULL, "
     "kind TEXT NOT NULL, "
     "name TEXT NOT NULL, "
     "grid_x INTEGER, "
     "grid_y INTEGER, "
     "grid_z INTEGER, "
     "block_x INTEGER, "
     "block_y INTEGER, "
     "block_z INTEGER, "
     "size_bytes INTEGER",
     3},
    {"layer",
     "trace INTEGER NOT NULL REFERENCES trace, "
     "number INTEGER NOT NULL, "
     "name TEXT NOT NULL, "
     "type TEXT NOT NULL, "
     "parent INTEGER, "
     "shapes TEXT NOT NULL, "
     "parameters INTEGER NOT NULL, "
     "macs REAL, "
     "compiled INTEGER NOT NULL CHECK (compiled IN (0, 1))",
     3},
    {"activity_range",
     "trace INTEGER NOT NULL REFERENCES trace, "
     "number INTEGER NOT NULL, "
     "name TEXT NOT NULL, "
     "parent INTEGER",
     3},
    {"scope",
     "trace INTEGER NOT NULL REFERENCES trace, "
     "number INTEGER NOT NULL, "
     "layer INTEGER, "
     "activity_range INTEGER, "
     "phase TEXT",
     3},
    {"activity_chunk",
     "trace INTEGER NOT NULL REFERENCES trace, "
     "kind TEXT NOT NULL, "
     "traced_device INTEGER, "
     "begin_nanoseconds INTEGER NOT NULL, "
     "end_nanoseconds INTEGER NOT NULL CHECK (end_nanoseconds >= begin_nanoseconds), "
     "entries BLOB NOT NULL",
     3},
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

}  // namespace

std::string Table::create_statement() const {
  return fmt::format("CREATE TABLE {}({})", name, columns);
}

std::span<const Table> tables() { return kTables; }

}  // namespace jouleprof::recording
