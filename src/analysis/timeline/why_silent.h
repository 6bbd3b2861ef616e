// Why a domain has no energy at all.
#pragma once

#include <string>

#include "model/recording.h"

namespace jouleprof::analysis {

// In words, for a domain of which no sensor spoke.
std::string why_silent(const model::Recording& recording, const model::Domain& domain);

}  // namespace jouleprof::analysis
