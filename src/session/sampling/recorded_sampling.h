// Samples and records: what every kind of session does, whatever else it does.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "session/sampling/clock_watch.h"
#include "session/sampling/recorder.h"
#include "session/sampling/sampler.h"

namespace jouleprof::session {

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

  // Ends the sampling, waiting for meters up to `patience`.
  void stop(Duration patience);
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

}  // namespace jouleprof::session
