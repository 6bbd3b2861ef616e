// The sensors and probes that NvmlMeterBuilder adds for one GPU.
#include <algorithm>
#include <chrono>

#include "meters/nvml/api/nvml_error.h"
#include "meters/nvml/gauges.h"
#include "meters/nvml/nvml_meter_builder.h"
#include "meters/nvml/probes/counter_probe.h"
#include "meters/nvml/probes/ring_probe.h"
#include "model/device/gauge_names.h"

namespace jouleprof::meters {

using abi::Return;
using model::DomainId;
using model::SensorId;
using model::SensorKind;
using nvml::Gpu;
using nvml::GpuTraits;
using namespace std::chrono_literals;

namespace {

// A tool that is killed loses the samples that it has not read yet.
constexpr Duration kRingPeriod = 900ms;
constexpr Duration kStatePeriod = kRingPeriod;  // both reads share a wake-up
constexpr Duration kFastestState = 100ms;
constexpr Duration kMeanPeriod = 1s;
constexpr Duration kFastestPoll = 10ms;
// From this window on, a counter read every few seconds is enough.
constexpr Duration kLongWindow = 2s;
constexpr Duration kVeryLongWindow = 5s;
// Counters read densely at one time: each takes about 10 % of the thread then.
constexpr int kDenseTogether = 3;

// Shorter for short windows, and always before the driver overwrites samples.
Duration ring_period(const Demand& demand, Duration span) {
  const Duration longest = std::max(demand.sample_period, kRingPeriod);
  const Duration wanted = demand.shortest_window >= kLongWindow
                              ? longest
                              : std::clamp<Duration>(demand.shortest_window, 100ms, kRingPeriod);
  return std::min(wanted, span * 5 / 6);
}

// With samples for the power curve in between, the counter may be read more rarely.
Duration counter_period(const Demand& demand, bool has_samples) {
  return has_samples && demand.shortest_window >= kVeryLongWindow ? 10s : 5s;
}

struct CounterPace {
  bool every_update = false;
  Duration rarely{};
};

CounterPace counter_pace(const Demand& demand, Duration refresh, bool has_samples) {
  if (const Duration wanted = demand.counter_period; wanted > Duration{}) {
    return {wanted <= refresh, wanted};
  }
  return {demand.shortest_window < kLongWindow, counter_period(demand, has_samples)};
}

Duration poll_period(const Demand& demand, Duration renewed) {
  return demand.poll_period > Duration{} ? std::max(demand.poll_period, kFastestPoll) : renewed;
}

Duration state_period(const Demand& demand) {
  return demand.state_period > Duration{} ? std::max(demand.state_period, kFastestState)
                                          : kStatePeriod;
}

// A one-second mean that is read each second covers all of the time, however rarely the state is
// read.
Duration mean_period(const Demand& demand) {
  return std::min<Duration>(state_period(demand), kMeanPeriod);
}

}  // namespace

bool NvmlMeterBuilder::counter_works(const Gpu& gpu) {
  Return code{};
  auto total = nvml::read_total_energy(meter_.api_, gpu.handle, code);
  if (total && *total == Energy{}) {
    // It may just have started; a counter that stays at zero does not work.
    meter_.clock_.sleep(250ms);
    total = nvml::read_total_energy(meter_.api_, gpu.handle, code);
    if (total && *total == Energy{}) {
      total = fail(Errc::kUnsupported, "nvmlDeviceGetTotalEnergyConsumption stays at zero");
    }
  }
  if (total) return true;
  add_missing(gpu, "energy counter", std::move(total.error()), nvml::fix_for(code));
  return false;
}

void NvmlMeterBuilder::add_counter(const Gpu& gpu, DomainId domain, const GpuTraits& known,
                                   abi::SamplingType samples) {
  model::SensorTraits traits = known.counter;
  traits.read_cost = cost_of([&] {
    Return code{};
    (void)nvml::read_total_energy(meter_.api_, gpu.handle, code);
  });
  const SensorId sensor =
      add_sensor(domain, SensorKind::kEnergyCounter, "nvmlDeviceGetTotalEnergyConsumption", traits);
  nvml::CounterPlan plan;
  plan.refresh = traits.refresh.value_or(100ms);
  nvml::RingContent ring;
  const bool has_samples =
      nvml::read_ring(meter_.api_, gpu.handle, samples, ring) == Return::kSuccess;
  const CounterPace pace = counter_pace(options_.demand, plan.refresh, has_samples);
  plan.every_update = pace.every_update;
  plan.rarely = pace.rarely;
  plan.first_burst = meter_.clock_.now().host + std::chrono::seconds(counters_++ / kDenseTogether);
  auto probe =
      std::make_unique<nvml::CounterProbe>(meter_.api_, gpu.handle, sensor, plan, meter_.clock_);
  meter_.paces_.push_back(
      [probe = probe.get(), refresh = plan.refresh, has_samples](const Demand& demand) {
        const CounterPace wanted = counter_pace(demand, refresh, has_samples);
        probe->set_pace(wanted.every_update, wanted.rarely);
      });
  add_probe(gpu.device() + " energy counter", nvml::CounterSchedule(plan).period(),
            std::move(probe));
}

bool NvmlMeterBuilder::add_ring(const Gpu& gpu, DomainId domain, const GpuTraits& known,
                                abi::SamplingType type) {
  nvml::RingContent ring;
  Return code = nvml::read_ring(meter_.api_, gpu.handle, type, ring);
  for (int attempt = 0; code == Return::kNoData && attempt < 4; ++attempt) {
    meter_.clock_.sleep(50ms);  // the driver may just have started to sample
    code = nvml::read_ring(meter_.api_, gpu.handle, type, ring);
  }
  if (code != Return::kSuccess) {
    add_missing(gpu, "power sample ring",
                nvml::nvml_error(meter_.api_, "nvmlDeviceGetSamples", code), nvml::fix_for(code));
    return false;
  }
  model::SensorTraits traits = known.ring;
  const bool calibrated = options_.calibrations.contains(gpu.uuid) &&
                          options_.calibrations.at(gpu.uuid).ring.refresh.has_value();
  if (const auto refresh = ring.refresh(); refresh && !calibrated) traits.refresh = refresh;
  traits.read_cost = cost_of([&] { (void)nvml::read_ring(meter_.api_, gpu.handle, type, ring); });
  const bool module = type == abi::SamplingType::kModulePower;
  const SensorId sensor =
      add_sensor(domain, SensorKind::kPowerRing,
                 module ? "nvmlDeviceGetSamples (module)" : "nvmlDeviceGetSamples", traits);
  const Duration refresh = traits.refresh.value_or(20ms);
  const Duration span = refresh * ring.capacity;
  const Duration period = ring_period(options_.demand, span);
  auto probe = std::make_unique<nvml::RingProbe>(meter_.api_, gpu.handle, type, sensor,
                                                 std::move(ring), refresh, period, meter_.clock_);
  meter_.paces_.push_back([probe = probe.get(), span](const Demand& demand) {
    probe->set_period(ring_period(demand, span));
  });
  add_probe(gpu.device() + (module ? " module power samples" : " power samples"), period,
            std::move(probe));
  return true;
}

void NvmlMeterBuilder::add_powers(const Gpu& gpu, DomainId domain, const nvml::ScopePowers& powers,
                                  const GpuTraits& known, bool often, Polls& polls) {
  const auto add_one = [&](const nvml::Field& field, SensorKind kind, model::SensorTraits traits,
                           bool poll_often) {
    traits.read_cost = cost_of([&] { (void)nvml::read_fields(meter_.api_, gpu.handle, {field}); });
    const SensorId sensor = add_sensor(domain, kind, nvml::name_of(field), traits);
    if (!poll_often) {
      const bool is_memory = field.scope == abi::kScopeMemory;
      return (is_memory ? polls.each_second : polls.with_state).add(sensor, field, kind);
    }
    const Duration refresh = std::max(traits.refresh.value_or(100ms), kFastestPoll);
    polls.period = polls.often.empty() ? refresh : std::min(polls.period, refresh);
    polls.often.add(sensor, field, kind);
  };
  if (powers.instant) add_one(*powers.instant, SensorKind::kPowerInstant, known.instant, often);
  if (powers.average) {
    add_one(*powers.average, SensorKind::kPowerAverage, known.average, often && !powers.instant);
  }
}

void NvmlMeterBuilder::add_poll_probe(const Gpu& gpu, Polls& polls) {
  if (!polls.each_second.empty()) {
    const Duration period = mean_period(options_.demand);
    auto probe =
        std::make_unique<nvml::PowerPollProbe>(std::move(polls.each_second), period, meter_.clock_);
    meter_.paces_.push_back(
        [probe = probe.get()](const Demand& demand) { probe->set_period(mean_period(demand)); });
    add_probe(gpu.device() + " memory power", period, std::move(probe));
  }
  if (polls.often.empty()) return;
  const Duration period = poll_period(options_.demand, polls.period);
  auto probe =
      std::make_unique<nvml::PowerPollProbe>(std::move(polls.often), period, meter_.clock_);
  meter_.paces_.push_back([probe = probe.get(), renewed = polls.period](const Demand& demand) {
    probe->set_period(poll_period(demand, renewed));
  });
  add_probe(gpu.device() + " power", period, std::move(probe));
}

void NvmlMeterBuilder::add_state_probe(const Gpu& gpu, DomainId domain, Polls& polls) {
  const auto& api = meter_.api_;
  const nvml::Field memory_temperature{abi::kFieldMemoryTemperature, abi::kScopeGpu};
  if (const auto answer = nvml::read_fields(api, gpu.handle, {memory_temperature}).front();
      answer.code == Return::kSuccess && answer.value && *answer.value > 0) {
    const auto sensor =
        add_sensor(domain, SensorKind::kGauge, std::string(model::gauge::kMemoryTemperature), {});
    polls.with_state.add(sensor, memory_temperature, SensorKind::kGauge);
  }
  const Duration period = state_period(options_.demand);
  auto state = std::make_unique<nvml::StateProbe>(api, gpu.handle, std::move(polls.with_state),
                                                  period, meter_.clock_);
  for (const auto& call : nvml::gauge_calls()) {
    nvml::GaugeValues values;
    if (call.read(api, gpu.handle, values) != Return::kSuccess) continue;
    std::array<std::optional<SensorId>, 2> sensors;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i]) {
        sensors[i] = add_sensor(domain, SensorKind::kGauge, std::string(call.names[i]), {});
      }
    }
    if (sensors[0] || sensors[1]) state->add(call, sensors);
  }
  if (state->empty()) return;
  meter_.paces_.push_back(
      [probe = state.get()](const Demand& demand) { probe->set_period(state_period(demand)); });
  add_probe(gpu.device() + " state", period, std::move(state));
}

void NvmlMeterBuilder::add_processes(const Gpu& gpu, DomainId domain) {
  std::optional<SensorId> count;
  if (nvml::lists_processes(meter_.api_, gpu.handle)) {
    count = add_sensor(domain, SensorKind::kGauge, std::string(model::gauge::kProcessCount), {});
  }
  meter_.processes_.push_back({{meter_.api_, gpu.handle, domain, meter_.clock_.now().real}, count});
}

}  // namespace jouleprof::meters
