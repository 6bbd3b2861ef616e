// Predicts the updates of an energy counter: their period is given, their phase is learnt.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/probes/probe_reader.h"

namespace jouleprof::meters::nvml {

// Precise to some milliseconds, enough to place reads between two updates or around one. The
// analysis fits the phase for the figures (analysis/timeline/sensors/counter_edges.h).
class EdgeTracker {
 public:
  explicit EdgeTracker(Duration refresh) : refresh_(refresh) {}

  // An update became visible between two reads. Brackets wider than
  // 0.6 periods are ignored.
  void saw(HostTime before, HostTime after);
  void forget();

  // The first expected update later than `t`; absent until one was observed, or when the observed
  // updates do not fit the period (by a quarter).
  std::optional<HostTime> next_after(HostTime t) const;

 private:
  bool fits_period() const;

  Duration refresh_;
  // One update lies in here, and the others at whole periods from it.
  std::optional<HostTime> low_;
  HostTime high_{};
  // First and last update of a row without a gap and how many, to check the period itself.
  HostTime first_seen_{};
  HostTime last_seen_{};
  int seen_ = 0;
  bool row_ended_ = false;
};

// When to read an energy counter; each read takes milliseconds of CPU time.

struct CounterPlan {
  Duration refresh{};         // between two updates
  bool every_update = false;  // short windows: one read after each update; else `rarely`
  HostTime first_burst{};     // begin of the first dense reads (devices take turns)
  Duration rarely = std::chrono::seconds(5);  // between two steady reads
};

// Begins with a second of reads 25 ms apart, so that the updates' phase can be fitted. Then reads
// rarely, half-way between two expected updates, where a late update is not mistaken for the next;
// or, for short windows, once after each. Six reads around an update follow its phase every 12 rare
// reads: device and host drift apart by some 30 ppm, 4 ms in two minutes.
class CounterSchedule {
 public:
  explicit CounterSchedule(const CounterPlan& plan) : plan_(plan), edges_(plan.refresh) {}

  // A read began at `before` and ended at `after`. `changed_since`: the begin of the earlier read
  // since which the value changed. Returns when to read next.
  HostTime next(HostTime before, HostTime after, std::optional<HostTime> changed_since);

  // How often to read from now on: as CounterPlan's.
  void set_pace(bool every_update, Duration rarely);

  // The value went back: the driver was reloaded, and its updates have a new phase.
  void restart(HostTime now);

  // How often a steady read is due.
  Duration period() const;

  const EdgeTracker& edges() const { return edges_; }

 private:
  HostTime steady(HostTime now) const;
  HostTime begin_burst(HostTime now);

  CounterPlan plan_;
  EdgeTracker edges_;
  HostTime burst_end_{};  // of the first dense reads
  bool learning_ = true;  // within them, or before
  int burst_left_ = 0;    // reads left around one update
  Duration burst_spacing_{};
  HostTime last_burst_{};
};

inline constexpr Duration kDenseSpacing = std::chrono::milliseconds(25);

// Reads a device's energy counter.

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
