#include "recording/tables/insert.h"

#include <fmt/format.h>

namespace jouleprof::recording {

std::string Insert::sql(SQLite::Database& db, const std::string& table) {
  std::string places;
  std::string updates;
  bool has_id = false;
  SQLite::Statement columns(db, fmt::format("PRAGMA table_info({})", table));
  while (columns.executeStep()) {
    const std::string name = columns.getColumn(1).getString();
    places += places.empty() ? "?" : ", ?";
    if (name == "id") {
      has_id = true;
    } else {
      updates += fmt::format("{}{} = excluded.{}", updates.empty() ? "" : ", ", name, name);
    }
  }
  // Not INSERT OR REPLACE: its deletion would search every reading for references to the row.
  return fmt::format("INSERT INTO {} VALUES ({}){}", table, places,
                     has_id ? " ON CONFLICT (id) DO UPDATE SET " + updates : "");
}

}  // namespace jouleprof::recording
