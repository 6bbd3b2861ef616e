#include "apps/nvml_sim/core/sim_device.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace jouleprof::nvml_sim {
namespace {

// One sampler for all that watch one tree in one way.
std::shared_ptr<TreeSampler> sampler_for(const TreeTarget& target, double cpus, double sample,
                                         std::int64_t epoch_ns, Samplers& samplers) {
  for (const auto& sampler : samplers) {
    if (sampler->target() == target && sampler->cpus() == cpus) return sampler;
  }
  return samplers.emplace_back(std::make_shared<TreeSampler>(target, cpus, sample, epoch_ns));
}

// A phase that counts from 1970 as one that counts from the start.
double phase_of(const PowerPart& part, std::int64_t epoch_ns) {
  if (!part.wall_clock) return part.phase;
  // long double: a double of the seconds since 1970 resolves 0.2 us only.
  const auto since_period =
      std::fmod(static_cast<long double>(epoch_ns) * 1e-9L, static_cast<long double>(part.period));
  return part.phase - static_cast<double>(since_period);
}

CurvePtr make_part(const PowerPart& part, std::int64_t epoch_ns, Samplers& samplers) {
  switch (part.shape) {
    case Shape::kConstant:
      return constant(part.watts);
    case Shape::kSquare:
      return square(part.low, part.high, part.period, part.duty, phase_of(part, epoch_ns));
    case Shape::kRamp:
      return piecewise(
          {{part.ramp_begin, part.low}, {part.ramp_begin + part.ramp_duration, part.high}}, false);
    case Shape::kSine:
      return sine(part.mean, part.amplitude, part.period, phase_of(part, epoch_ns));
    case Shape::kTrace:
      return piecewise(part.trace, part.repeat);
    case Shape::kFollow:
      return follow(sampler_for(part.tree, part.cpus, part.sample, epoch_ns, samplers), part.low,
                    part.high);
  }
  return constant(0);
}

}  // namespace

CurvePtr make_curve(const std::vector<PowerPart>& parts, double otherwise, std::int64_t epoch_ns,
                    Samplers& samplers) {
  if (parts.empty()) return constant(otherwise);
  std::vector<CurvePtr> curves;
  for (const PowerPart& part : parts) {
    CurvePtr curve = make_part(part, epoch_ns, samplers);
    const bool always = part.begin == -kForever && part.end == kForever;
    curves.push_back(always ? curve : between(std::move(curve), part.begin, part.end));
  }
  return sum(std::move(curves));
}

SimDevice::SimDevice(DeviceSpec spec, unsigned index, std::uint64_t seed, std::int64_t epoch_ns,
                     const Faults& faults, Samplers& samplers)
    : spec_(std::move(spec)),
      index_(index),
      seed_(seed),
      faults_(faults),
      power_(make_curve(spec_.power, spec_.idle_watts, epoch_ns, samplers),
             spec_.limit.default_watts),
      module_extra_(make_curve(spec_.module_power, 0, epoch_ns, samplers)) {
  for (const ProcessSpec& process : spec_.processes) {
    process_samplers_.push_back(
        process.tree ? sampler_for(*process.tree, process.cpus, process.sample, epoch_ns, samplers)
                     : nullptr);
  }
}

double SimDevice::joules(Scope scope, double begin, double end) const {
  const double gpu = power_.joules(begin, end);
  switch (scope) {
    case Scope::kGpu:
      break;
    case Scope::kModule:
      return gpu + module_extra_->joules(begin, end);
    case Scope::kMemory:
      return spec_.memory_idle_watts * (end - begin) +
             spec_.memory_share * (gpu - spec_.idle_watts * (end - begin));
  }
  return gpu;
}

double SimDevice::speed(double t) const {
  const double demand = power_.demand(t) - spec_.idle_watts;
  const double allowed = power_.limit(t) - spec_.idle_watts;
  if (demand <= allowed || demand <= 0) return 1;
  const double speed = std::pow(std::max(0.0, allowed / demand), spec_.limit.speed_exponent);
  return std::clamp(speed, spec_.limit.minimum_speed, 1.0);
}

bool SimDevice::has_scope(Scope scope) const {
  switch (scope) {
    case Scope::kGpu:
      return spec_.sensors.gpu_scope;
    case Scope::kModule:
      return spec_.sensors.module_scope;
    case Scope::kMemory:
      return spec_.sensors.memory_scope;
  }
  return false;
}

EnergyBetween SimDevice::energy_of(Scope scope) const {
  return [this, scope](double begin, double end) { return joules(scope, begin, end); };
}

Noise SimDevice::noise(std::uint64_t sensor, Scope scope) const {
  return {seed_,
          (std::uint64_t{index_} << 16U) | (sensor << 8U) | static_cast<std::uint64_t>(scope)};
}

std::optional<std::vector<RingSample>> SimDevice::ring(Scope scope, double t) const {
  if (!spec_.sensors.ring) return std::nullopt;
  const double shown = faults_.sensor_time(SensorName::kRing, index_, t);
  return ring_at(*spec_.sensors.ring, energy_of(scope),
                 noise(static_cast<std::uint64_t>(SensorName::kRing), scope), shown,
                 faults_.last_reload(index_, t).value_or(-kForever));
}

std::optional<std::uint64_t> SimDevice::counter_mj(double t) const {
  if (!spec_.sensors.counter) return std::nullopt;
  const CounterSpec& counter = *spec_.sensors.counter;
  const double shown = faults_.sensor_time(SensorName::kCounter, index_, t);
  const auto origin = faults_.counter_origin(index_, shown);
  return counter_at(counter, energy_of(own_scope()),
                    noise(static_cast<std::uint64_t>(SensorName::kCounter), own_scope()), shown,
                    origin.value_or(0), origin ? 0 : counter.initial_joules);
}

std::optional<PolledValue> SimDevice::polled(const std::optional<PolledSpec>& spec, SensorName name,
                                             Scope scope, double t) const {
  if (!spec) return std::nullopt;
  const double shown = faults_.sensor_time(name, index_, t);
  return polled_at(*spec, energy_of(scope), noise(static_cast<std::uint64_t>(name), scope), shown);
}

std::optional<PolledValue> SimDevice::instant(Scope scope, double t) const {
  return polled(spec_.sensors.instant, SensorName::kInstant, scope, t);
}

std::optional<PolledValue> SimDevice::average(Scope scope, double t) const {
  return polled(spec_.sensors.average, SensorName::kAverage, scope, t);
}

std::optional<PolledValue> SimDevice::power_usage(double t) const {
  return spec_.sensors.power_usage_is_average ? average(own_scope(), t) : instant(own_scope(), t);
}

double SimDevice::utilisation(double t) const {
  const double mean = power_.joules(t - 1, t);  // over one second
  return std::clamp((mean - spec_.idle_watts) / (spec_.full() - spec_.idle_watts), 0.0, 1.0);
}

unsigned SimDevice::sm_clock_mhz(double t) const {
  const auto& clocks = spec_.clocks;
  if (power_.watts(t) <= spec_.idle_watts) return clocks.sm_idle_mhz;
  const double ratio = speed(t);
  if (ratio >= 1) return clocks.sm_max_mhz;
  const double mhz = clocks.sm_max_mhz * ratio;
  // Clocks move in steps of 15 MHz.
  return std::max(clocks.sm_idle_mhz, static_cast<unsigned>(std::floor(mhz / 15)) * 15);
}

double SimDevice::temperature_celsius(double t) const {
  const auto& thermal = spec_.temperature;
  const double mean = power_.joules(t - thermal.response, t) / thermal.response;
  return thermal.ambient_celsius + thermal.celsius_per_watt * mean;
}

std::vector<ProcessUse> SimDevice::processes() const {
  std::vector<ProcessUse> uses;
  for (std::size_t i = 0; i < spec_.processes.size(); ++i) {
    const ProcessSpec& process = spec_.processes[i];
    if (process.pid) {
      uses.push_back({*process.pid == 0 ? getpid() : *process.pid, process.utilisation.value_or(0),
                      process.memory_bytes, process.graphics});
      continue;
    }
    const auto members = process_samplers_[i]->members();
    for (const auto& member : members) {
      const double use = process.utilisation
                             ? *process.utilisation / static_cast<double>(members.size())
                             : member.use;
      uses.push_back({member.pid, use, process.memory_bytes, process.graphics});
    }
  }
  return uses;
}

}  // namespace jouleprof::nvml_sim
