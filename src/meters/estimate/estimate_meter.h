// Power without a sensor: estimated from the load of a processor, or a virtual machine's share of
// its host, which the host writes into a file.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/meter.h"
#include "model/device/guest_file.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters::estimate {

// CPU time since boot, from the first line of /proc/stat: all processors together, those
// taken offline since included.
struct CpuTime {
  Duration busy{};  // user (guests included), nice, system, interrupts; not I/O wait, not stolen
};

// Reads the text of /proc/stat. Errors: corrupt.
Result<CpuTime> parse_cpu_time(std::string_view proc_stat, long ticks_per_second);

// How much of its greatest power a processor draws when idle. Whole servers of SPECpower_ssj2008
// stand at 0.16-0.32 by processor generation (median 0.24: coefficients of Cloud Carbon Footprint,
// cloudcarbonfootprint.org/docs/methodology); packages measured with RAPL at 0.12 of their TDP
// (B. Davy, "Building an AWS EC2 Carbon Emissions Dataset", Teads Engineering 2021).
inline constexpr double kIdleShare = 0.2;

// The default design power of one logical CPU: TDP over hardware threads of
// server parts. AMD EPYC 1.8-2.8 W (7601, 7742, 7763, 9654); Intel Xeon 3.1-5 W (8175M, 8259CL,
// 8375C, 8480+) and client parts around the same; ARM servers 2-3.5 W a core (Altra, Grace).
// From the data sheets; the coefficients named above say 1.6-2.6 W, 3.5-6 W a thread.
// A virtual machine sees its own logical CPUs only, so this is its share of the socket.
Power default_tdp_per_cpu(std::string_view vendor, std::string_view model_name);

// Data sheets of processors from 2008 on: from 0.9 W (15 W for 16 threads of a notebook's) and 1.4
// W (360 W for 256 of an EPYC 9754) to 24 W (95 W for 4 of a Core i5-2500K) and 33 W (65 W for 2 of
// a Core 2 Duo E8400). What is given beyond that is another machine's share, or another unit.
inline constexpr Power kLeastTdpPerCpu = Power::watts(0.5);
inline constexpr Power kMostTdpPerCpu = Power::watts(35);
constexpr bool is_plausible_tdp(Power per_cpu) {
  return per_cpu >= kLeastTdpPerCpu && per_cpu <= kMostTdpPerCpu;
}

// Relative error at 95 %. The straight line alone is wrong by up to 40 % (packages draw 0.32, 0.75
// and 1.02 of their TDP at 10, 50 and 100 % load, Davy 2021); the default TDP adds as much again.
inline constexpr double kGainErrorKnownTdp = 0.4;
inline constexpr double kGainErrorDefaultTdp = model::kEstimateError;

// P = P_idle + (P_max - P_idle) x busy CPUs / CPUs, with P_max = TDP and P_idle = kIdleShare x TDP.
class LoadModel {
 public:
  // `cpus` is at least 1.
  LoadModel(Power tdp, int cpus) : tdp_(tdp), cpus_(cpus) {}

  // Mean power over `interval`, in which the CPUs together worked for `busy`. Its energy is exactly
  // additive over neighbouring intervals.
  Power mean_power(Duration busy, Duration interval) const {
    const Power idle = tdp_ * kIdleShare;
    return idle + (tdp_ - idle) * (seconds(busy) / seconds(interval) / cpus_);
  }

 private:
  Power tdp_;
  int cpus_;
};

}  // namespace jouleprof::meters::estimate

namespace jouleprof::meters {

// --- The CPU where it has no sensor: a model of its load, always labelled estimated ---

struct EstimateOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
  // The design power of all logical CPUs that this machine sees. On a virtual machine: of its share
  // of the socket.
  std::optional<Power> cpu_tdp = {};
  bool has_dram = false;  // another meter has that domain
  std::function<HostTime()> clock = HostClock::now;
  long ticks_per_second = ::sysconf(_SC_CLK_TCK);  // of /proc/stat
};

// One domain for all sockets, "package-0"; its power by LoadModel. A reading is the mean since
// the one before (the first: since opening), so that the readings integrate to the model's energy
// whatever the period. CPUs that come and go change the busy time, not the model.
//
// DRAM is a domain without a sensor: its power follows memory traffic, which /proc does not show.
//
// One probe, with a period of a second, a fifth of the shortest window, or the demanded poll
// period, and never below 100 ms: the kernel counts in ticks of 10 ms, so a shorter interval would
// show mostly rounding.
//
// Not thread safe, as every Meter. No privileges needed.
class EstimateMeter : public Meter {
 public:
  // Errors: invalid_argument for a TDP that is not above zero; as read_file and corrupt for
  // <root>/proc/stat.
  static Result<std::unique_ptr<EstimateMeter>> open(const EstimateOptions& options = {});

  std::string name() const override { return "estimate"; }
  // Adds nothing when it comes less than two ticks after the last reading; the next one covers it.
  // CPU time that went backwards (a restored machine) is a failure, and a restart.
  HostTime read(std::size_t index, model::Readings& out) override;

 private:
  EstimateMeter(const EstimateOptions& options, std::string cpu_name, Power tdp, int cpus);
  Result<estimate::CpuTime> read_cpu_time();

  KeptFile proc_stat_;
  std::function<HostTime()> clock_;
  long ticks_per_second_;
  estimate::LoadModel model_;
  HostTime last_at_{};
  estimate::CpuTime last_;
};

// --- Reads a virtual machine's share of its host's energy ---

struct GuestOptions {
  std::filesystem::path file;
  std::function<ClockPoint()> clock = [] { return ClockPoint::now(); };
};

// One domain for each line of energy. A reading is the mean power since the one before, at the
// host's stamp, which the guest's own real time is compared with: a stamp that is more than a
// minute old, or 2 s or more ahead, is a failure. The energies follow the CPU time of the virtual
// machine, so that they are labelled estimated.
//
// Not thread safe, as every Meter. No privileges needed.
class GuestMeter : public Meter {
 public:
  // Errors: as read_file's; corrupt; unsupported for a file without a line of energy.
  static Result<std::unique_ptr<GuestMeter>> open(const GuestOptions& options);

  std::string name() const override { return "guest"; }
  HostTime read(std::size_t index, model::Readings& out) override;

 private:
  explicit GuestMeter(GuestOptions options) : options_(std::move(options)) {}

  const GuestOptions options_;
  model::GuestFile last_;
};

}  // namespace jouleprof::meters
