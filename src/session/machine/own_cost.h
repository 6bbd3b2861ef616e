// What this process has used so far.
#pragma once

#include <cstdint>

#include "jouleprof/units.h"

namespace jouleprof::session {

Duration own_cpu_time();
std::uint64_t own_resident_bytes();  // 0: unknown

}  // namespace jouleprof::session
