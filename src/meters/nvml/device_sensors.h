// Clocks, temperatures, utilisations and the like of one device: read together.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

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

// All gauges of a device, and with them the powers that are slow by nature (one-second averages).
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
  bool read(Item& item, model::Readings& out);

  const NvmlApi& api_;
  abi::Device device_;
  FieldPoll fields_;
  Pace pace_;
  HostTime all_{};       // when to read all next
  HostTime sm_clock_{};  // when to read the SM clock next; sooner, all is asked for
  const NvmlClock& clock_;
  std::vector<Item> items_;
};

// Which powers a device reports, and their scopes.

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

}  // namespace jouleprof::meters::nvml
