// The object `wall` (docs/json.md).
#pragma once

#include "report/costs/wall.h"
#include "report/json/json_text.h"

namespace jouleprof::report {

Json wall_json(const WallComparison& wall);

}  // namespace jouleprof::report
