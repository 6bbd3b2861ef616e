// A load that keeps every multiprocessor of a GPU busy for spans known on the host's clock.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {

// Changes no setting of the GPU. Its CUDA context (some hundred MB of device memory) is released by
// the destructor. Thread safety: none; one thread calls everything.
class CudaLoad {
 public:
  // Loads libcuda.so.1 and finds the GPU with this UUID ("GPU-..."); uses no GPU yet.
  // Errors: not_found without the library or when CUDA does not list the GPU; unsupported for a
  // library that lacks a function; unavailable for the driver's own errors.
  static Result<CudaLoad> open(const std::string& uuid);

  CudaLoad(CudaLoad&&) noexcept;
  CudaLoad& operator=(CudaLoad&&) noexcept;
  ~CudaLoad();

  // Creates the context and compiles the kernel. Errors: unavailable for the driver's errors (out
  // of memory, another process uses the GPU exclusively).
  Result<void> start();

  // Runs the kernel repeatedly for about `length`, in launches of about half a millisecond, and
  // waits for each. The span begins just before the first launch and ends just after the last has
  // ended. Call start() first. Errors: unavailable for the driver's errors.
  Result<model::BusySpan> burst(Duration length);

 private:
  struct State;
  explicit CudaLoad(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace jouleprof::meters::nvml
