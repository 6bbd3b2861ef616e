// A snapshot as JSON, schema jouleprof.snapshot/2 (docs/json.md).
#pragma once

#include <string>

#include "model/snapshot.h"

namespace jouleprof::report {

// One object on one line, with the rows of the monitor.
std::string snapshot_json_line(const model::Snapshot& snapshot);

// The same object without a line end, with every domain, also those without an energy.
std::string snapshot_json(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
