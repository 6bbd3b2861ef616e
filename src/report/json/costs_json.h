// Money and carbon as JSON.
#pragma once

#include "report/costs/costs.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

// The object `costs` of docs/json.md.
Json costs_json(const Costs& costs);

}  // namespace jouleprof::report
