// Isolated re-runs of this process's kernels when it ends (`jouleprof run --replay`), or when it
// asks.
#pragma once

#include <cstdint>
#include <string>

#include "model/activity/activity.h"

namespace jouleprof::inject::replay {

// Thread safety: all functions from any thread. None throws or fails the program.

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
