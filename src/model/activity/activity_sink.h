// Receives the records of a traced process.
#pragma once

#include "model/activity/activity.h"

namespace jouleprof::model {

// A record is defined before the first chunk that names its identifier; identifiers count up from
// zero. Calls come from one thread at a time.
class ActivitySink {
 public:
  virtual ~ActivitySink() = default;
  virtual void define(std::uint32_t id, const TracedDevice& device) = 0;
  virtual void define(std::uint32_t id, const KernelClass& kernel_class) = 0;
  virtual void define(std::uint32_t id, const Layer& layer) = 0;
  virtual void define(std::uint32_t id, const Range& range) = 0;
  virtual void define(std::uint32_t id, const Scope& scope) = 0;
  virtual void add(const ActivityChunk& chunk) = 0;
  virtual void status(const TraceStatus& status) = 0;  // replaces the status before
};

}  // namespace jouleprof::model
