// NVIDIA GPUs through the driver's library: their sensors, and the processes that use them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meters/meter.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/device_sensors.h"
#include "meters/nvml/gpu.h"
#include "meters/nvml/probes/probes.h"
#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::meters::nvml {

// Whether the driver lists the processes that compute on this device.
bool lists_processes(const NvmlApi& api, abi::Device device);

// Which processes use a GPU, how much of its memory and of its multiprocessors.
class GpuProcesses {
 public:
  // Utilisation is counted from `since` on. `instances`: the domains of GPU instances, where MIG
  // divides the device.
  GpuProcesses(const NvmlApi& api, abi::Device device, model::DomainId domain, RealTime since,
               std::map<unsigned, model::DomainId> instances = {});

  // Appends the processes that use the device now, by pid. The utilisation of the multiprocessors
  // is a mean over what the driver sampled since a read that listed the process. (H100 and H200,
  // driver 580: one sample, of when it was last busy, so that one that works now and then counts as
  // one that did throughout.) The driver reports only processes that were busy, so one that was
  // listed then and is not reported was at 0. It is
  // absent for processes that are new since then, because their part of the driver's buffer still
  // holds samples of earlier processes; where the driver reports more than 100 %; and in reads that
  // did not ask for it. Asked for at most every 3 s (the driver updates a process's samples up
  // to 1.6 s late, and drops them when it ends); of a process that is alone on the device every 30
  // s. Where MIG divides the device, a process is one of the instance's domain, of several where it
  // has contexts on several, and the driver counts no utilisation. Returns the driver's code; an
  // unsupported code where the device does not list processes.
  abi::Return read(const ClockPoint& now, std::vector<model::GpuProcessUse>& out);

  // How many processes the last read listed. Absent when the driver did not answer for all of them.
  std::optional<std::size_t> listed() const { return listed_; }

 private:
  using Stamp = unsigned long long;  // microseconds of the wall clock
  bool ask_utilisation(const ClockPoint& now);
  std::optional<double> utilisation_of(unsigned pid) const;

  const NvmlApi& api_;
  abi::Device device_;
  model::DomainId domain_;
  std::map<unsigned, model::DomainId> instances_;
  // From here on the driver is asked for samples; set at a read, of that time.
  Stamp since_;
  HostTime since_at_{};
  bool asked_alone_ = false;                // of the process that is alone
  std::map<unsigned, Stamp> listed_since_;  // by pid, of the last read
  std::optional<std::size_t> listed_;
  std::vector<abi::ProcessInfo> infos_;
  std::vector<abi::ProcessUtilizationSample> samples_;
};

}  // namespace jouleprof::meters::nvml

namespace jouleprof::meters {

// --- NVIDIA GPUs through the driver's library ---

struct NvmlOptions {
  std::string library;  // a path or SONAME; empty: libnvidia-ml.so.1
  Demand demand;
  // Indices and UUIDs (their beginnings, and those of MIG instances, do); empty: every GPU.
  std::vector<std::string> devices;
  nvml::Calibrations calibrations;  // overrides the traits known for the generation
  std::map<std::string, model::KnownLevels> levels;  // of boards, by UUID; for their GPU domains
  nvml::NvmlClock clock;                             // for tests
};

// Domains: kGpu "gpu<N>", N being NVML's index; kGpuMemory within it where the driver reports the
// memory's power; kModule where it reports the power of a superchip's module (then the energy
// counter is the module's, and the GPU, where it is reported too, is within it). A GPU in MIG mode
// is measured as a whole; its instances are domains within it ("gpu0:mig1"), with UUIDs and without
// energy.
//
// Only sensors that the device answers are listed, whatever its name. A library that identifies
// itself as a simulator gives provenance `simulated`.
//
// Probes of each device: the energy counter (a read takes 2.6 ms of CPU time: see CounterSchedule;
// in long runs one in 10 s with samples, in 5 s without), the ring of samples (every 0.9 s, or
// sooner for short windows), the instant power where there is no ring (as often as it renews, at
// most 100 Hz, or at Demand::poll_period), and its state (one-second averages and gauges every
// 0.9 s; on an H200 all gauges together take 51 us). Opening takes 10 to 50 ms a device.
class NvmlMeter : public Meter {
 public:
  // Errors: not_found without driver, library or GPU; permission_denied; unavailable when the
  // driver refuses (versions that do not match, GPU lost); invalid_argument for a device that does
  // not exist. Each message says what to do.
  static Result<std::unique_ptr<NvmlMeter>> open(const NvmlOptions& options = {});
  // Opens it on functions given, which take the place of the library's.
  static Result<std::unique_ptr<NvmlMeter>> open(nvml::NvmlApi api, const NvmlOptions& options);
  ~NvmlMeter() override;

  std::string name() const override { return "NVML"; }
  HostTime read(std::size_t index, model::Readings& out) override;
  bool is_waiting(std::size_t index) const override;
  void set_demand(const Demand& demand) override;
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override;

  const std::vector<nvml::Gpu>& gpus() const { return gpus_; }           // those that were selected
  const std::string& driver_version() const { return driver_version_; }  // empty: unknown

 private:
  friend class NvmlMeterBuilder;
  NvmlMeter(nvml::NvmlApi api, const NvmlOptions& options);
  // Adds domains, sensors, probes and what is missing of each GPU.
  void find_sensors(const NvmlOptions& options);

  nvml::NvmlApi api_;
  nvml::NvmlClock clock_;
  std::string driver_version_;
  std::vector<nvml::Gpu> gpus_;
  std::vector<std::unique_ptr<nvml::ProbeReader>> readers_;  // as probes_
  std::vector<std::function<void(const Demand&)>> paces_;    // each sets the period of a reader
  struct ListedProcesses {
    nvml::GpuProcesses of_gpu;
    std::optional<model::SensorId> count;  // of the gauge process_count
  };
  std::vector<ListedProcesses> processes_;  // one a usable GPU
  nvml::InstanceActivity activity_;
};

}  // namespace jouleprof::meters
