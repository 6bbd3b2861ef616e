// The setup of NvmlMeter: finds the sensors of each GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/device_sensors.h"
#include "meters/nvml/nvml_meter.h"
#include "meters/nvml/probes/probes.h"
#include "model/device/sensor.h"

namespace jouleprof::meters {

using namespace std::chrono_literals;
using abi::Return;
using model::DomainId;
using model::DomainKind;
using model::SensorId;
using model::SensorKind;
using nvml::Gpu;
using nvml::GpuTraits;

class NvmlMeterBuilder {
 public:
  NvmlMeterBuilder(NvmlMeter& meter, const NvmlOptions& options)
      : meter_(meter), options_(options) {}

  // Probes one GPU; appends its domains, sensors, probes and what is missing.
  void add(const nvml::Gpu& gpu);

 private:
  // The powers of one GPU that are polled: often, with its state, and each second.
  struct Polls {
    nvml::FieldPoll often;
    nvml::FieldPoll with_state;
    nvml::FieldPoll each_second;  // of its memory, which has no other sensor
    Duration period{};            // of `often`
  };

  void add_parts(const nvml::Gpu& gpu);
  bool counter_works(const nvml::Gpu& gpu);
  model::DomainId add_domain(const nvml::Gpu& gpu, model::DomainKind kind,
                             std::optional<model::DomainId> parent);
  // The domain of each GPU instance.
  using Instances = std::map<unsigned, model::DomainId>;
  Instances add_mig_domains(const nvml::Gpu& gpu, model::DomainId parent);
  // `samples`: the ring that samples the power of the same domain, if there is one.
  void add_counter(const nvml::Gpu& gpu, model::DomainId domain, const nvml::GpuTraits& traits,
                   abi::SamplingType samples);
  bool has_samples_of_module(const nvml::Gpu& gpu, const nvml::PowerScopes& scopes) const;
  bool add_ring(const nvml::Gpu& gpu, model::DomainId domain, const nvml::GpuTraits& traits,
                abi::SamplingType type);
  void add_powers(const nvml::Gpu& gpu, model::DomainId domain, const nvml::ScopePowers& powers,
                  const nvml::GpuTraits& traits, bool often, Polls& polls);
  void add_poll_probe(const nvml::Gpu& gpu, Polls& polls);
  void add_processes(const nvml::Gpu& gpu, model::DomainId domain, Instances instances);
  void add_state_probe(const nvml::Gpu& gpu, model::DomainId domain, Polls& polls);

  nvml::GpuTraits traits_of(const nvml::Gpu& gpu, bool module) const;
  model::SensorId add_sensor(model::DomainId domain, model::SensorKind kind, std::string name,
                             const model::SensorTraits& traits);
  void add_probe(std::string name, Duration period, std::unique_ptr<nvml::ProbeReader> reader);
  void add_missing(const nvml::Gpu& gpu, std::string_view what, Error error, std::string fix);
  // CPU time of one call: the lesser of two.
  Duration cost_of(const std::function<void()>& call) const;

  NvmlMeter& meter_;
  const NvmlOptions& options_;
  int counters_ = 0;  // added so far: they alternate in reading densely
};

void NvmlMeter::find_sensors(const NvmlOptions& options) {
  NvmlMeterBuilder builder(*this, options);
  for (const auto& gpu : gpus_) builder.add(gpu);
}

void NvmlMeterBuilder::add(const Gpu& gpu) {
  const std::size_t sensors_before = meter_.sensors_.size();
  const std::size_t probes_before = meter_.probes_.size();
  add_parts(gpu);
  // All sensors of a device are read, or none.
  for (std::size_t p = probes_before; p < meter_.probes_.size(); ++p) {
    for (std::size_t s = sensors_before; s < meter_.sensors_.size(); ++s) {
      meter_.probes_[p].sensors.push_back(meter_.sensors_[s].id);
    }
  }
}

void NvmlMeterBuilder::add_parts(const Gpu& gpu) {
  if (gpu.error) {
    const DomainId id = add_domain(gpu, DomainKind::kGpu, std::nullopt);
    meter_.domains_[static_cast<std::size_t>(id)].unavailable_reason = gpu.error->message;
    add_missing(gpu, "", *gpu.error, gpu.fix);
    return;
  }
  const auto& api = meter_.api_;
  const auto scopes = nvml::find_powers(api, gpu.handle, gpu.generation);
  const bool module = scopes.module.any();
  Polls polls{{api, gpu.handle, meter_.clock_},
              {api, gpu.handle, meter_.clock_},
              {api, gpu.handle, meter_.clock_},
              {}};

  // On a superchip the counter covers the module.
  std::optional<DomainId> root;
  if (module) {
    root = add_domain(gpu, DomainKind::kModule, std::nullopt);
    const GpuTraits traits = traits_of(gpu, true);
    if (counter_works(gpu)) {
      add_counter(gpu, *root, traits, abi::SamplingType::kModulePower);
    }
    const bool ring = add_ring(gpu, *root, traits, abi::SamplingType::kModulePower);
    add_powers(gpu, *root, scopes.module, traits, !ring, polls);
  }
  if (!module || scopes.gpu.any()) {
    const DomainId id = add_domain(gpu, DomainKind::kGpu, root);
    const auto levels = options_.levels.find(gpu.uuid);
    if (levels != options_.levels.end()) {
      meter_.domains_[static_cast<std::size_t>(id)].known_levels = levels->second;
    }
    const GpuTraits traits = traits_of(gpu, false);
    const std::size_t sensors_before = meter_.sensors_.size();
    if (!module && counter_works(gpu)) {
      add_counter(gpu, id, traits, abi::SamplingType::kTotalPower);
    }
    const bool ring = !has_samples_of_module(gpu, scopes) &&
                      add_ring(gpu, id, traits, abi::SamplingType::kTotalPower);
    add_powers(gpu, id, scopes.gpu, traits, !ring, polls);
    if (meter_.sensors_.size() == sensors_before) {
      meter_.domains_[static_cast<std::size_t>(id)].unavailable_reason =
          "the driver reports neither energy nor power for this device";
    }
    root = id;
  }
  if (!scopes.gpu.instant && !module) {
    add_missing(gpu, "instant power",
                nvml::nvml_error(api, nvml::name_of({abi::kFieldPowerInstant, abi::kScopeGpu}),
                                 scopes.instant_code),
                nvml::fix_for(scopes.instant_code));
  }
  if (scopes.memory.any()) {
    const DomainId id = add_domain(gpu, DomainKind::kGpuMemory, root);
    add_powers(gpu, id, scopes.memory, traits_of(gpu, false), !scopes.memory.average, polls);
  } else {
    add_missing(gpu, "memory power",
                {Errc::kUnsupported, "the driver does not report the memory's share of the power"},
                "");
  }
  auto instances = add_mig_domains(gpu, *root);
  add_poll_probe(gpu, polls);
  add_state_probe(gpu, *root, polls);
  add_processes(gpu, *root, std::move(instances));
}

// The samples have no scope: on a superchip they are of the module where they are nearer to its
// power.
bool NvmlMeterBuilder::has_samples_of_module(const Gpu& gpu,
                                             const nvml::PowerScopes& scopes) const {
  const auto field = [](const nvml::ScopePowers& p) { return p.instant ? p.instant : p.average; };
  const auto of_gpu = field(scopes.gpu), of_module = field(scopes.module);
  nvml::RingContent ring;
  if (!of_gpu || !of_module ||
      nvml::read_ring(meter_.api_, gpu.handle, abi::SamplingType::kTotalPower, ring) !=
          abi::Return::kSuccess) {
    return false;
  }
  const auto newest = std::ranges::max_element(
      ring.samples, [](const auto& a, const auto& b) { return a.timestamp < b.timestamp; });
  if (newest == ring.samples.end()) return false;
  const auto sample = nvml::number(ring.value_type, newest->value);
  const auto answers = nvml::read_fields(meter_.api_, gpu.handle, {*of_gpu, *of_module});
  if (!sample || !answers[0].value || !answers[1].value) return false;
  return std::abs(*sample - *answers[1].value) < std::abs(*sample - *answers[0].value);
}

DomainId NvmlMeterBuilder::add_domain(const Gpu& gpu, DomainKind kind,
                                      std::optional<DomainId> parent) {
  model::Domain& domain = meter_.add_domain(kind, gpu.device(), gpu.name);
  domain.uuid = gpu.uuid;
  domain.parent = parent;
  return domain.id;
}

NvmlMeterBuilder::Instances NvmlMeterBuilder::add_mig_domains(const Gpu& gpu, DomainId parent) {
  Instances instances;
  for (const auto& mig : gpu.mig_devices) {
    const DomainId id = add_domain(gpu, DomainKind::kGpu, parent);
    auto& domain = meter_.domains_[static_cast<std::size_t>(id)];
    domain.device = fmt::format("{}:mig{}", gpu.device(), mig.index);
    domain.name = mig.name;
    domain.uuid = mig.uuid;
    domain.unavailable_reason =
        "the GPU is in MIG mode, and its power can only be measured as a whole";
    // Several MIG devices may be in one GPU instance.
    if (!mig.gpu_instance || !instances.try_emplace(*mig.gpu_instance, id).second) continue;
    const auto code = meter_.activity_.add(gpu.handle, *mig.gpu_instance);
    if (code == abi::Return::kSuccess) {
      meter_.activity_.report_as(
          add_sensor(id, SensorKind::kGauge, std::string(model::gauge::kSmActivity), {}));
    } else {
      add_missing(gpu, fmt::format("activity of mig{}", mig.index),
                  nvml::nvml_error(meter_.api_, "nvmlGpmMigSampleGet", code), nvml::fix_for(code));
    }
  }
  return instances;
}

GpuTraits NvmlMeterBuilder::traits_of(const Gpu& gpu, bool module) const {
  GpuTraits known = nvml::default_traits(gpu.generation, module);
  known.set_scale(model::scale_of_gpu(gpu.name));
  const auto calibrated = options_.calibrations.find(gpu.uuid);
  if (calibrated == options_.calibrations.end()) return known;
  return nvml::overlay(known, calibrated->second);
}

SensorId NvmlMeterBuilder::add_sensor(DomainId domain, SensorKind kind, std::string name,
                                      const model::SensorTraits& traits) {
  model::Sensor& sensor = meter_.add_sensor(domain, kind, std::move(name));
  sensor.provenance =
      meter_.api_.simulated ? model::Provenance::kSimulated : model::Provenance::kMeasured;
  sensor.traits = traits;
  return sensor.id;
}

void NvmlMeterBuilder::add_probe(std::string name, Duration period,
                                 std::unique_ptr<nvml::ProbeReader> reader) {
  meter_.probes_.push_back({std::move(name), period});
  meter_.readers_.push_back(std::move(reader));
}

void NvmlMeterBuilder::add_missing(const Gpu& gpu, std::string_view what, Error error,
                                   std::string fix) {
  std::string name = gpu.device();
  if (!what.empty()) name += fmt::format(" {}", what);
  meter_.missing_.push_back({std::move(name), std::move(error), std::move(fix)});
}

Duration NvmlMeterBuilder::cost_of(const std::function<void()>& call) const {
  auto least = Duration::max();
  for (int i = 0; i < 2; ++i) {
    const Duration begin = meter_.clock_.thread_cpu_time();
    call();
    least = std::min(least, meter_.clock_.thread_cpu_time() - begin);
  }
  return least;
}

// --- The sensors and probes that NvmlMeterBuilder adds for one GPU ---

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

// Within short windows, and from kernel to kernel, a power limit changes the clocks.
nvml::StateProbe::Pace state_pace(const Demand& demand) {
  const Duration all = state_period(demand);
  return {all, demand.shortest_window < kLongWindow ? std::min(all, kFastestState) : all};
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
  const auto pace = state_pace(options_.demand);
  auto state = std::make_unique<nvml::StateProbe>(api, gpu.handle, std::move(polls.with_state),
                                                  pace, meter_.clock_);
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
      [probe = state.get()](const Demand& demand) { probe->set_pace(state_pace(demand)); });
  add_probe(gpu.device() + " state", pace.sm_clock, std::move(state));
}

void NvmlMeterBuilder::add_processes(const Gpu& gpu, DomainId domain, Instances instances) {
  std::optional<SensorId> count;
  if (nvml::lists_processes(meter_.api_, gpu.handle)) {
    count = add_sensor(domain, SensorKind::kGauge, std::string(model::gauge::kProcessCount), {});
  }
  const RealTime now = meter_.clock_.now().real;
  meter_.processes_.push_back(
      {{meter_.api_, gpu.handle, domain, now, std::move(instances)}, count});
}

}  // namespace jouleprof::meters
