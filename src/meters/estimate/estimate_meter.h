// The CPU where it has no sensor: a model of its load, always labelled estimated.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/kept_file.h"
#include "meters/estimate/load_model.h"
#include "meters/meter.h"

namespace jouleprof::meters {

struct EstimateOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
  // The design power of all logical CPUs that this machine sees. On a virtual machine: of its share
  // of the socket.
  std::optional<Power> cpu_tdp = {};
  std::function<HostTime()> clock = HostClock::now;
  long ticks_per_second = ::sysconf(_SC_CLK_TCK);  // of /proc/stat
};

// One domain for all sockets, "package-0"; its power by load_model.h. A reading is the mean since
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

}  // namespace jouleprof::meters
