// A sink that collects the records in a trace.
#pragma once

#include "model/activity/activity_sink.h"

namespace jouleprof::spool {

class TraceSink final : public model::ActivitySink {
 public:
  model::Trace trace;

  void define(std::uint32_t, const model::TracedDevice& d) override { trace.devices.push_back(d); }
  void define(std::uint32_t, const model::KernelClass& c) override { trace.classes.push_back(c); }
  void define(std::uint32_t, const model::Layer& l) override { trace.layers.push_back(l); }
  void define(std::uint32_t, const model::Range& r) override { trace.ranges.push_back(r); }
  void define(std::uint32_t, const model::Scope& s) override { trace.scopes.push_back(s); }
  void add(const model::ActivityChunk& c) override { trace.chunks.push_back(c); }
  void status(const model::TraceStatus& s) override { trace.status = s; }
};

}  // namespace jouleprof::spool
