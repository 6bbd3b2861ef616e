#include "meters/nvml/nvml_meter_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "meters/nvml/api/nvml_error.h"

namespace jouleprof::meters {

using model::DomainId;
using model::DomainKind;
using model::SensorId;
using model::SensorKind;
using nvml::Gpu;
using nvml::GpuTraits;

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
    const bool ring = add_ring(gpu, id, traits, abi::SamplingType::kTotalPower);
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
  add_mig_domains(gpu, *root);
  add_poll_probe(gpu, polls);
  add_state_probe(gpu, *root, polls);
  add_processes(gpu, *root);
}

DomainId NvmlMeterBuilder::add_domain(const Gpu& gpu, DomainKind kind,
                                      std::optional<DomainId> parent) {
  model::Domain domain;
  domain.id = DomainId(static_cast<std::uint32_t>(meter_.domains_.size()));
  domain.kind = kind;
  domain.device = gpu.device();
  domain.name = gpu.name;
  domain.uuid = gpu.uuid;
  domain.parent = parent;
  meter_.domains_.push_back(domain);
  return domain.id;
}

void NvmlMeterBuilder::add_mig_domains(const Gpu& gpu, DomainId parent) {
  for (const auto& mig : gpu.mig_devices) {
    const DomainId id = add_domain(gpu, DomainKind::kGpu, parent);
    auto& domain = meter_.domains_[static_cast<std::size_t>(id)];
    domain.device = fmt::format("{}:mig{}", gpu.device(), mig.index);
    domain.name = mig.name;
    domain.uuid = mig.uuid;
    domain.unavailable_reason =
        "the GPU is in MIG mode, and its power can only be measured as a whole";
  }
}

GpuTraits NvmlMeterBuilder::traits_of(const Gpu& gpu, bool module) const {
  const GpuTraits known = nvml::default_traits(gpu.generation, module);
  const auto calibrated = options_.calibrations.find(gpu.uuid);
  if (calibrated == options_.calibrations.end()) return known;
  return nvml::overlay(known, calibrated->second);
}

SensorId NvmlMeterBuilder::add_sensor(DomainId domain, SensorKind kind, std::string name,
                                      const model::SensorTraits& traits) {
  model::Sensor sensor;
  sensor.id = SensorId(static_cast<std::uint32_t>(meter_.sensors_.size()));
  sensor.domain = domain;
  sensor.kind = kind;
  sensor.name = std::move(name);
  sensor.provenance =
      meter_.api_.simulated ? model::Provenance::kSimulated : model::Provenance::kMeasured;
  sensor.traits = traits;
  meter_.sensors_.push_back(std::move(sensor));
  return meter_.sensors_.back().id;
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

}  // namespace jouleprof::meters
