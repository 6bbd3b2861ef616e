// Samples and records: what every kind of session does, whatever else it does.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/recording.h"
#include "session/sampling/recorder.h"
#include "session/sampling/sampler.h"
#include "spans/procs/process_tree.h"

namespace jouleprof::session {

// Notices that the wall clock was set or that the machine slept.
class ClockWatch {
 public:
  struct Observed {
    std::vector<ClockPoint> points;  // to record
    std::optional<std::string> warning;
  };

  explicit ClockWatch(Duration period = std::chrono::seconds{10}) : period_(period) {}

  // To be called often, with the clocks now. A point is worth recording every period, and on both
  // sides of a step or a sleep.
  Observed observe(const ClockPoint& now);

 private:
  Duration period_;
  std::optional<ClockPoint> last_;
  std::optional<ClockPoint> recorded_;
};

// Samples and records: what every kind of session does, whatever else it does.
// Thread safety: one thread calls everything.
class RecordedSampling {
 public:
  // Sees what was read, on its way to the recording.
  using Consumer = std::function<void(const Sampled&)>;

  // `domains`: those of the sampler with their visibility decided. `sink`: as Recorder's.
  RecordedSampling(Sampler sampler, std::vector<model::Domain> domains, Sink* sink,
                   Consumer consumer);

  const std::vector<model::Domain>& domains() const { return domains_; }
  const std::vector<model::Sensor>& sensors() const { return sensors_; }

  // Records domains and sensors, and starts sampling. `on_news`: as Sampler's.
  void start(std::function<void()> on_news = nullptr);
  auto read_soon() { return sampler_.read_soon(); }
  void list_soon() { sampler_.list_soon(); }
  bool has_read(const std::vector<std::uint64_t>& numbers) const {
    return sampler_.has_read(numbers);
  }
  void set_pace(const meters::Demand& demand, Duration process_period) {
    sampler_.set_pace(demand, process_period);
  }
  bool has_buffer() const { return sampler_.has_buffer(); }
  bool has_new_process() const { return sampler_.has_new_process(); }

  // Moves what was read since the last time into `batch`.
  void collect();
  // Notices steps of the wall clock and sleeps of the machine.
  void watch_clock();
  // Hands `batch` over to be written.
  void flush();

  // Ends the sampling, waiting for meters up to `patience`. `last_reads`: every probe is read once
  // more.
  void stop(Duration patience, bool last_reads = true);
  // Records the rest. After stop(). Errors: the sink's.
  Result<void> finish();

  // Something the reader of a report should know: recorded, and kept for warnings(), once.
  void warn(std::string text);
  // All so far; of very many only the first thousand.
  const std::vector<model::Warning>& warnings() const { return warnings_; }

  // The sink's first error; from then on nothing is recorded.
  std::optional<Error> sink_error() { return recorder_.error(); }
  // Whether all that was flushed is committed.
  bool is_written() { return recorder_.caught_up(); }
  // Whether traces wait for a slow sink: then more of them stay where they are.
  bool has_waiting_traces() { return recorder_.has_waiting_traces(); }

  Batch batch;  // what flush() records next

 private:
  void take_in(Sampled&& sampled);
  void warn_of_loss(bool now);

  Sampler sampler_;
  const std::vector<model::Domain> domains_;
  const std::vector<model::Sensor> sensors_;
  const Consumer consumer_;
  ClockWatch clock_;
  Recorder recorder_;
  std::vector<model::Warning> warnings_;
  std::set<std::string> warned_;
};

// What a recording says of the machine and the process that made it.
// The machine's name and this process's working directory; the rest is the caller's to fill.
model::RunInfo run_info_here(std::string tool_version);

// Looks at the machine and at the measured processes as often as it may.
// Thread safety: none.
class ProcessWatch {
 public:
  // `period` of the looks; they become rarer, down to one in ten seconds, where a look is dear.
  ProcessWatch(const std::filesystem::path& root, Duration period);

  // The tree to look at from now on; see spans::TreeOptions. The first looks follow each other
  // quickly, so that a short command is seen as well.
  void follow(const spans::TreeOptions& options);

  // Another process whose descendants are in the tree.
  void add_root(pid_t root);

  HostTime next() const { return next_; }

  // `all`: processes whose figures stand still too. Returns a warning where CPU time is missing.
  std::optional<std::string> look(HostTime now, Batch& out, bool all = false);

  // What a driver reported of processes, before the last look. `parents`: as Sampled's. Returns a
  // warning where its pids cannot be matched with ours.
  std::optional<std::string> add_gpu_uses(const std::vector<model::GpuProcessUse>& uses, Batch& out,
                                          const std::map<pid_t, pid_t>& parents = {});

  std::vector<model::Process> alive() const { return tree_.alive(); }
  // Whether a look has found it.
  bool knows(pid_t pid) const { return tree_.knows(pid); }

  // Waits for orphans that ended and became this process's children, all but `except`.
  void reap(pid_t except);

 private:
  spans::ProcFs procs_;
  spans::ProcessTree tree_;
  Duration period_;
  Duration step_;
  HostTime next_{};
  std::optional<std::uint64_t> forks_;
  bool in_pid_namespace_;
};

}  // namespace jouleprof::session
