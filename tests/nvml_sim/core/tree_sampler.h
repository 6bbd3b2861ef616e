// The CPU use of a process tree over time, and power that follows it.
//
// CPU use cannot be computed afterwards: it is sampled by a thread, the only one of the simulator.
// The use found over one sampling period counts for the next period. So the past never changes, and
// two reads of one interval agree.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nvml_sim/core/curve.h"

namespace jouleprof::nvml_sim {

// The roots of the tree: process `pid` if it is not zero; else all processes started with
// `environment` ("NAME=value", or "NAME" for any value) in theirs; else this process.
struct TreeTarget {
  pid_t pid = 0;
  std::string environment;

  bool operator==(const TreeTarget&) const = default;
};

// The living processes of the tree, its roots included, sorted.
std::vector<pid_t> tree_members(const TreeTarget& target,
                                const std::filesystem::path& proc = "/proc");

// How a tree is sampled.
struct TreeSpec {
  TreeTarget target;
  double cpus = 1;      // so many busy processors are a use of 1
  double period = 0.1;  // seconds; 0: no thread runs, the caller samples
};

// Thread-safe. Times are seconds since the scenario's start.
class TreeSampler {
 public:
  struct Member {
    pid_t pid = 0;
    double use = 0;  // of `cpus`, 0 to 1
  };

  // `epoch_ns` is the scenario's start on CLOCK_REALTIME.
  TreeSampler(TreeSpec spec, std::int64_t epoch_ns);
  ~TreeSampler();
  TreeSampler(const TreeSampler&) = delete;
  TreeSampler& operator=(const TreeSampler&) = delete;

  const TreeSpec& spec() const { return spec_; }
  double use(double t) const;                          // 0 to 1
  double use_seconds(double begin, double end) const;  // its integral
  double next_step(double t) const;                    // when it changes next; kForever if unknown
  std::vector<Member> members() const;                 // of the last sample
  // From when to when it had members, up to `t`; of those that it still has, to kForever.
  std::vector<std::pair<double, double>> presence(double t) const;

  void sample();                                                   // samples the tree now
  void record(double t, double use, std::vector<Member> members);  // adds a sample

 private:
  struct Step {
    double from = 0;
    double use = 0;
    double sum = 0;  // use-seconds before `from`
  };

  void run();
  const Step* step_at(double t) const;  // null: before the first
  double use_seconds_until(double t) const;

  const TreeSpec spec_;
  const std::int64_t epoch_ns_;
  double last_sample_ = 0;                     // used by the sampling thread alone
  std::map<pid_t, std::int64_t> cpu_time_ns_;  // the same
  mutable std::mutex mutex_;
  std::vector<Step> steps_;
  std::vector<Member> members_;
  std::vector<std::pair<double, double>> presence_;
  mutable double read_until_ = -kForever;  // the latest time of which a use was returned
  std::condition_variable stop_signal_;
  bool stop_ = false;
  std::thread thread_;
};

// The process trees that are sampled.
class Samplers {
 public:
  explicit Samplers(std::int64_t epoch_ns) : epoch_ns_(epoch_ns) {}
  // One sampler for all users of the same tree and `cpus`.
  std::shared_ptr<const TreeSampler> get(const TreeSpec& spec);
  std::int64_t epoch_ns() const { return epoch_ns_; }

 private:
  std::int64_t epoch_ns_;
  std::vector<std::shared_ptr<const TreeSampler>> samplers_;
};

// idle + (full - idle) * use.
Curve follow(std::shared_ptr<const TreeSampler> sampler, double idle, double full);

}  // namespace jouleprof::nvml_sim
