// Finds the sensors of each GPU and sets up the meter for them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meters/nvml/device_sensors.h"
#include "meters/nvml/nvml_meter.h"
#include "meters/nvml/probes/probes.h"

namespace jouleprof::meters {

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

}  // namespace jouleprof::meters
