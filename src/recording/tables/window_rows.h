// The windows' two tables, both ways. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/recording.h"
#include "recording/tables/insert.h"
#include "recording/tables/rows.h"

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

// In the order of their begins. Invalid if there is a problem afterwards. `version`: of the schema.
std::vector<model::Window> read_windows(SQLite::Database& db, Inspection& inspection,
                                        const Ids& domains, std::int32_t version);

}  // namespace jouleprof::recording
