// Why a domain has no energy.
#pragma once

#include <string>

#include "model/recording.h"

namespace jouleprof::analysis {

// A sentence, for a domain without readings.
std::string unavailable_reason(const model::Recording& recording, const model::Domain& domain);

}  // namespace jouleprof::analysis
