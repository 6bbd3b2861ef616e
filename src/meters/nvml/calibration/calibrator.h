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

namespace jouleprof::meters::nvml {

struct LoadObservation {
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

  // Takes about 25 s. Errors: unavailable when another program uses the GPU; unsupported in MIG
  // mode; as CudaLoad.
  Result<LoadObservation> observe(const Gpu& gpu);

 private:
  class Session;
  Calibrator(std::unique_ptr<NvmlMeter> meter, std::unique_ptr<Session> session, Progress progress);
  Result<void> check_unused(const Gpu& gpu);

  std::unique_ptr<NvmlMeter> meter_;
  std::unique_ptr<Session> session_;
  Progress progress_;
};

}  // namespace jouleprof::meters::nvml
