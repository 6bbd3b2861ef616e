// Clocks, temperatures, utilisations and the like of one device: read together.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "meters/nvml/probes/field_poll.h"
#include "model/device/clock_reasons.h"

namespace jouleprof::meters::nvml {

// The numbers that one call gives, in the units of model/gauge_names.h.
using GaugeValues = std::array<std::optional<double>, 2>;

struct GaugeCall {
  std::string_view function;              // NVML's, for messages
  std::array<std::string_view, 2> names;  // of model/device/gauge_names.h; the second may be empty
  abi::Return (*read)(const NvmlApi& api, abi::Device device, GaugeValues& values);
};

// NVML's reasons (nvmlClocksEventReasons) as the recording's; bits that are not known are left out.
model::ClockReasons clock_reasons(unsigned long long nvml_reasons);

// All calls. Those that a library does not export return kFunctionNotFound.
const std::vector<GaugeCall>& gauge_calls();

// All gauges of a device, and with them the powers that are slow by nature (one-second averages).
class StateProbe : public ProbeReader {
 public:
  StateProbe(const NvmlApi& api, abi::Device device, FieldPoll fields, Duration period,
             const NvmlClock& clock)
      : api_(api), device_(device), fields_(std::move(fields)), period_(period), clock_(clock) {}

  // A sensor for each name of `call`; absent for a value not to be kept.
  void add(const GaugeCall& call, std::array<std::optional<model::SensorId>, 2> sensors);
  bool empty() const { return items_.empty() && fields_.empty(); }

  HostTime read(model::Readings& out) override;
  void set_period(Duration period) { period_ = period; }

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
  Duration period_;
  const NvmlClock& clock_;
  std::vector<Item> items_;
};

}  // namespace jouleprof::meters::nvml
