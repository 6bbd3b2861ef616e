#include "meters/nvml/device_sensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "meters/nvml/api/nvml_api.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {

using abi::Device;
using abi::Return;

namespace {

using abi::Return;

constexpr Duration kTogether = std::chrono::milliseconds{5};  // reads that share a wake-up

std::optional<double> scaled(unsigned long long value, double factor) {
  if (is_sentinel(value)) return std::nullopt;
  return static_cast<double>(value) * factor;
}

// Percent as the driver gives it; more than 100 is no utilisation.
std::optional<double> ratio(unsigned percent) {
  if (percent > 100) return std::nullopt;
  return percent / 100.0;
}

template <abi::ClockType kType>
Return clock(const NvmlApi& api, Device device, GaugeValues& values) {
  if (!api.clock_info) return Return::kFunctionNotFound;
  unsigned mhz = 0;
  const Return code = api.clock_info(device, kType, &mhz);
  values[0] = scaled(mhz, 1e6);
  return code;
}

Return temperature(const NvmlApi& api, Device device, GaugeValues& values) {
  if (api.temperature_v) {
    abi::Temperature t{abi::kTemperatureVersion, abi::TemperatureSensor::kGpu, 0};
    const Return code = api.temperature_v(device, &t);
    if (!is_unsupported(code)) {
      values[0] = static_cast<double>(t.temperature);
      return code;
    }
  }
  if (!api.temperature) return Return::kFunctionNotFound;
  unsigned celsius = 0;
  const Return code = api.temperature(device, abi::TemperatureSensor::kGpu, &celsius);
  values[0] = scaled(celsius, 1);
  return code;
}

// Boards that the machine's fans cool have none of their own.
Return fan_speed(const NvmlApi& api, Device device, GaugeValues& values) {
  if (!api.fan_speed) return Return::kFunctionNotFound;
  unsigned percent = 0;
  const Return code = api.fan_speed(device, &percent);
  values[0] = ratio(percent);
  return code;
}

Return utilisation(const NvmlApi& api, Device device, GaugeValues& values) {
  if (!api.utilisation) return Return::kFunctionNotFound;
  abi::Utilization u{};
  const Return code = api.utilisation(device, &u);
  values = {ratio(u.gpu), ratio(u.memory)};
  return code;
}

// Encoder, decoder, JPEG and optical-flow engines share one form.
template <auto kFunction>
Return engine(const NvmlApi& api, Device device, GaugeValues& values) {
  const auto function = api.*kFunction;
  if (!function) return Return::kFunctionNotFound;
  unsigned percent = 0;
  unsigned period_us = 0;
  const Return code = function(device, &percent, &period_us);
  values[0] = ratio(percent);
  return code;
}

Return memory_used(const NvmlApi& api, Device device, GaugeValues& values) {
  if (api.memory_info_v2) {
    abi::MemoryV2 m{};
    m.version = abi::kMemoryV2Version;
    const Return code = api.memory_info_v2(device, &m);
    if (!is_unsupported(code)) {
      values[0] = scaled(m.used, 1);
      return code;
    }
  }
  if (!api.memory_info) return Return::kFunctionNotFound;
  abi::Memory m{};
  const Return code = api.memory_info(device, &m);
  values[0] = scaled(m.used, 1);
  return code;
}

Return power_limit(const NvmlApi& api, Device device, GaugeValues& values) {
  if (!api.power_limit) return Return::kFunctionNotFound;
  unsigned mw = 0;
  const Return code = api.power_limit(device, &mw);
  values[0] = scaled(mw, 1e-3);
  return code;
}

Return clock_event_reasons(const NvmlApi& api, Device device, GaugeValues& values) {
  if (!api.clock_event_reasons) return Return::kFunctionNotFound;
  unsigned long long reasons = 0;
  const Return code = api.clock_event_reasons(device, &reasons);
  if (!is_sentinel(reasons)) values[0] = clock_reasons(reasons).gauge();
  return code;
}

constexpr Field kInstant{abi::kFieldPowerInstant, abi::kScopeGpu};
constexpr Field kAverage{abi::kFieldPowerAverage, abi::kScopeGpu};
constexpr Field kModuleInstant{abi::kFieldPowerInstant, abi::kScopeModule};
constexpr Field kModuleAverage{abi::kFieldPowerAverage, abi::kScopeModule};
constexpr Field kMemoryInstant{abi::kFieldPowerInstant, abi::kScopeMemory};
constexpr Field kMemoryAverage{abi::kFieldPowerAverage, abi::kScopeMemory};

// The value of a usable answer.
std::optional<double> power(const FieldAnswer& answer) {
  if (answer.code != abi::Return::kSuccess || !answer.value || *answer.value <= 0) {
    return std::nullopt;
  }
  return answer.value;
}

}  // namespace

model::ClockReasons clock_reasons(unsigned long long nvml_reasons) {
  using enum model::ClockReason;
  constexpr std::pair<unsigned long long, model::ClockReason> kReasons[] = {
      {abi::kReasonGpuIdle, kIdle},
      {abi::kReasonApplicationsClocksSetting, kApplicationClocks},
      {abi::kReasonSwPowerCap, kPowerLimit},
      {abi::kReasonHwSlowdown, kHardwareSlowdown},
      {abi::kReasonSyncBoost, kSyncBoost},
      {abi::kReasonSwThermalSlowdown, kThermalLimit},
      {abi::kReasonHwThermalSlowdown, kHardwareThermal},
      {abi::kReasonHwPowerBrakeSlowdown, kPowerBrake},
      {abi::kReasonDisplayClockSetting, kDisplayClocks}};
  model::ClockReasons reasons;
  for (const auto& [bit, reason] : kReasons) {
    if ((nvml_reasons & bit) != 0) reasons.add(reason);
  }
  return reasons;
}

const std::vector<GaugeCall>& gauge_calls() {
  namespace g = model::gauge;
  static const std::vector<GaugeCall> kCalls{
      {"nvmlDeviceGetClockInfo", {g::kSmClock, {}}, clock<abi::ClockType::kSm>},
      {"nvmlDeviceGetClockInfo", {g::kMemoryClock, {}}, clock<abi::ClockType::kMem>},
      {"nvmlDeviceGetTemperature", {g::kTemperature, {}}, temperature},
      {"nvmlDeviceGetFanSpeed", {g::kFanSpeed, {}}, fan_speed},
      {"nvmlDeviceGetUtilizationRates", {g::kGpuUtilisation, g::kMemoryUtilisation}, utilisation},
      {"nvmlDeviceGetEncoderUtilization",
       {g::kEncoderUtilisation, {}},
       engine<&NvmlApi::encoder_utilisation>},
      {"nvmlDeviceGetDecoderUtilization",
       {g::kDecoderUtilisation, {}},
       engine<&NvmlApi::decoder_utilisation>},
      {"nvmlDeviceGetJpgUtilization",
       {g::kJpegUtilisation, {}},
       engine<&NvmlApi::jpeg_utilisation>},
      {"nvmlDeviceGetOfaUtilization", {g::kOfaUtilisation, {}}, engine<&NvmlApi::ofa_utilisation>},
      {"nvmlDeviceGetMemoryInfo", {g::kMemoryUsed, {}}, memory_used},
      {"nvmlDeviceGetEnforcedPowerLimit", {g::kPowerLimit, {}}, power_limit},
      {"nvmlDeviceGetCurrentClocksEventReasons", {g::kClockEventReasons, {}}, clock_event_reasons},
  };
  return kCalls;
}

void StateProbe::add(const GaugeCall& call, std::array<std::optional<model::SensorId>, 2> sensors) {
  items_.push_back({&call, sensors, {}, false});
}

HostTime StateProbe::read(model::Readings& out) {
  const HostTime begin = clock_.now().host;
  const bool is_all = begin + kTogether >= all_ || begin + kTogether < sm_clock_;
  Return code = is_all ? fields_.read(out) : Return::kSuccess;
  for (auto& item : items_) {
    if (is_lost(code)) break;
    const bool is_clock = item.call->names[0] == model::gauge::kSmClock;
    if (is_all || is_clock) code = read(item, out);
  }
  if (is_lost(code)) {
    fail(code, out);
    return begin + kLostRetry;
  }
  std::erase_if(items_, [](const Item& item) { return item.dropped; });
  if (is_all) all_ = begin + pace_.all;
  sm_clock_ = std::min(begin + pace_.sm_clock, all_);
  return sm_clock_;
}

// All sensors, without a call for each: a lost device may take long to answer.
void StateProbe::fail(Return code, model::Readings& out) {
  const HostTime at = clock_.now().host;
  fields_.fail(code, at, out);
  for (auto& item : items_) {
    for (std::size_t i = 0; i < item.sensors.size(); ++i) {
      if (!item.sensors[i]) continue;
      item.states[i].failed(*item.sensors[i], at, nvml_error(api_, item.call->function, code), out);
    }
  }
}

Return StateProbe::read(Item& item, model::Readings& out) {
  GaugeValues values;
  const Return code = item.call->read(api_, device_, values);
  const HostTime at = clock_.now().host;
  if (is_unsupported(code)) {
    item.dropped = true;
    return code;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!item.sensors[i]) continue;
    if (code != Return::kSuccess) {
      item.states[i].failed(*item.sensors[i], at, nvml_error(api_, item.call->function, code), out);
    } else if (!values[i]) {
      item.states[i].failed(
          *item.sensors[i], at,
          {Errc::kUnavailable,
           fmt::format("{}: the driver returned no usable value", item.call->function)},
          out);
    } else {
      item.states[i].succeeded();
      out.gauges.push_back({*item.sensors[i], at, *values[i]});
    }
  }
  return code;
}

PowerScopes find_powers(const NvmlApi& api, abi::Device device, const Generation& generation) {
  const auto answers = read_fields(api, device,
                                   {kInstant,
                                    kAverage,
                                    kModuleInstant,
                                    kModuleAverage,
                                    kMemoryInstant,
                                    kMemoryAverage,
                                    {kPowerUsageCall}});
  const auto instant = power(answers[0]);
  const auto average = power(answers[1]);
  // Is `part` really less than `whole`? True where nothing is known of one of them.
  const auto is_part = [](std::optional<double> part, std::optional<double> whole) {
    return !part || !whole || *part < *whole;
  };
  PowerScopes found;
  if (instant) found.gpu.instant = kInstant;
  if (average) found.gpu.average = kAverage;
  if (const auto p = power(answers[2]); p && is_part(instant, p)) {
    found.module.instant = kModuleInstant;
  }
  if (const auto p = power(answers[3]); p && is_part(average, p)) {
    found.module.average = kModuleAverage;
  }
  if (const auto p = power(answers[4]); p && is_part(p, instant)) {
    found.memory.instant = kMemoryInstant;
  }
  if (const auto p = power(answers[5]); p && is_part(p, average)) {
    found.memory.average = kMemoryAverage;
  }
  // On a superchip the old call may mean either scope, so there it is not used.
  if (power(answers[6]) && !found.module.any()) {
    const bool is_instant = power_usage_is_instant(generation);
    if (is_instant && !instant) found.gpu.instant = Field{kPowerUsageCall};
    if (!is_instant && !average) found.gpu.average = Field{kPowerUsageCall};
  }
  if (!found.gpu.instant) {
    found.instant_code =
        answers[0].code == abi::Return::kSuccess ? abi::Return::kNoData : answers[0].code;
  }
  return found;
}

void InstanceActivity::clear() {
  for (auto& instance : instances_) free(instance);
  instances_.clear();
}

void InstanceActivity::free(Instance& instance) {
  for (abi::GpmSample* sample : {&instance.last, &instance.next}) {
    if (*sample) api_.gpm_free(std::exchange(*sample, nullptr));
  }
}

Return InstanceActivity::add(abi::Device board, unsigned gpu_instance) {
  if (!api_.gpm_alloc || !api_.gpm_free || !api_.gpm_instance_sample || !api_.gpm_metrics) {
    return Return::kFunctionNotFound;
  }
  Instance instance{board, gpu_instance, std::nullopt, nullptr, nullptr, false};
  Return code = api_.gpm_alloc(&instance.last);
  if (code == Return::kSuccess) code = api_.gpm_alloc(&instance.next);
  if (code == Return::kSuccess) {
    code = api_.gpm_instance_sample(board, gpu_instance, instance.last);
  }
  if (code != Return::kSuccess) {
    free(instance);
    return code;
  }
  instances_.push_back(instance);
  return code;
}

// The counters of an instance: how many of its multiprocessors had work, or else whether any had.
std::optional<double> InstanceActivity::mean_of(const Instance& instance) const {
  abi::GpmMetricsGet request{abi::kGpmMetricsGetVersion, 2, instance.last, instance.next, {}};
  request.metrics[0].metric_id = abi::kGpmMetricSmUtil;
  request.metrics[1].metric_id = abi::kGpmMetricGraphicsUtil;
  if (api_.gpm_metrics(&request) != Return::kSuccess) return std::nullopt;
  for (const auto& metric : request.metrics) {
    if (metric.nvml_return != Return::kSuccess || !std::isfinite(metric.value)) continue;
    // The counters' own rounding may pass 100 %; more than that is no activity.
    if (metric.value < 0 || metric.value > 101) return std::nullopt;
    return std::min(metric.value / 100, 1.0);
  }
  return std::nullopt;
}

void InstanceActivity::read(HostTime now, model::Readings& out) {
  for (auto& instance : instances_) {
    if (!instance.sensor) continue;
    if (api_.gpm_instance_sample(instance.board, instance.id, instance.next) != Return::kSuccess) {
      instance.has_last = false;
      continue;
    }
    // The sample of add() is older than the first list of processes.
    if (instance.has_last) {
      if (const auto mean = mean_of(instance)) out.gauges.push_back({*instance.sensor, now, *mean});
    }
    instance.has_last = true;
    std::swap(instance.last, instance.next);
  }
}

}  // namespace jouleprof::meters::nvml
