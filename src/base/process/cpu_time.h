// CPU time, for the cost of single calls.
#pragma once

#include "jouleprof/units.h"

namespace jouleprof {

// Of the calling thread, since it began.
Duration thread_cpu_time() noexcept;

}  // namespace jouleprof
