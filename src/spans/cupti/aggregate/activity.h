// One kernel, copy, memory set or graph launch on a device.
#pragma once

#include <cstdint>

#include "model/activity/activity.h"

namespace jouleprof::cupti {

struct Activity {
  std::int64_t start = 0;  // HostTime, nanoseconds
  std::int64_t end = 0;
  std::uint32_t device = 0;  // CUDA's ordinal; model::kNone: not known
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = model::kNone;
  std::uint32_t stream = 0;
  std::uint32_t graph = 0;        // the executable graph that it belongs to; 0: none
  std::uint32_t correlation = 0;  // of the launch
  bool collective = false;        // and its times are its own
  bool whole_graph = false;       // a launch of a graph, received as one record

  bool is_node() const { return graph != 0 && !whole_graph; }
};

// A launch of a graph without any record.
struct UnrecordedLaunch {
  std::int64_t begin = 0;  // of the call, HostTime, nanoseconds
  std::uint32_t scope = model::kNone;
  std::uint32_t graph = 0;
  std::uint32_t correlation = 0;
};

}  // namespace jouleprof::cupti
