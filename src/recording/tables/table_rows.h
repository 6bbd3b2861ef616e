// The tables of windows, readings, power levels and traces, both ways, and what a writer has
// prepared. Private to src/recording.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/activity/activity.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/process/process.h"
#include "model/recording.h"
#include "recording/tables/rows.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {

// Bytes of a window's name in a file. A longer one is cut there, at a character's beginning: every
// window that is read has a copy of its name, so that a small file must not hold large names.
inline constexpr std::size_t kLongestWindowName = 256;

// Throws SQLite::Exception.
class WindowRows {
 public:
  explicit WindowRows(SQLite::Database& db)
      : window_(db, "window"), series_(db, "window_series"), device_(db, "window_series_device") {}

  // Windows that end before they begin, or lie beyond what a file may hold, are left out.
  void append(const std::vector<model::Window>& windows);

 private:
  // Name, pid, thread, device time, devices.
  using Series = std::tuple<std::string, pid_t, pid_t, bool, std::vector<model::DomainId>>;

  std::int64_t series_of(const model::Window& window);

  Insert window_;
  Insert series_;
  Insert device_;
  std::map<Series, std::int64_t> known_;
  std::int64_t next_ = 0;
};

// In the order of their begins. Invalid if there is a problem afterwards.
std::vector<model::Window> read_windows(SQLite::Database& db, Inspection& inspection,
                                        const Ids& domains);

// Both in the order of time. Invalid if there is a problem afterwards.
model::Readings read_readings(SQLite::Database& db, Inspection& inspection, KnownIds& known);
model::ProcessReadings read_process_readings(SQLite::Database& db, Inspection& inspection,
                                             KnownIds& known);

// The known power levels of boards. Throws SQLite::Exception.
class LevelRows {
 public:
  explicit LevelRows(SQLite::Database& db)
      : insert_(db, "board_level"), forget_(db, "DELETE FROM board_level WHERE domain = ?") {}

  // In place of those that the domain has. Levels that a file may not hold are left out.
  void replace(const model::Domain& domain);

 private:
  void add(model::DomainId domain, const char* name, const std::optional<model::KnownLevel>& level);

  Insert insert_;
  SQLite::Statement forget_;
};

// Gives the levels to their domains. `known`: their ids.
void read_levels(SQLite::Database& db, Inspection& inspection, const Ids& known,
                 std::vector<model::Domain>& domains);

// Throws SQLite::Exception.
class TraceRows {
 public:
  explicit TraceRows(SQLite::Database& db)
      : trace_(db, "trace"),
        status_(db, "trace_status"),
        position_(db, "trace_position"),
        device_(db, "traced_device"),
        class_(db, "kernel_class"),
        layer_(db, "layer"),
        range_(db, "activity_range"),
        scope_(db, "scope"),
        chunk_(db, "activity_chunk") {}

  // Contract: that of Writer::append.
  void append(std::uint32_t trace, const model::Trace& more);

 private:
  struct Counts {
    std::uint32_t devices = 0;
    std::uint32_t classes = 0;
    std::uint32_t layers = 0;
    std::uint32_t ranges = 0;
    std::uint32_t scopes = 0;
  };

  Insert trace_;
  Insert status_;
  Insert position_;
  Insert device_;
  Insert class_;
  Insert layer_;
  Insert range_;
  Insert scope_;
  Insert chunk_;
  std::vector<Counts> counts_;  // of the parts that each trace has
};

// In the order of their ids. Invalid if there is a problem afterwards.
std::vector<model::Trace> read_traces(SQLite::Database& db, Inspection& inspection);

// Everything that a Writer has prepared on an open file.
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
  Insert open_window{db, "open_window"};
  Insert command_argument{db, "command_argument"};
  Insert clock_point{db, "clock_point"};
  Insert domain{db, "domain"};
  LevelRows levels{db};
  Insert sensor{db, "sensor"};
  Insert counter_reading{db, "counter_reading"};
  Insert power_reading{db, "power_reading"};
  Insert gauge_reading{db, "gauge_reading"};
  Insert read_failure{db, "read_failure"};
  Insert idle_span{db, "idle_span"};
  Insert process{db, "process"};
  Insert process_reading{db, "process_reading"};
  Insert gpu_process_reading{db, "gpu_process_reading"};
  Insert machine_reading{db, "machine_reading"};
  Insert warning{db, "warning"};
  Insert overhead{db, "overhead"};
  WindowRows windows{db};
  TraceRows traces{db};
  Insert remembered_kernel{db, "remembered_kernel"};
  Insert imported_window{db, "imported_window"};
  Insert imported_window_energy{db, "imported_window_energy"};
  Insert imported_window_label{db, "imported_window_label"};
};

}  // namespace jouleprof::recording
