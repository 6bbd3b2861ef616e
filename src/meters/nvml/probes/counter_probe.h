// Reads a device's energy counter.
#pragma once

#include <optional>

#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/api/nvml_clock.h"
#include "meters/nvml/probes/counter_schedule.h"
#include "meters/nvml/probes/probe_reader.h"

namespace jouleprof::meters::nvml {

// One read of nvmlDeviceGetTotalEnergyConsumption, in millijoules. Errors: as the driver gives
// them; unavailable for its no-value mark. `code` receives the driver's return code.
Result<Energy> read_total_energy(const NvmlApi& api, abi::Device device, abi::Return& code);

class CounterProbe : public ProbeReader {
 public:
  CounterProbe(const NvmlApi& api, abi::Device device, model::SensorId sensor,
               const CounterPlan& plan, const NvmlClock& clock)
      : api_(api), device_(device), sensor_(sensor), plan_(plan), schedule_(plan), clock_(clock) {}

  // A call well before the time it returned wants the energy up to now: it is the last one of the
  // run, or a service's at a tick. Where an update is near, it sleeps to half-way after it, up to
  // 0.75 periods; before the phase is known, it reads until it observed one, up to 1.25 periods. So
  // the last value lies between two known updates.
  HostTime read(model::Readings& out) override;
  // As CounterSchedule's.
  void set_pace(bool every_update, Duration rarely) { schedule_.set_pace(every_update, rarely); }

 private:
  HostTime read_once(model::Readings& out);
  bool wait_for_update(HostTime now);
  void read_until_update(model::Readings& out);

  const NvmlApi& api_;
  abi::Device device_;
  model::SensorId sensor_;
  CounterPlan plan_;
  CounterSchedule schedule_;
  const NvmlClock& clock_;
  ReadState state_;
  std::optional<model::CounterReading> last_;
  HostTime moved_{};  // of the last observed change
  std::optional<HostTime> due_;
};

}  // namespace jouleprof::meters::nvml
