// The trace of this process: one at a time, made when it is first wanted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "abi/nvtx_abi.h"
#include "abi/rocprofiler_abi.h"
#include "model/activity/activity.h"
#include "recording/spool/spool_writer.h"
#include "spans/cupti/tracer.h"
#include "spans/layers/layers.h"

// Isolated re-runs of this process's kernels when it ends (`jouleprof run --replay`), or when it
// asks.
// Thread safety: all functions from any thread. None throws or fails the program.
namespace jouleprof::inject::replay {

// Whether the trace asks for re-runs, or JOULEPROF_REPLAY does for when the process ends.
bool wanted() noexcept;

// A trace begins, which may ask for re-runs: drops what an earlier one left. Before start().
void begin_trace(bool asked);

// Records launches from now on, where they are wanted. The driver is loaded, and CUPTI has not
// started.
void start() noexcept;

// Re-runs kernels as the process exits, unless Python runs in it: its frameworks free memory before
// that, and python/hook/jouleprof_at_exit.py comes earlier. After CUPTI has started.
void at_exit() noexcept;

// What the trace says of the program's kernels. Called by one thread.
void seen(std::uint32_t id, const model::TracedDevice& device);
void seen(std::uint32_t id, const model::KernelClass& kernel);
void seen(const model::ActivityChunk& chunk);

// How long kernels are re-run.
struct Limits {
  double each = 0;  // seconds of a loop, at most; 0: as JOULEPROF_REPLAY has it
  double all = 30;
  // The program goes on afterwards: re-runs leave all memory as it was, or there are none, and
  // other threads that use the GPU wait meanwhile.
  bool goes_on = false;
  double beyond = 20;  // seconds that a call of CUDA may take longer, until it counts as stuck
};

// Begins to re-run kernels on a thread of its own. False: nothing was recorded, or re-runs are
// under way, or the program has asked for them before it ended.
bool begin(const Limits& limits) noexcept;
// Re-runs kernels of a program that goes on, and returns when they have ended. `said`: what was
// re-run, or why nothing was. No work of the calling thread may be under way on the GPU. 0: some
// kernel was re-run; -1: none was; -2: the program cannot go on, because one failed or did not end.
int now(const Limits& limits, std::string& said) noexcept;
// Called about once a second: re-runs kernels where `jouleprof replay --pid` has asked for it in
// this folder, once the program pauses.
void look_for_request(const std::string& folder) noexcept;
// Whether they have ended; waits up to that many seconds for it.
bool wait(double seconds) noexcept;
// Ends them soon.
void stop() noexcept;
// Where a kernel does not end, CUDA's functions may never return. The process then leaves with this
// status, or with the one that it exits with, at the latest 10 seconds from now.
void leave_if_stuck(int status) noexcept;

}  // namespace jouleprof::inject::replay

// Thread safety: all functions from any thread. None throws or fails the program. A forked child
// has no trace until it begins its own.
namespace jouleprof::inject {

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
// A kernel runs that may not end: see Tracer::begin_risk().
void set_risk(bool active) noexcept;

// NVTX's ranges as scopes of their thread: puts our functions into the places that NVTX's client,
// one a shared library, keeps for a tool: pushes, pops, starts and ends of the default and of named
// domains, and what those need. Marks are left alone. False when the client offers no places.
bool fill_nvtx(abi::nvtx::GetExportTable* get_export_table) noexcept;

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
