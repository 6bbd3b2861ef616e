// A whole recording in memory: what a *.jprof file holds and what the analysis starts from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity/activity.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::model {

// The domains that a window is charged with: all, or some. Copies share their list.
class DeviceSet {
 public:
  DeviceSet() = default;  // all
  explicit DeviceSet(std::vector<DomainId> some) {
    std::ranges::sort(some);
    some.erase(std::unique(some.begin(), some.end()), some.end());
    some_ = std::make_shared<const std::vector<DomainId>>(std::move(some));
  }

  bool is_all() const { return some_ == nullptr; }
  bool contains(DomainId id) const { return is_all() || std::ranges::binary_search(*some_, id); }
  // In order; empty of all.
  std::vector<DomainId> list() const { return is_all() ? std::vector<DomainId>{} : *some_; }

  bool operator==(const DeviceSet& other) const {
    return is_all() == other.is_all() && list() == other.list();
  }

 private:
  std::shared_ptr<const std::vector<DomainId>> some_;
};

// A window that has begun and not ended.
struct OpenWindow {
  std::string name;
  HostTime begin{};
  pid_t process = 0;

  bool operator==(const OpenWindow&) const = default;
};

// A sentence for each name of a process, of windows that `when` ("the process ended"), at `at`,
// found open.
std::vector<std::string> texts_of(const std::vector<OpenWindow>& windows, HostTime at,
                                  std::string_view when);

// What was run, where and by which tool.
struct RunInfo {
  std::string tool_version;
  std::string host;                  // the machine's name
  std::string source;                // "run", "attach", "monitor", "library" or "import:FORMAT"
  std::vector<std::string> command;  // empty when no command was started
  std::string working_directory;
  std::optional<pid_t> pid;        // of the command
  std::optional<int> exit_status;  // as a shell shows it: 128 + N after signal N
  // The command's life. Without a command, the whole recording.
  std::optional<HostTime> work_begin;
  std::optional<HostTime> work_end;
  // False until the recording was closed in order; also in a file that was cut off.
  bool complete = false;
  // Not complete, and another program was writing it when it was read. No file has it.
  bool being_written = false;
  // Absolute, of the spool of traced processes (recording/spool); empty: tracing was not requested.
  std::string trace_folder;
  // Boot of the machine's running kernel, to find recordings of one host and one boot; empty: not
  // known.
  std::string boot_id;
  Rank rank;              // of the process that made the recording
  std::string user;       // who ran it; empty: not known
  std::string node_list;  // of Slurm's job, as Slurm writes it: "node[1-4]"; empty: none
  // Windows that were open at the last commit of a recording that was not closed in order.
  std::vector<OpenWindow> open_windows;

  bool operator==(const RunInfo&) const = default;
};

// Whether the work used no GPU outside of the recording's traces, so that readings around the
// traces are of an idle GPU. True of imports, and of a process that traced itself while it was
// attached to. False of a program that is run, which creates its context as it starts, and of one
// that was profiled for part of its life.
bool is_at_rest_around_traces(const RunInfo& run);

// A message for the reader of a report.
struct Warning {
  HostTime at{};
  std::string text;

  bool operator==(const Warning&) const = default;
};

// An interval without the measured work, for the idle power.
struct IdleSpan {
  HostTime begin{};
  HostTime end{};

  bool operator==(const IdleSpan&) const = default;
};

// Cost of the measurement.
struct Overhead {
  Duration cpu_time{};  // of the tool, all threads, over `wall_time`
  Duration wall_time{};
  std::uint64_t peak_memory_bytes = 0;

  bool operator==(const Overhead&) const = default;
};

// A named region of the measured program; windows may nest and overlap.
struct Window {
  std::string name;
  HostTime begin{};
  HostTime end{};
  pid_t pid = 0;
  pid_t thread = 0;
  bool device_time = false;  // the edges are the GPU's own, mapped to host time
  DeviceSet devices{};       // of its monitor

  bool operator==(const Window&) const = default;
};

// A named interval whose energy another tool measured; there are no readings of it.
struct ImportedWindow {
  struct DomainEnergy {
    DomainId domain{};
    Energy energy;

    bool operator==(const DomainEnergy&) const = default;
  };
  struct Label {
    std::string name;  // "power_limit_watts", "batch_size", ...
    std::string value;

    bool operator==(const Label&) const = default;
  };

  std::string name;
  std::optional<HostTime> begin;  // absent where the file has no time stamps
  Duration duration{};
  std::vector<DomainEnergy> energies;  // a domain that the tool had no figure for is not in it
  std::vector<Label> labels;

  bool operator==(const ImportedWindow&) const = default;
};

struct Recording {
  RunInfo run;
  std::vector<ClockPoint> clock_points;
  std::vector<Domain> domains;
  std::vector<Sensor> sensors;
  Readings readings;
  std::vector<IdleSpan> idle_spans;
  std::vector<Process> processes;
  ProcessReadings process_readings;
  std::vector<Warning> warnings;
  std::optional<Overhead> overhead;
  std::vector<Window> windows;
  std::vector<Trace> traces;                     // of processes that were traced
  std::vector<ImportedWindow> imported_windows;  // in the file's order
  // What earlier runs found for the traces' kernels on the recording's boards: attribution may use
  // it.
  std::vector<RememberedKernel> remembered;
};

// A sensor belonged to a simulated device: nothing was measured.
bool is_simulated(const Recording& recording);

// The readings of a domain's gauge (its clocks, temperatures, utilisation, limits), or of the board
// that contains it, in order of time. `name`: one of model/device/sensor.h, which state the units.
std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name);
// The readings of a gauge within [begin, end].
std::vector<GaugeReading> gauge_of(const Recording& recording, const Domain& domain,
                                   std::string_view name, HostTime begin, HostTime end);

// A window as the thread that ended it passes it on.
struct WindowRecord {
  std::int64_t begin = 0;  // nanoseconds of CLOCK_MONOTONIC
  std::int64_t end = 0;
  std::uint32_t name = 0;
  std::uint32_t flags = 0;
};

}  // namespace jouleprof::model
