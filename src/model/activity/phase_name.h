// A phase in the one word that every output uses.
#pragma once

#include <string_view>

#include "model/activity/activity_fields.h"

namespace jouleprof::model {

// "forward", "backward", "optimizer"; empty for none of them.
inline std::string_view phase_name(Phase phase) {
  return words_of(phase)[static_cast<std::size_t>(phase)];
}

}  // namespace jouleprof::model
