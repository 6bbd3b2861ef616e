// The probes of a GPU: its energy counter, its ring of power samples, and fields that are polled.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "meters/nvml/api/nvml_api.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {

class ProbeReader {
 public:
  virtual ~ProbeReader() = default;
  // Appends the readings; returns when to read next.
  virtual HostTime read(model::Readings& out) = 0;
  // Contract: that of Meter::is_waiting.
  virtual bool is_waiting() const { return false; }
};

// The time between two reads of a lost device.
inline constexpr Duration kLostRetry = std::chrono::seconds(10);

// Whether a sensor works. A failure is reported when it begins or changes, not at every read.
class ReadState {
 public:
  void succeeded() { error_.reset(); }

  void failed(model::SensorId sensor, HostTime at, Error error, model::Readings& out) {
    if (error_ == error) return;
    error_ = error;
    out.failures.push_back({sensor, at, std::move(error)});
  }

 private:
  std::optional<Error> error_;
};

// --- Values that are polled through nvmlDeviceGetFieldValues, many in one call ---

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

  // Success, or the code of a lost device: no sensor has a value then.
  abi::Return read(model::Readings& out);
  // The driver's answer `code` as that of each field.
  void fail(abi::Return code, HostTime at, model::Readings& out);

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

// --- Reads the driver's ring of stamped power samples ---

// A ring: its capacity and its samples at one read.
struct RingContent {
  abi::ValueType value_type{};
  std::vector<abi::Sample> samples;  // as the driver orders them
  unsigned capacity = 0;
  // The median distance of neighbouring stamps; absent with fewer than eight samples.
  std::optional<Duration> refresh() const;
};

// Fills `ring` with everything in the ring of `type` (total or module power), and asks for its
// capacity first where that is zero. Returns the driver's code; kNoData when it is empty.
abi::Return read_ring(const NvmlApi& api, abi::Device device, abi::SamplingType type,
                      RingContent& ring);

// The driver stamps samples with the wall clock. Each read fetches the whole ring and takes the
// samples whose stamps were not in it at the last read, so that a wall clock set back hides none.
// Stamps become host time with the clocks' offset at this read, or at the last read where only that
// places the sample between the two. Samples that a step of the wall clock makes ambiguous, or that
// were overwritten unread, are reported as failures.
class RingProbe : public ProbeReader {
 public:
  // `known`: the ring's samples when the sensor was found; they are not reported.
  RingProbe(const NvmlApi& api, abi::Device device, abi::SamplingType type, model::SensorId sensor,
            RingContent known, Duration refresh, Duration period, const NvmlClock& clock);

  HostTime read(model::Readings& out) override;
  void set_period(Duration period) { period_ = period; }

 private:
  std::optional<HostTime> place(std::uint64_t stamp, const ClockPoint& now) const;
  void take(const ClockPoint& now, model::Readings& out);
  void finish(std::size_t unplaced, const ClockPoint& now, model::Readings& out);
  void remember();

  const NvmlApi& api_;
  abi::Device device_;
  abi::SamplingType type_;
  model::SensorId sensor_;
  Duration refresh_;
  Duration period_;
  const NvmlClock& clock_;
  ReadState state_;
  RingContent ring_;
  std::vector<std::uint64_t> seen_;  // the stamps of the last read, sorted
  ClockPoint last_read_;
  HostTime newest_;                         // host time of the latest sample so far
  bool first_ = true;                       // samples from before the first read are not missed
  std::vector<model::PowerReading> fresh_;  // kept to spare allocations
};

// Predicts the updates of an energy counter: their period is given, their phase is learnt.
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

// --- When to read an energy counter; each read takes milliseconds of CPU time ---

struct CounterPlan {
  Duration refresh{};         // between two updates
  bool every_update = false;  // short windows: one read after each update; else `rarely`
  HostTime first_burst{};     // begin of the first dense reads (devices take turns)
  Duration rarely = std::chrono::seconds(5);  // between two steady reads
};

// Begins with a second of reads 25 ms apart, so that the updates' phase can be fitted. Then reads
// rarely, half-way between two expected updates, where a late update is not mistaken for the next;
// or, for short windows, once after each. Six reads around an update follow its phase every 12 rare
// reads, and not more often than every 30 s: device and host drift apart by some 30 ppm, 4 ms in
// two minutes.
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

// --- Reads a device's energy counter ---

// One read of nvmlDeviceGetTotalEnergyConsumption, in millijoules. Errors: as the driver gives
// them; unavailable for its no-value mark. `code` receives the driver's return code.
Result<Energy> read_total_energy(const NvmlApi& api, abi::Device device, abi::Return& code);

class CounterProbe : public ProbeReader {
 public:
  CounterProbe(const NvmlApi& api, abi::Device device, model::SensorId sensor,
               const CounterPlan& plan, const NvmlClock& clock)
      : api_(api), device_(device), sensor_(sensor), plan_(plan), schedule_(plan), clock_(clock) {}

  // A call well before the time it returned wants the energy up to now: it is the last one of the
  // run, or a service's at a tick. Where an update is near, it waits to half-way after it, up to
  // 0.75 periods; before the phase is known, it reads until it observed one, up to 1.25 periods. So
  // the last value lies between two known updates. It does not sleep meanwhile: the counters of all
  // boards wait at the same time, and their buffers of samples do not overflow.
  HostTime read(model::Readings& out) override;
  bool is_waiting() const override { return wait_.has_value(); }
  // Contract: that of CounterSchedule.
  void set_pace(bool every_update, Duration rarely) { schedule_.set_pace(every_update, rarely); }

 private:
  // How long an early read waits: until the counter has left this value, or until this time; or for
  // one read.
  struct Wait {
    std::optional<Energy> from;
    HostTime until;
  };

  HostTime read_once(model::Readings& out);
  HostTime read_early(HostTime now, model::Readings& out);

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
  std::optional<Wait> wait_;
};

}  // namespace jouleprof::meters::nvml
