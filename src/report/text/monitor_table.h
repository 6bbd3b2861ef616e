// The monitor's own formats: a table for people, CSV and JSON lines for programs.
#pragma once

#include <string>

#include "report/snapshot.h"

namespace jouleprof::report {

// A table for people; `header` and rows have the same columns.
std::string monitor_table_header();
std::string monitor_table_rows(const Snapshot& snapshot);

// CSV: a header, then a row a device. What is absent is an empty field.
std::string monitor_csv_header();
std::string monitor_csv_rows(const Snapshot& snapshot);

// One JSON object on one line, schema jouleprof.snapshot/1 (docs/json.md).
std::string monitor_json_line(const Snapshot& snapshot);

}  // namespace jouleprof::report
