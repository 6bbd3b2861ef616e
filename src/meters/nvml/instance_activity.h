// How busy the multiprocessors of each GPU instance are, where MIG divides a board.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "abi/nvml_abi.h"
#include "base/clock.h"
#include "meters/nvml/api/nvml_api.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {

// By the driver's hardware counters (GPM: Hopper and later, or what the driver answers). They are
// of an instance's own multiprocessors: 1 is an instance that is full, however small it is.
class InstanceActivity {
 public:
  // `api` must outlive it.
  explicit InstanceActivity(const NvmlApi& api) : api_(api) {}
  ~InstanceActivity() { clear(); }
  InstanceActivity(const InstanceActivity&) = delete;
  InstanceActivity& operator=(const InstanceActivity&) = delete;

  // Takes the first sample of an instance; what the driver answers. Only where that is kSuccess
  // will read() report it, after report_as().
  abi::Return add(abi::Device board, unsigned gpu_instance);
  void report_as(model::SensorId sensor) { instances_.back().sensor = sensor; }

  // Appends the mean of each instance since the read before it. The first read after a failed one
  // reports none.
  void read(HostTime now, model::Readings& out);
  // Frees the samples: to be called while the library is initialised.
  void clear();

 private:
  struct Instance {
    abi::Device board = nullptr;
    unsigned id = 0;
    std::optional<model::SensorId> sensor;
    abi::GpmSample last = nullptr;
    abi::GpmSample next = nullptr;
    bool has_last = false;
  };
  std::optional<double> mean_of(const Instance& instance) const;
  void free(Instance& instance);

  const NvmlApi& api_;
  std::vector<Instance> instances_;
};

}  // namespace jouleprof::meters::nvml
