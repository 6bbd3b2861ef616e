// What calibration does with a GPU: keeps it busy at known times, and reads its sensors meanwhile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/nvml/gpu.h"
#include "meters/nvml/nvml_meter.h"
#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::meters::nvml {

struct Watched {
  std::vector<model::PowerReading> ring;     // stamped by the driver
  std::vector<model::PowerReading> instant;  // polled each millisecond
  std::vector<model::PowerReading> average;  // the same
};

// Reads the power sensors as often as calibration needs, far more often than the meter does, on its
// own thread from construction on. A sensor that is missing or fails
// has no readings; without a thread, or where that fails, none has. On a superchip it reads the
// GPU's own power, else the module's. `api` and `gpu` must outlive it.
class SensorWatch {
 public:
  SensorWatch(const NvmlApi& api, const Gpu& gpu);
  SensorWatch(const SensorWatch&) = delete;
  SensorWatch& operator=(const SensorWatch&) = delete;
  ~SensorWatch();

  // Ends the thread and returns its readings. Call it once at most.
  Watched stop();

 private:
  void watch(const std::stop_token& stop);

  const NvmlApi& api_;
  const Gpu& gpu_;
  Watched watched_;
  std::stop_source stop_;
  std::thread thread_;  // last: it uses the members above
};

struct LoadObservation {
  // With the load's context and nothing running, before the load. Errors: unavailable with the
  // reason why no level was observed.
  Result<model::KnownLevel> held;
  std::vector<model::BusySpan> busy;  // in order, with rests before, between and after
  Watched powers;
  std::vector<model::CounterReading> counter;  // after the load
};

// Puts a load at known times on a GPU and reads its sensors meanwhile. What the readings say about
// the sensors is found by analysis/timeline/sensors/sensor_fit.h.
// Thread safety: none; one thread calls everything.
class Calibrator {
 public:
  using Progress = std::function<void(const std::string&)>;

  // Errors: as NvmlMeter::open.
  static Result<Calibrator> open(const NvmlOptions& options, Progress progress);
  Calibrator(Calibrator&&) noexcept;
  ~Calibrator();

  const std::vector<Gpu>& gpus() const { return meter_->gpus(); }
  // The traits of the GPU's sensor of this kind before calibration; absent when it has none.
  std::optional<model::SensorTraits> assumed_traits(const Gpu& gpu, model::SensorKind kind) const;

  // Errors: that of a GPU that cannot be used; unsupported in MIG mode.
  Result<void> check_usable(const Gpu& gpu) const;
  // The power while no process holds a context. Waits for at most 20 s until clocks are down and
  // power no longer falls. Errors: unavailable with the reason when it is not at rest; unsupported
  // where its own power, or both its clock and its processes, cannot be read.
  Result<model::KnownLevel> observe_rest(const Gpu& gpu);
  // Takes about 25 s. Errors: as check_usable; unavailable when another program uses the GPU; as
  // CudaLoad.
  Result<LoadObservation> observe(const Gpu& gpu);

 private:
  Calibrator(std::unique_ptr<NvmlMeter> meter, std::shared_ptr<const NvmlApi> api,
             Progress progress);
  Result<void> check_unused(const Gpu& gpu);
  Result<void> check_own_power(const Gpu& gpu) const;
  Result<model::KnownLevel> observe_level(const Gpu& gpu, Duration length);
  Result<model::KnownLevel> observe_held(const Gpu& gpu);

  std::unique_ptr<NvmlMeter> meter_;
  // The calibrator's own, because the meter limits how often it reads.
  std::shared_ptr<const NvmlApi> api_;
  Progress progress_;
};

// What a board's gauges say about contexts on it.
struct BoardLook {
  std::optional<double> processes;  // that the driver lists
  std::optional<double> sm_clock;   // hertz
  std::optional<double> utilisation;
  std::optional<double> temperature;  // degrees Celsius

  // Why the board is not at rest; absent when it is. Without a list of processes and without a
  // clock that is unknown, which is a reason, too.
  std::optional<std::string> not_at_rest() const;
};

// Reads the gauges and the processes of one GPU.
BoardLook look_at(NvmlMeter& meter, const Gpu& gpu);

// The power of an interval in which it was steady.
struct SteadyPower {
  Power power;
  Power spread;  // half of a 95 % interval of means over 0.1 s; at least 1 W and 1 %
};

// From readings of one sensor in any order; of those after `begin`, means over 0.1 s are taken.
// Errors: unavailable with the reason: readings of less than 1 s; power that rises or falls (the
// means of both halves differ by more than 0.5 W and 0.5 %, beyond their errors); power that varies
// by more than 3 W and 3 %.
Result<SteadyPower> steady_power(const std::vector<model::PowerReading>& readings, HostTime begin);

// A load that keeps every multiprocessor of a GPU busy for spans known on the host's clock.
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
