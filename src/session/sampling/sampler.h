// Reads meters on threads: one for each, which reads each of its probes when it is due.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "meters/meter.h"
#include "model/recording.h"

namespace jouleprof::session {

// What has been read since the last time, with ids that are unique over all meters.
struct Sampled {
  model::Readings readings;
  std::vector<model::GpuProcessUse> gpu_processes;
  // The parents of processes that a driver listed for the first time, by pid; 0: it had ended.
  std::map<pid_t, pid_t> parents;
  std::vector<model::Warning> warnings;

  void clear() {
    readings.clear();
    gpu_processes.clear();
    parents.clear();
    warnings.clear();
  }
};

// How a meter's ids become unique ones; an id that is absent is left out of the recording.
struct IdMap {
  std::vector<std::optional<model::SensorId>> sensors;  // by the meter's own id
  std::vector<std::optional<model::DomainId>> domains;
};

// A meter whose call never returns blocks its own lane only; the lane is then abandoned, and the
// meter lives as long as the call.
// Thread safety: one thread calls everything.
class Lane {
 public:
  // `process_period`: how often to ask for the processes on the devices; zero: never. Where that
  // takes more than 0.05 % of one core, it is more rarely, down to once in 5 s.
  Lane(std::unique_ptr<meters::Meter> meter, IdMap ids, Duration process_period);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // `reported` is called, from the lane's thread, when a sensor's buffer was emptied, because its
  // readings reach back to the last time, and should not wait here; and when the driver lists a
  // process that it did not list before, because it can be identified only while it lives. Not
  // after finish().
  void on_news(std::function<void()> reported);

  // Without a probe that fills a sensor to be kept there is nothing to do, and no thread.
  void start();

  // Appends what has been read, and a warning about a call that has been hanging for long.
  void take(Sampled& out);

  // Whether a buffer was emptied since the last take().
  bool has_buffer() const;
  // Whether the driver listed a new process since the last take().
  bool has_new_process() const;

  // Asks for a read of every probe now, due or not: something begins or ends here. Returns a number
  // for has_read().
  std::uint64_t ask_to_read();
  // Whether that read has ended; take() has its readings then.
  bool has_read(std::uint64_t number) const;
  void ask_to_list();

  // How often the meter is read from now on, and asked for the processes on its devices; the
  // probes are read at once. Zero as a process period changes nothing.
  void set_pace(const meters::Demand& demand, Duration process_period);

  // Asks for the last reads: every probe once more, or none.
  void ask_to_stop(bool last_reads);

  // Waits for them until `deadline`. If a call still hangs then, its lane is abandoned with a
  // warning that names it. Nothing is read afterwards.
  void finish(HostTime deadline, Sampled& out);

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
  std::thread thread_;
};

// All meters together: one set of ids, one thread each.
// Thread safety: one thread calls everything.
class Sampler {
 public:
  // Domains for which `keep` says no are left out. `process_period`: as Lane's.
  Sampler(std::vector<std::unique_ptr<meters::Meter>> meters, Duration process_period,
          const std::function<bool(const model::Domain&)>& keep = nullptr);

  // The domains and sensors of all meters, numbered from zero in their order.
  const std::vector<model::Domain>& domains() const { return domains_; }
  const std::vector<model::Sensor>& sensors() const { return sensors_; }

  // Does what Lane's does, for every lane. Before start().
  void on_news(const std::function<void()>& reported);
  bool has_buffer() const;
  bool has_new_process() const;

  void start();
  void take(Sampled& out);  // appends

  // Has every probe read now, due or not, so that an interval that begins or ends here has a
  // reading close to its edge. Returns at once: numbers for has_read(), one a meter.
  std::vector<std::uint64_t> read_soon();
  // Asks for the processes on the devices now, where they are asked for at all.
  void list_soon();
  // Whether these reads have ended; take() has their readings then.
  bool has_read(const std::vector<std::uint64_t>& numbers) const;

  // Does what Lane's does, for every lane.
  void set_pace(const meters::Demand& demand, Duration process_period);

  // Reads every probe a last time, if that is wanted. Waits up to `patience` for all meters
  // together; a meter that hangs longer is given up with a warning. Appends what was read.
  void stop(Duration patience, Sampled& out, bool last_reads = true);

 private:
  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

// The domains of several meters in one numbering, as a Sampler of the same meters would number
// them.
std::vector<model::Domain> joined_domains(
    const std::vector<std::unique_ptr<meters::Meter>>& meters);

// The time to the next look at processes after one that took `cost` of CPU time, so that looks take
// at most 0.05 % of one core; not below `shortest`, and not above `longest` unless `shortest` is.
inline Duration pause_after(Duration cost, Duration shortest, Duration longest) {
  constexpr double kBudget = 0.0005;
  return std::clamp(duration_of(seconds(cost) / kBudget), shortest, std::max(longest, shortest));
}

}  // namespace jouleprof::session
