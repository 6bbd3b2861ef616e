// The monitor's CSV.
#pragma once

#include <string>

#include "model/snapshot.h"

namespace jouleprof::report {

// A header, then a row a device. What is absent is an empty field.
std::string snapshot_csv_header();
std::string snapshot_csv_rows(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
