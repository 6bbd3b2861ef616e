// The tables of traces, both ways. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <vector>

#include "model/activity/activity.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {

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

  // As Writer::append.
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

}  // namespace jouleprof::recording
