// Collects an importer's data into a recording: its times, its records, and checks of both.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/recording.h"

namespace jouleprof::importers {

// What a power is at most.
struct Most {
  double watts = 0;
  std::string of;           // for messages
  bool is_of_kind = false;  // neither a limit nor a name is known
};

// The mean power that a GPU of this product has at most over some time.
Most most_of_gpu(std::string_view product);

struct Stamp {
  Duration at{};                // on the other tool's clock
  bool starts_segment = false;  // the tool was not recording just before
};

// Stamps that follow each other without a pause.
struct Segment {
  HostTime begin{};
  HostTime end{};
  Duration stamp_begin{};
  Duration stamp_end{};
};

struct Layout {
  std::vector<HostTime> times;    // of each stamp, strictly increasing, the first is zero
  std::vector<Segment> segments;  // in order
  // What is left out of `times` for all pauses together, where the clock did not go back. Absent:
  // the log has no times of its own.
  std::optional<Duration> cut = Duration{};
  std::size_t backward_steps = 0;
};

// Maps the stamps of another tool to host time, without the pauses in which it did not record.
// `stamps` in the order in which they were written. A pause is cut out where a stamp starts a
// segment, where the clock went back, and where the distance to the stamp before is more than
// ten times the usual (median) one and longer than 5 s. A pause keeps the length `seam`: the
// averaging time of a reading, so that the first reading after a pause does not cover the time
// before it. Readings of an instant need 1 ns only. Without `has_pauses` no distance is one.
Layout lay_out(std::span<const Stamp> stamps, Duration seam = Duration{1}, bool has_pauses = true);

// Logs of one run do not begin and end in one moment: the work becomes the time of the readings of
// power and energy, and of it what all devices have, where that leaves out at most 1 s at each end.
void trim_ends(model::Recording& recording);

// The median distance of neighbouring stamps within segments; zero when there are none.
Duration usual_distance(std::span<const Stamp> stamps);

// Collects an importer's data into a recording. An import is complete: a file that ends within a
// row lacks that row, and a warning names it.
class RecordingBuilder {
 public:
  explicit RecordingBuilder(const std::string& format);

  model::DomainId add_domain(model::DomainKind kind, std::string device, std::string name);
  model::SensorId add_sensor(model::DomainId domain, model::SensorKind kind, std::string name);
  model::Domain& domain(model::DomainId id);
  // The process of that number; one that is first seen at `at` where there is none, called
  // "(unknown)".
  model::Process& process(pid_t pid, HostTime at);

  // A reading at `at`. Absent watts and negative ones become a ReadFailure.
  void add_power(model::SensorId sensor, HostTime at, std::optional<double> watts);
  // Makes times of a local clock instants, one by one: of one device each, in the order of the
  // rows, which decides in the hour that the clock shows twice. Warns of what is assumed. Times
  // that are `without_date` only go on after that hour.
  void read_local_times(std::span<std::vector<Stamp>> series, bool without_date = false);
  void add_gauge(model::SensorId sensor, HostTime at, double value);
  void warn(std::string text);

  // Sets what contains each domain, where that is one of the others: packages their cores, GPUs
  // their memory. finish() does it.
  void set_parents();

  // Clock points at both ends of every segment, and a warning when something was cut out.
  // Without `to_real` the stamps' clock has no known relation to the wall clock.
  void set_clock(const Layout& layout, RealTime (*to_real)(Duration));

  // Ends the recording. The work is [begin, end] unless run().work_begin was set. Powers that a
  // device cannot draw (of a wrong unit, or error codes that a tool wrote as numbers) become
  // ReadFailures: those above the limit that the log itself has, that of the board where its name
  // is known, or what any such device draws. Windows above it stay, with a warning.
  // Errors: corrupt where most powers of a device are such, or its counter rises as fast;
  // unavailable when no sensor has two readings of power or of an energy counter.
  Result<model::Recording> finish(const std::string& path, HostTime begin, HostTime end) &&;
  // finish(), of a file that holds no power over time.
  Result<model::Recording> finish_windows(const std::string& path) &&;

  model::Recording& recording() { return recording_; }

 private:
  void leave_out_single(const std::vector<std::size_t>& counts);

  model::Recording recording_;
  std::map<pid_t, std::size_t> processes_;  // places in the recording
  std::size_t negative_ = 0;                // powers
};

// How long the launches of one file may run.
// A launch is kept in each bin of its run time. One whose time has a wrong unit may seem to run for
// days, and would take all memory and hours.
class LaunchLimit {
 public:
  // Adds a launch. False once they run for longer than in any real trace: an hour together, and a
  // second for each launch beyond that; or one of them for an hour.
  bool add(Duration run_time) {
    ++launches_;
    total_ += seconds(run_time);
    return seconds(run_time) <= kAny && total_ <= kAny + kEach * static_cast<double>(launches_);
  }

  // What is wrong, when add() returned false.
  std::string message() const {
    return fmt::format("{} run{} for {:.1f} h: check the unit of the times",
                       launches_ == 1 ? "one launch" : fmt::format("{} launches", launches_),
                       launches_ == 1 ? "s" : "", total_ / kHour);
  }

 private:
  static constexpr double kHour = 3600;  // seconds
  static constexpr double kAny = kHour;  // seconds
  static constexpr double kEach = 1;     // second

  double total_ = 0;  // seconds
  std::uint64_t launches_ = 0;
};

}  // namespace jouleprof::importers
