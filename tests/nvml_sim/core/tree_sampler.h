// The processes of a tree over time.
//
// What exists cannot be computed afterwards: a thread looks for it, the only one of the simulator.
// What it found never changes, so that two reads of one interval agree.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nvml_sim/core/curve.h"

namespace jouleprof::nvml_sim {

// The living processes that were started with `environment` ("NAME=value") in theirs, and what they
// started, sorted.
std::vector<pid_t> tree_members(const std::string& environment,
                                const std::filesystem::path& proc = "/proc");

// Thread-safe. Times are seconds since the scenario's start.
class TreeSampler {
 public:
  // Looks every `period` seconds; 0: no thread runs, the caller records. `epoch_ns` is the
  // scenario's start on CLOCK_REALTIME.
  TreeSampler(std::string environment, double period, std::int64_t epoch_ns);
  ~TreeSampler();
  TreeSampler(const TreeSampler&) = delete;
  TreeSampler& operator=(const TreeSampler&) = delete;

  std::vector<pid_t> members() const;  // of the last look
  // From when to when it had members, up to `t`; of those that it still has, to kForever.
  std::vector<std::pair<double, double>> presence(double t) const;

  void record(double t, std::vector<pid_t> members);

 private:
  void run();
  void look();

  const std::string environment_;
  const double period_;
  const std::int64_t epoch_ns_;
  mutable std::mutex mutex_;
  std::vector<pid_t> members_;
  std::vector<std::pair<double, double>> presence_;
  mutable double read_until_ = -kForever;  // the latest time of which presence was returned
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace jouleprof::nvml_sim
