// Values that are polled through nvmlDeviceGetFieldValues, many in one call.
#pragma once

#include <string>
#include <vector>

#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/probes/probe_reader.h"

namespace jouleprof::meters::nvml {

// A field and its scope. One id stands for nvmlDeviceGetPowerUsage, which is no field.
struct Field {
  unsigned id = 0;
  unsigned scope = abi::kScopeGpu;

  bool operator==(const Field&) const = default;
};
inline constexpr unsigned kPowerUsageCall = 0;

// "NVML_FI_DEV_POWER_INSTANT", "NVML_FI_DEV_POWER_AVERAGE (memory)", "nvmlDeviceGetPowerUsage".
std::string name_of(const Field& field);

// The answer of one field.
struct FieldAnswer {
  abi::Return code = abi::Return::kUnknown;
  std::optional<double> value;  // in the field's unit; absent unless it is a number
};

// Reads all `fields` in one call (nvmlDeviceGetPowerUsage apart). The answers are in their order.
std::vector<FieldAnswer> read_fields(const NvmlApi& api, abi::Device device,
                                     const std::vector<Field>& fields);

// Polls powers (milliwatts) and temperatures (degrees), each for its sensor.
class FieldPoll {
 public:
  FieldPoll(const NvmlApi& api, abi::Device device, const NvmlClock& clock)
      : api_(api), device_(device), clock_(clock) {}

  // A gauge that the driver later does not support is dropped without a failure.
  void add(model::SensorId sensor, const Field& field, model::SensorKind kind);
  bool empty() const { return items_.empty(); }

  // False when the device is lost.
  bool read(model::Readings& out);

 private:
  struct Item {
    model::SensorId sensor{};
    Field field;
    model::SensorKind kind{};
    std::string name;
    ReadState state;
    bool dropped = false;
  };
  void take(Item& item, abi::Return code, std::optional<double> value, HostTime at,
            model::Readings& out);

  const NvmlApi& api_;
  abi::Device device_;
  const NvmlClock& clock_;
  std::vector<Item> items_;
  std::vector<Field> fields_;  // as items_
  std::vector<FieldAnswer> answers_;
  std::vector<abi::FieldValue> buffer_;
};

// A FieldPoll as a probe of its own, for powers that have to be polled as often as they renew.
class PowerPollProbe : public ProbeReader {
 public:
  PowerPollProbe(FieldPoll poll, Duration period, const NvmlClock& clock)
      : poll_(std::move(poll)), period_(period), clock_(clock) {}
  HostTime read(model::Readings& out) override;
  void set_period(Duration period) { period_ = period; }

 private:
  FieldPoll poll_;
  Duration period_;
  const NvmlClock& clock_;
};

}  // namespace jouleprof::meters::nvml
