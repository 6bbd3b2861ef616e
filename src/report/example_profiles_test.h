// Profiles that the tests render.
#pragma once

#include <string>
#include <utility>

#include "model/profile.h"

namespace jouleprof::report {

inline HostTime at(double s) { return HostTime{duration_of(s)}; }

inline model::Measurement measured(double joules, double error, double repeatability,
                                   std::string sensor, std::string method) {
  return {Energy::joules(joules),       Energy::joules(error), Energy::joules(repeatability),
          model::Provenance::kMeasured, std::move(sensor),     std::move(method)};
}

inline model::DomainProfile domain(unsigned id, model::DomainKind kind, std::string device,
                                   std::string name = "") {
  model::DomainProfile d;
  d.domain.id = model::DomainId{id};
  d.domain.kind = kind;
  d.domain.device = std::move(device);
  d.domain.name = std::move(name);
  return d;
}

// What is left above rest and held.
inline void set_active(model::DomainProfile& d) {
  d.levels.active = d.energy;
  d.levels.active->energy = d.energy->energy - d.levels.rest->energy;
  if (d.levels.held) d.levels.active->energy -= d.levels.held->energy;
}

// Splits a domain's energy: `idle` is set, `others` taken off, the processes' shares taken off and
// the rest left unattributed.
inline void attribute(model::Profile& profile, model::DomainProfile& d, double idle, double others,
                      const std::vector<double>& shares) {
  d.idle_part = Energy::joules(idle);
  d.levels.rest->energy = *d.idle_part;
  set_active(d);
  d.others = Energy::joules(others);
  if (d.levels.held) d.held_unowned = Energy{};
  d.unattributed = d.energy->energy - *d.idle_part - *d.others;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Energy share = Energy::joules(shares[i]);
    profile.processes.at(i).shares.push_back({d.domain.id, share, {}, {}, {}});
    *d.unattributed -= share;
  }
  d.balance.parts = d.energy->energy;
  model::CommandEnergy own;
  own.processes = d.energy->energy - *d.idle_part - *d.others - *d.unattributed;
  if (10 * others <= d.energy->energy.joules()) own.rest = d.idle_part;
  own.undivided = *d.unattributed;
  own.energy = *d.energy;
  own.energy.energy = own.processes + own.rest.value_or(Energy{});
  d.command = own;
}

inline model::ProcessProfile process(unsigned id, pid_t pid, std::string name,
                                     std::string command_line, double cpu_seconds) {
  model::ProcessProfile p;
  p.process.id = model::ProcessId{id};
  p.process.pid = pid;
  p.process.parent_pid = 4000;
  p.process.name = std::move(name);
  p.process.command_line = std::move(command_line);
  p.process.start = at(100);
  p.process.end = at(183.42);
  p.process.in_tree = true;
  p.cpu_time = duration_of(cpu_seconds);
  return p;
}

// 2026-11-20 14:03:11.25 UTC.
inline constexpr RealTime kStart{std::chrono::nanoseconds{1795183391250000000}};

inline model::RunInfo run_info(std::vector<std::string> command, double seconds) {
  model::RunInfo run;
  run.tool_version = "0.1.0";
  run.host = "lab3";
  run.source = "run";
  run.command = std::move(command);
  run.working_directory = "/home/ada/train";
  run.pid = 4711;
  run.exit_status = 0;
  run.work_begin = at(100);
  run.work_end = at(100 + seconds);
  run.complete = true;
  return run;
}

// One GPU, one package with its cores and its memory, everything measured.
inline model::Profile gpu_profile() {
  using enum model::DomainKind;
  model::Profile profile;
  profile.run = run_info({"python", "train.py", "--epochs", "3", "--name", "run 7"}, 83.42);
  profile.begin = at(100);
  profile.end = at(183.42);
  profile.start_time = kStart;

  auto first = process(1, 4711, "python", "/usr/bin/python train.py --epochs 3 --name run 7", 81.2);
  first.peak_pss_bytes = 1'288'490'188;
  first.peak_uss_bytes = 1'200'000'000;
  first.peak_gpu_memory_bytes = 22'548'578'304;
  first.mean_sm_utilisation = 0.874;
  profile.processes.push_back(first);
  for (unsigned i = 2; i <= 8; ++i) {
    auto worker = process(i, static_cast<pid_t>(4710 + i), "pt_data_worker",
                          "/usr/bin/python train.py --epochs 3 --name run 7", 20.0 / i);
    worker.process.own_pid = static_cast<pid_t>(i);
    worker.peak_pss_bytes = 214'748'364;
    worker.peak_uss_bytes = 104'748'364;
    profile.processes.push_back(worker);
  }

  auto gpu = domain(0, kGpu, "gpu0", "NVIDIA H100 80GB HBM3");
  gpu.domain.uuid = "GPU-5e1f2c3a-0000-1111-2222-333344445555";
  gpu.energy = measured(24'871.204518, 1'244.1, 49.7,
                        "nvmlDeviceGetTotalEnergyConsumption + nvmlDeviceGetSamples", "fused");
  gpu.levels.rest = measured(6'673.6, 333.7, 25.0, "nvmlDeviceGetSamples", "samples");
  gpu.levels.held = measured(3'169.96, 158.5, 30.0, "nvmlDeviceGetSamples", "samples");
  gpu.rest_power = model::PowerLevel{Power::watts(80), Power::watts(0.3),
                                     "observed in this recording", true, 31};
  gpu.held_power = model::PowerLevel{Power::watts(118),
                                     Power::watts(0.4),
                                     "observed in this recording while nothing ran",
                                     true,
                                     {}};
  gpu.mean_power = Power::watts(298.14);
  gpu.peak_power = Power::watts(641.9);
  gpu.peak_window = std::chrono::milliseconds(25);
  gpu.balance.counter = Energy::joules(24'871.204518);
  gpu.balance.integral = Energy::joules(24'905.1);
  attribute(profile, gpu, 6'673.6, 0, {18'161.26});

  auto package = domain(1, kCpu, "package-0", "Intel(R) Xeon(R) Platinum 8480+");
  package.energy = measured(11'203.5, 560.2, 11.2, "powercap:intel-rapl:0/energy_uj", "counter");
  package.levels.rest =
      measured(7'340.96, 367.0, 58.0, "powercap:intel-rapl:0/energy_uj", "counter");
  package.mean_power = Power::watts(134.3);
  package.peak_power = Power::watts(212.75);
  package.peak_window = std::chrono::milliseconds(100);
  package.balance.counter = Energy::joules(11'203.5);
  attribute(profile, package, 7'340.96, 212.4,
            {2'604.1, 301.2, 200.8, 150.6, 120.48, 100.4, 86.06, 75.3});

  auto cores = domain(2, kCpuCores, "package-0");
  cores.domain.parent = package.domain.id;
  cores.energy = measured(6'204.1, 310.2, 6.2, "powercap:intel-rapl:0:0/energy_uj", "counter");
  cores.mean_power = Power::watts(74.37);

  auto dram = domain(3, kDram, "dram-0");
  dram.energy = measured(1'412.25, 70.6, 1.4, "powercap:intel-rapl:0:1/energy_uj", "counter");
  dram.levels.rest = measured(834.2, 41.7, 4.0, "powercap:intel-rapl:0:1/energy_uj", "counter");
  dram.mean_power = Power::watts(16.93);
  dram.peak_power = Power::watts(31.05);
  dram.peak_window = std::chrono::milliseconds(100);
  dram.balance.counter = Energy::joules(1'412.25);
  attribute(profile, dram, 834.2, 20.05, {390.0, 45.0, 30.0, 23.0, 18.0, 15.0, 12.0, 11.0});

  profile.domains = {gpu, package, cores, dram};
  profile.findings = {{"waiting", "gpu0",
                       "a context held the GPU for 24.1 s while nothing ran, 29 % of its time",
                       "Use more data-loading workers or larger batches, or release the GPU.",
                       measured(2'843.8, 9.6, 9.6, "", ""), 0.114, false}};
  profile.overhead = model::Overhead{duration_of(0.0612), duration_of(86.5), 14'890'000};
  return profile;
}

// A virtual machine: no sensor at all, the processor estimated.
inline model::Profile vm_profile() {
  using enum model::DomainKind;
  model::Profile profile;
  profile.run = run_info({"make", "-j2"}, 12.5);
  profile.run.exit_status = 2;
  profile.run.host = "vm-17";
  profile.begin = at(100);
  profile.end = at(112.5);
  profile.start_time = kStart;
  profile.processes.push_back(process(1, 311, "make", "make -j2", 0.042));
  profile.processes.push_back(process(2, 312, "cc1plus", "", 11.38));

  auto cpu = domain(0, kCpu, "cpu", "AMD EPYC 9654 96-Core Processor");
  cpu.energy = measured(61.25, 42.9, 3.06, "/proc/stat", "load model");
  cpu.energy->provenance = model::Provenance::kEstimated;
  cpu.levels.rest = measured(25.0, 17.5, 1.25, "/proc/stat", "load model");
  cpu.levels.rest->provenance = model::Provenance::kEstimated;
  cpu.mean_power = Power::watts(4.9);
  cpu.peak_power = Power::watts(8.125);
  attribute(profile, cpu, 25.0, 3.1, {0.12, 32.0});

  auto dram = domain(1, kDram, "dram-0");
  dram.reason =
      "no sensor: this virtual machine offers no RAPL zone (/sys/class/powercap is empty)";
  profile.domains = {cpu, dram};
  profile.overhead = model::Overhead{duration_of(0.009), duration_of(13.1), 11'000'000};
  profile.warnings = {
      "the CPU's energy is a load model's estimate, +-70 %; --cpu-tdp WATTS makes it narrower"};
  return profile;
}

// Eight GPUs of which the command sees two; one falls off the bus, the recording is cut off.
inline model::Profile lost_profile() {
  using enum model::DomainKind;
  model::Profile profile;
  profile.run = run_info({"torchrun", "--nproc-per-node=2", "train.py"}, 7'513.0);
  profile.run.exit_status = 137;
  profile.run.complete = false;
  profile.begin = at(100);
  profile.end = at(7'613.0);
  profile.start_time = kStart;
  for (unsigned i = 1; i <= 23; ++i) {
    auto p = process(i, static_cast<pid_t>(90'000 + i), i == 1 ? "torchrun" : "python",
                     i == 1 ? "torchrun --nproc-per-node=2 train.py"
                            : "/opt/conda/bin/python -u train.py --rank " + std::to_string(i - 2),
                     7'000.0 / i);
    p.peak_pss_bytes = 3'221'225'472 / i;
    if (i == 2 || i == 3) p.peak_gpu_memory_bytes = 75'161'927'680;
    profile.processes.push_back(p);
  }
  for (unsigned i = 0; i < 8; ++i) {
    auto gpu = domain(i, kGpu, "gpu" + std::to_string(i), "NVIDIA H200");
    gpu.domain.visible = i < 2;
    if (i == 1) {
      gpu.reason = "the driver says GPU is lost (NVML error 15) since 0:41:07; reboot or reset it";
    } else {
      gpu.energy = measured(2'612'004.25 + i, 130'600, 5'224, "nvmlDeviceGetTotalEnergyConsumption",
                            "counter");
      gpu.mean_power = Power::watts(347.67);
      gpu.peak_power = Power::watts(698.4);
      gpu.balance.counter = gpu.energy->energy;
      gpu.balance.integral = Energy::joules(2'604'881.0);
    }
    if (i == 0) {
      gpu.levels.rest = measured(901'560.0, 45'078.0, 7'513.0, "nvmlDeviceGetSamples", "samples");
      attribute(profile, gpu, 901'560.0, 120.0, {0, 1'710'111.0});
    }
    profile.domains.push_back(gpu);
  }
  auto package = domain(8, kCpu, "package-0", "AMD EPYC 9554");
  package.energy = measured(1'502'600, 75'130, 1'502, "powercap:intel-rapl:0/energy_uj", "counter");
  package.mean_power = Power::watts(200.0);
  package.balance.counter = package.energy->energy;
  profile.domains.push_back(package);
  profile.overhead = model::Overhead{duration_of(6.2), duration_of(7'515.0), 17'300'000};
  profile.warnings = {
      "gpu1: lost at 2467.1 s (NVML error 15); its energy until then is not shown, because what it "
      "drew after that is not known",
      "gpu0: counter and samples differ by 0.27 %, more than the 0.2 % that is usual",
      "3 processes lived for less than one look at /proc; their CPU time is in unattributed",
      "the wall clock stepped by -1.2 s at 512.0 s",
      "the machine was suspended for 12.0 s at 901.0 s; that time is not in the span",
      "dram: AMD processors have no DRAM sensor"};
  return profile;
}

}  // namespace jouleprof::report
