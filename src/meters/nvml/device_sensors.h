// What one device reports besides its energy: gauges, powers and their scopes, instances of MIG.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "abi/nvml_abi.h"
#include "base/clock.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/gpu.h"
#include "meters/nvml/probes/probes.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {

// The numbers that one call gives, in the units of model/device/sensor.h.
using GaugeValues = std::array<std::optional<double>, 2>;

struct GaugeCall {
  std::string_view function;              // NVML's, for messages
  std::array<std::string_view, 2> names;  // of model/device/sensor.h; the second may be empty
  abi::Return (*read)(const NvmlApi& api, abi::Device device, GaugeValues& values);
};

// NVML's reasons (nvmlClocksEventReasons) as the recording's; bits that are not known are left out.
model::ClockReasons clock_reasons(unsigned long long nvml_reasons);

// All calls. Those that a library does not export return kFunctionNotFound.
const std::vector<GaugeCall>& gauge_calls();

// All gauges of a device, read together, and with them the powers that are slow by nature
// (one-second averages).
class StateProbe : public ProbeReader {
 public:
  // How often all is read, and the SM clock.
  struct Pace {
    Duration all{};
    Duration sm_clock{};
  };

  StateProbe(const NvmlApi& api, abi::Device device, FieldPoll fields, Pace pace,
             const NvmlClock& clock)
      : api_(api), device_(device), fields_(std::move(fields)), pace_(pace), clock_(clock) {}

  // A sensor for each name of `call`; absent for a value not to be kept.
  void add(const GaugeCall& call, std::array<std::optional<model::SensorId>, 2> sensors);
  bool empty() const { return items_.empty() && fields_.empty(); }

  HostTime read(model::Readings& out) override;
  void set_pace(Pace pace) { pace_ = pace; }

 private:
  struct Item {
    const GaugeCall* call = nullptr;
    std::array<std::optional<model::SensorId>, 2> sensors;
    std::array<ReadState, 2> states;
    bool dropped = false;
  };
  abi::Return read(Item& item, model::Readings& out);
  void fail(abi::Return code, model::Readings& out);

  const NvmlApi& api_;
  abi::Device device_;
  FieldPoll fields_;
  Pace pace_;
  HostTime all_{};       // when to read all next
  HostTime sm_clock_{};  // when to read the SM clock next; sooner, all is asked for
  const NvmlClock& clock_;
  std::vector<Item> items_;
};

// --- Which powers a device reports, and their scopes ---

struct ScopePowers {
  std::optional<Field> instant;
  std::optional<Field> average;

  bool any() const { return instant || average; }
};

struct PowerScopes {
  ScopePowers gpu;
  ScopePowers module;
  ScopePowers memory;
  abi::Return instant_code = abi::Return::kSuccess;  // why gpu.instant is absent
};

// Reads instant and average power of all scopes in one call, and nvmlDeviceGetPowerUsage where it
// adds to the fields. A power of zero is no value. Drivers without scopes give the GPU's power for
// each: a memory that draws no less than its GPU, or a module that draws no more, is treated as
// absent.
PowerScopes find_powers(const NvmlApi& api, abi::Device device, const Generation& generation);

// How busy the multiprocessors of each GPU instance are, where MIG divides a board.
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
