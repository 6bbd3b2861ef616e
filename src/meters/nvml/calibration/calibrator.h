// Puts a load at known times on a GPU and reads its sensors meanwhile. What the readings say about
// the sensors is found by analysis/timeline/sensor_fit.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/nvml/calibration/sensor_watch.h"
#include "meters/nvml/nvml_meter.h"
#include "model/device/power_levels.h"

namespace jouleprof::meters::nvml {

struct LoadObservation {
  // With the load's context and nothing running, before the load. Errors: unavailable with the
  // reason why no level was observed.
  Result<model::KnownLevel> held;
  std::vector<model::BusySpan> busy;  // in order, with rests before, between and after
  Watched powers;
  std::vector<model::CounterReading> counter;  // after the load
};

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
  class Session;
  Calibrator(std::unique_ptr<NvmlMeter> meter, std::unique_ptr<Session> session, Progress progress);
  Result<void> check_unused(const Gpu& gpu);
  Result<void> check_own_power(const Gpu& gpu) const;
  Result<model::KnownLevel> observe_level(const Gpu& gpu, Duration length);
  Result<model::KnownLevel> observe_held(const Gpu& gpu);

  std::unique_ptr<NvmlMeter> meter_;
  std::unique_ptr<Session> session_;
  Progress progress_;
};

}  // namespace jouleprof::meters::nvml
