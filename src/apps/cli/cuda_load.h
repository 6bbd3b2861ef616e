// A load that keeps every multiprocessor of a GPU busy for spans known on the host's clock.
#pragma once

#include <memory>
#include <string>

#include "analysis/timeline/sensor_fit.h"
#include "base/clock.h"
#include "base/result.h"

namespace jouleprof::cli {

// Changes no setting of the card; what it takes (a context, some hundred MB of device memory that
// the driver wants for it) goes back when it is destroyed. One thread calls everything.
class CudaLoad {
 public:
  // Loads libcuda.so.1 and finds the GPU with this UUID ("GPU-..."), without touching it yet.
  // Errors: not_found without the library or when CUDA does not list the GPU; unsupported for a
  // library that lacks a function; unavailable as the driver says.
  static Result<CudaLoad> open(const std::string& uuid);

  CudaLoad(CudaLoad&&) noexcept;
  CudaLoad& operator=(CudaLoad&&) noexcept;
  ~CudaLoad();

  // Makes the context and has the driver compile the kernel. Errors: unavailable as the driver
  // says (out of memory, another process has the card to itself).
  Result<void> start();

  // Runs the kernel over and over for about `length`, in launches of about half a millisecond, each
  // waited for. The span is that from just before the first launch to just after the last has
  // ended. Only after start(). Errors: unavailable as the driver says.
  Result<analysis::BusySpan> burst(Duration length);

 private:
  struct State;
  explicit CudaLoad(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace jouleprof::cli
