// The trace of this process: one at a time, made when it is first wanted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "abi/rocprofiler_abi.h"
#include "apps/inject/replay.h"
#include "recording/spool/spool_writer.h"
#include "spans/cupti/tracer.h"
#include "spans/layers/layers.h"

namespace jouleprof::inject {

// Thread safety: all functions from any thread. None throws or fails the program. A forked child
// has no trace until it begins its own.

// Begins to write a spool into `folder`; `what` is a comma list of kernels, layers, events and
// replay (re-runs on request).
// False when the folder cannot be written. Does nothing while there is a trace already. Kernels are
// traced from now on where CUDA runs already, else from start_kernels() on.
bool begin(const char* folder, const char* what) noexcept;

// CUDA starts now: traces kernels if they are wanted.
void start_kernels() noexcept;

// A ROCm runtime starts now: traces kernels if they are wanted. nullptr: they are not, or not by
// this version of rocprofiler-sdk, which the trace then says.
abi::rocprofiler::ConfigureResult* configure_rocprofiler(std::uint32_t version) noexcept;

// See cupti::Tracer.
void begin_reruns() noexcept;
void end_reruns() noexcept;

// Returns when all that ended before is in the spool, or after 10 seconds.
void flush() noexcept;

// Sends all records and ends. `exiting`: the process is about to end.
void end(bool exiting) noexcept;

// Calls `source` about once a second, for this trace and later ones.
void add_source(cupti::Tracer::Source source) noexcept;

// The spool as a tracer's sink: ends the trace in order, and adds the problems of layers and of the
// spool to the status.

class SpoolSink final : public model::ActivitySink {
 public:
  explicit SpoolSink(std::unique_ptr<spool::SpoolWriter> writer) : writer_(std::move(writer)) {}
  ~SpoolSink() override { writer_->close(); }

  void define(std::uint32_t id, const model::TracedDevice& v) override {
    writer_->define(id, v);
    replay::seen(id, v);
  }
  void define(std::uint32_t id, const model::KernelClass& v) override {
    writer_->define(id, v);
    replay::seen(id, v);
  }
  void define(std::uint32_t id, const model::Layer& v) override { writer_->define(id, v); }
  void define(std::uint32_t id, const model::Range& v) override { writer_->define(id, v); }
  void define(std::uint32_t id, const model::Scope& v) override { writer_->define(id, v); }
  void add(const model::ActivityChunk& chunk) override {
    writer_->add(chunk);
    replay::seen(chunk);
  }
  void status(const model::TraceStatus& status) override {
    model::TraceStatus reported = status;
    for (const std::string& more : {layers::problem(), writer_->problem()}) {
      if (more.empty()) continue;
      if (!reported.problem.empty()) reported.problem += "; ";
      reported.problem += more;
    }
    writer_->status(reported);
  }

 private:
  std::unique_ptr<spool::SpoolWriter> writer_;
};

}  // namespace jouleprof::inject
