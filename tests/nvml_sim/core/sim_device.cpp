#include "nvml_sim/core/sim_device.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace jouleprof::nvml_sim {
namespace {

// At the limit, speed = ((limit - idle) / (demand - idle)) ^ exponent, at least the minimum.
constexpr double kSpeedExponent = 1.0 / 3;
constexpr double kMinimumSpeed = 0.2;
// The memory's part of the GPU's power: at rest, and of what the GPU has above idle.
constexpr double kMemoryIdleWatts = 0.45 * 70;
constexpr double kMemoryShare = 0.1;
constexpr double kInitialJoules = 100'000;   // of the counter, unless the driver was loaded again
constexpr double kTemperatureResponse = 10;  // seconds: the power counts as its mean

// The sum of the parts; without a part, constant.
Curve make_curve(const std::vector<PowerPart>& parts, double without, std::int64_t epoch_ns) {
  if (parts.empty()) return constant(without);
  std::vector<Curve> curves;
  for (const PowerPart& part : parts) curves.push_back(part(epoch_ns));
  return sum(std::move(curves));
}

std::vector<std::shared_ptr<const TreeSampler>> samplers_of(const DeviceSpec& spec,
                                                            std::int64_t epoch_ns) {
  std::vector<std::shared_ptr<const TreeSampler>> all;
  for (const ProcessSpec& process : spec.processes) {
    all.push_back(process.pid ? nullptr
                              : std::make_shared<TreeSampler>(process.environment,
                                                              process.sample_period, epoch_ns));
  }
  return all;
}

// Without held_watts processes hold no context that would count.
std::shared_ptr<const Contexts> contexts_of(
    const DeviceSpec& spec, const std::vector<std::shared_ptr<const TreeSampler>>& samplers) {
  std::vector<ContextHolder> holders;
  for (std::size_t i = 0; spec.held_watts && i < spec.processes.size(); ++i) {
    holders.push_back({spec.processes[i].begin, spec.processes[i].end, samplers[i]});
  }
  const ContextPower power{spec.held() - spec.idle_watts,
                           spec.after_context_watts - spec.idle_watts, spec.after_context_decay};
  return std::make_shared<const Contexts>(std::move(holders), power);
}

// Without contexts, `power` itself, so that its figures stay the same to the last bit.
Curve with_contexts(Curve power, const Curve& contexts) {
  if (contexts.highest <= 0) return power;
  return sum({std::move(power), contexts});
}

double enforced(const LimitSpec& limit, double requested) {
  return std::min(requested, limit.other_limit_watts.value_or(requested));
}

}  // namespace

SimDevice::SimDevice(DeviceSpec spec, unsigned index, const Faults& faults, std::int64_t epoch_ns)
    : spec_(std::move(spec)),
      index_(index),
      faults_(faults),
      process_samplers_(samplers_of(spec_, epoch_ns)),
      contexts_(contexts_of(spec_, process_samplers_)),
      context_power_(curve_of(contexts_)),
      power_(with_contexts(make_curve(spec_.power, spec_.idle_watts, epoch_ns), context_power_),
             enforced(spec_.limit, spec_.limit.default_watts), spec_.idle_watts),
      module_extra_(make_curve(spec_.module_power, 0, epoch_ns)),
      requested_watts_(spec_.limit.default_watts) {}

bool SimDevice::at_rest(double t) const {
  constexpr double kRounding = 1e-6;  // watts
  if (contexts_->exist(t)) return false;
  const double of_contexts = context_power_.watts(t);
  return power_.watts(t) - of_contexts <= spec_.idle_watts + (of_contexts > 0 ? kRounding : 0);
}

double SimDevice::joules(Scope scope, double begin, double end) const {
  const double gpu = power_.joules(begin, end);
  switch (scope) {
    case Scope::kGpu:
      break;
    case Scope::kModule:
      return gpu + module_extra_.joules(begin, end);
    case Scope::kMemory:
      return kMemoryIdleWatts * (end - begin) +
             kMemoryShare * (gpu - spec_.idle_watts * (end - begin));
  }
  return gpu;
}

double SimDevice::requested_limit() const {
  const std::lock_guard lock(requested_mutex_);
  return requested_watts_;
}

void SimDevice::set_limit(double t, double watts) {
  const std::lock_guard lock(requested_mutex_);
  requested_watts_ = watts;
  power_.set_limit(t, enforced(spec_.limit, watts));
}

void SimDevice::lock_clock(double t, std::optional<double> mhz) {
  const std::lock_guard lock(requested_mutex_);
  sm_ratio_ = mhz ? std::min(1.0, *mhz / spec_.clocks.sm_max_mhz) : 1;
  apply_clocks(t);
}

void SimDevice::lock_memory_clock(double t, std::optional<double> mhz) {
  const std::lock_guard lock(requested_mutex_);
  memory_ratio_ = mhz ? std::min(1.0, *mhz / spec_.clocks.memory_mhz) : 1;
  apply_clocks(t);
}

void SimDevice::apply_clocks(double t) {
  constexpr double kLeastShare = 1e-9;  // also for an exponent of 0
  const double speed = sm_ratio_ * memory_ratio_;
  power_.set_share(t, std::max(kLeastShare, std::pow(speed, 1 / kSpeedExponent)));
}

unsigned SimDevice::memory_clock_mhz() const {
  const std::lock_guard lock(requested_mutex_);
  return static_cast<unsigned>(std::lround(memory_ratio_ * spec_.clocks.memory_mhz));
}

double SimDevice::speed(double t) const {
  const double share = power_.share(t);
  const double locked = share == 1 ? 1 : std::pow(share, kSpeedExponent);
  const double without_work = spec_.idle_watts + context_power_.watts(t);
  const double demand = power_.demand(t) - without_work;
  const double allowed = power_.limit(t) - without_work;
  if (demand <= allowed || demand <= 0) return locked;
  const double speed = locked * std::pow(std::max(0.0, allowed / demand), kSpeedExponent);
  return std::clamp(speed, std::min(locked, kMinimumSpeed), locked);
}

bool SimDevice::is_hot(double t) const {
  const auto& at = spec_.temperature.slowdown_celsius;
  return at && temperature_celsius(t) >= *at;
}

bool SimDevice::has_scope(Scope scope) const {
  if (scope == Scope::kModule) return spec_.board->is_superchip;
  return scope == Scope::kMemory ? spec_.board->has_memory : spec_.gpu_scope;
}

EnergyBetween SimDevice::energy_of(Scope scope) const {
  return [this, scope](double begin, double end) { return joules(scope, begin, end); };
}

std::vector<RingSample> SimDevice::ring(Scope scope, double t) const {
  return ring_at(spec_.board->ring, energy_of(scope), t,
                 faults_.last_reload(index_, t).value_or(-kForever));
}

std::optional<std::uint64_t> SimDevice::counter_mj(double t) const {
  if (!spec_.board->has_counter) return std::nullopt;
  const auto origin = faults_.last_reload(index_, t);
  const std::uint64_t stream =
      (std::uint64_t{index_} << 16U) | 0x100U | static_cast<std::uint64_t>(own_scope());
  return counter_at(spec_.board->ring.rise, energy_of(own_scope()), stream, t, origin.value_or(0),
                    origin ? 0 : kInitialJoules);
}

PolledValue SimDevice::instant(Scope scope, double t) const {
  return polled_at(spec_.board->instant, energy_of(scope), t);
}

std::optional<PolledValue> SimDevice::average(Scope scope, double t) const {
  if (!spec_.board->has_average) return std::nullopt;
  return polled_at({0.1, 1}, energy_of(scope), t);
}

double SimDevice::utilisation(double t) const {
  const double mean = power_.joules(t - 1, t) - context_power_.joules(t - 1, t);  // of one second
  return std::clamp((mean - spec_.idle_watts) / (spec_.limit.default_watts - spec_.held()), 0.0,
                    1.0);
}

unsigned SimDevice::sm_clock_mhz(double t) const {
  const auto& clocks = spec_.clocks;
  if (at_rest(t)) return clocks.sm_idle_mhz;
  const double ratio = speed(t) * clocks.memory_mhz / std::max(1U, memory_clock_mhz());
  if (ratio >= 1) return clocks.sm_max_mhz;
  constexpr double kStepMhz = 15;
  const double steps = std::floor(clocks.sm_max_mhz * ratio / kStepMhz);
  return std::max(clocks.sm_idle_mhz, static_cast<unsigned>(steps * kStepMhz));
}

double SimDevice::temperature_celsius(double t) const {
  const auto& thermal = spec_.temperature;
  const double mean = power_.joules(t - kTemperatureResponse, t) / kTemperatureResponse;
  return thermal.ambient_celsius + thermal.celsius_per_watt * mean;
}

std::vector<ProcessUse> SimDevice::processes(double t) const {
  std::vector<ProcessUse> uses;
  for (std::size_t i = 0; i < spec_.processes.size(); ++i) {
    const ProcessSpec& process = spec_.processes[i];
    if (t < process.begin || t >= process.end) continue;
    const auto add = [&](pid_t pid, double use) {
      uses.push_back({pid, use, process.memory_bytes, process.mig});
    };
    if (process.pid) {
      add(*process.pid == 0 ? getpid() : *process.pid, process.utilisation);
      continue;
    }
    const auto members = process_samplers_[i]->members();
    for (const pid_t pid : members) {
      add(pid, process.utilisation / static_cast<double>(members.size()));
    }
  }
  return uses;
}

double SimDevice::busy_seconds(unsigned mig, double t) const {
  double sum = 0;
  const auto places = std::max<std::size_t>(spec_.mig.size(), 1);
  for (std::size_t i = 0; i < spec_.processes.size(); ++i) {
    const ProcessSpec& process = spec_.processes[i];
    if (process.mig % places != mig) continue;
    if (process.pid) {
      const double from = std::max(process.begin, 0.0);
      sum += process.utilisation * std::max(std::min(process.end, t) - from, 0.0);
      continue;
    }
    const bool exists =
        t >= process.begin && t < process.end && !process_samplers_[i]->members().empty();
    const double use = exists ? process.utilisation : 0;
    const std::lock_guard lock(tree_use_mutex_);
    const auto [at, is_first] = tree_use_.try_emplace(i, TreeUse{t, use, 0});
    TreeUse& tree = at->second;
    if (!is_first && t > tree.at) {
      tree.busy_seconds += (tree.use + use) / 2 * (t - tree.at);
      tree = {t, use, tree.busy_seconds};
    }
    sum += tree.busy_seconds;
  }
  return sum;
}

}  // namespace jouleprof::nvml_sim
