// The CPU use of a process tree over time, and power that follows it.
//
// CPU use is not a function of time that could be evaluated when somebody asks: it has to be
// watched while it happens. So this is the one part of the simulator with a thread of its own. The
// use found over one sampling period is what counts for the next: so the past never changes, and
// two reads of one span agree.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "apps/nvml_sim/core/curve.h"
#include "apps/nvml_sim/core/process_tree.h"

namespace jouleprof::nvml_sim {

// Thread-safe. Times are seconds since the scenario's start.
class TreeSampler {
 public:
  struct Member {
    pid_t pid = 0;
    double use = 0;  // of `cpus`, 0 to 1
  };

  // `cpus` busy processors are a use of 1. `epoch_ns` is the scenario's start on CLOCK_REALTIME.
  // With `period_seconds` 0 no thread runs: the caller samples.
  TreeSampler(TreeTarget target, double cpus, double period_seconds, std::int64_t epoch_ns);
  ~TreeSampler();
  TreeSampler(const TreeSampler&) = delete;
  TreeSampler& operator=(const TreeSampler&) = delete;

  double use(double t) const;                          // 0 to 1
  double use_seconds(double begin, double end) const;  // its integral
  double next_step(double t) const;                    // when it changes next; kForever if unknown
  std::vector<Member> members() const;                 // as last seen

  const TreeTarget& target() const { return target_; }
  double cpus() const { return cpus_; }

  void sample();                                                   // looks at the tree now
  void record(double t, double use, std::vector<Member> members);  // what sample() found

 private:
  struct Step {
    double from = 0;
    double use = 0;
    double sum = 0;  // use-seconds before `from`
  };

  void run(double period_seconds);
  double until(double t) const;
  double now() const;

  const TreeTarget target_;
  const double cpus_;
  const std::int64_t epoch_ns_;
  double last_sample_ = 0;                     // of the sampling thread alone
  std::map<pid_t, std::int64_t> cpu_time_ns_;  // the same
  mutable std::mutex mutex_;
  std::vector<Step> steps_;
  std::vector<Member> members_;
  mutable double asked_ = -kForever;  // up to here somebody has been answered
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

// idle + (full - idle) * use.
CurvePtr follow(std::shared_ptr<const TreeSampler> sampler, double idle, double full);

}  // namespace jouleprof::nvml_sim
