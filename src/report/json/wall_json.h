// The object `wall` (docs/json.md).
#pragma once

#include "report/json/json_text.h"
#include "report/wall.h"

namespace jouleprof::report {

Json wall_json(const WallComparison& wall);

}  // namespace jouleprof::report
