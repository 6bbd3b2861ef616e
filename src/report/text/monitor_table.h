// The monitor's table for people.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace jouleprof::report {

// `header` and rows have the same columns; a row a device.
std::string monitor_table_header();
std::string monitor_table_rows(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
