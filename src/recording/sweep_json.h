// Plans and runs of a sweep as JSON. Private to this folder.
#pragma once

#include <string>

#include "base/result.h"
#include "model/sweep.h"

namespace jouleprof::recording {

std::string plan_to_json(const model::SweepPlan& plan);
std::string run_to_json(const model::SweepRun& run);
// `file`: for messages. Errors: corrupt.
Result<model::SweepPlan> plan_from_json(const std::string& text, const std::string& file);
Result<model::SweepRun> run_from_json(const std::string& text, const std::string& file);

}  // namespace jouleprof::recording
