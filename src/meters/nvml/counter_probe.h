// Reads a device's energy counter.
#pragma once

#include <optional>

#include "meters/nvml/counter_schedule.h"
#include "meters/nvml/nvml_api.h"
#include "meters/nvml/nvml_clock.h"
#include "meters/nvml/probe_reader.h"

namespace jouleprof::meters::nvml {

// One read of nvmlDeviceGetTotalEnergyConsumption, in millijoules. Errors: as the driver gives
// them; unavailable for its mark of no value. `code` receives the driver's return code.
Result<Energy> read_total_energy(const NvmlApi& api, abi::Device device, abi::Return& code);

class CounterProbe : public ProbeReader {
 public:
  CounterProbe(const NvmlApi& api, abi::Device device, model::SensorId sensor,
               const CounterPlan& plan, const NvmlClock& clock)
      : api_(api), device_(device), sensor_(sensor), plan_(plan), schedule_(plan), clock_(clock) {}

  // Asked well before the time it named, it takes this for the last read of all and makes sure
  // that it can be placed between two updates: it reads again once an update that may be on its
  // way has come, or, before the phase is known, until it has seen one. That sleeps up to one
  // period and a quarter.
  HostTime read(model::Readings& out) override;

 private:
  HostTime read_once(model::Readings& out);
  void read_last(model::Readings& out);

  const NvmlApi& api_;
  abi::Device device_;
  model::SensorId sensor_;
  CounterPlan plan_;
  CounterSchedule schedule_;
  const NvmlClock& clock_;
  ReadState state_;
  std::optional<model::CounterReading> last_;
  HostTime moved_{};  // when the value was last seen to change
  std::optional<HostTime> due_;
};

}  // namespace jouleprof::meters::nvml
