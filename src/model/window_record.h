// A window as the thread that ended it passes it on.
#pragma once

#include <cstdint>

namespace jouleprof::model {

struct WindowRecord {
  std::int64_t begin = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::int64_t end = 0;
  std::uint32_t name = 0;
  std::uint32_t flags = 0;
};

}  // namespace jouleprof::model
