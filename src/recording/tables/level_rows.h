// The known power levels of boards, both ways. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <optional>
#include <vector>

#include "model/domain.h"
#include "recording/tables/insert.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {

// Throws SQLite::Exception.
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

}  // namespace jouleprof::recording
