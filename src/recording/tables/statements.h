// What a Writer has prepared. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include "recording/tables/insert.h"
#include "recording/tables/level_rows.h"
#include "recording/tables/trace_rows.h"
#include "recording/tables/window_rows.h"

namespace jouleprof::recording {

// Everything that is prepared on an open file.
struct Statements {
  explicit Statements(SQLite::Database& database) : db(database) {}

  SQLite::Database& db;
  SQLite::Statement begin{db, "BEGIN IMMEDIATE"};
  SQLite::Statement commit{db, "COMMIT"};
  SQLite::Statement complete{db, "UPDATE run SET complete = 1"};
  SQLite::Statement forget_command{db, "DELETE FROM command_argument"};
  SQLite::Statement forget_open_windows{db, "DELETE FROM open_window"};
  Insert run{db, "run"};
  Insert identity{db, "identity"};
  Insert account{db, "account"};
  Insert open_window{db, "open_window"};
  Insert command_argument{db, "command_argument"};
  Insert clock_point{db, "clock_point"};
  Insert domain{db, "domain"};
  LevelRows levels{db};
  Insert sensor{db, "sensor"};
  Insert sensor_rise{db, "sensor_rise"};
  Insert counter_reading{db, "counter_reading"};
  Insert power_reading{db, "power_reading"};
  Insert gauge_reading{db, "gauge_reading"};
  Insert read_failure{db, "read_failure"};
  Insert idle_span{db, "idle_span"};
  Insert process{db, "process"};
  Insert process_rank{db, "process_rank"};
  Insert process_reading{db, "process_reading"};
  Insert gpu_process_reading{db, "gpu_process_reading"};
  Insert machine_reading{db, "machine_reading"};
  Insert warning{db, "warning"};
  Insert overhead{db, "overhead"};
  Insert trace_folder{db, "trace_folder"};
  WindowRows windows{db};
  TraceRows traces{db};
  Insert remembered_kernel{db, "remembered_kernel"};
  Insert imported_window{db, "imported_window"};
  Insert imported_window_energy{db, "imported_window_energy"};
  Insert imported_window_label{db, "imported_window_label"};
};

}  // namespace jouleprof::recording
