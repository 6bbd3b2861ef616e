// A whole recording in memory: what a *.jprof file holds and what the analysis starts from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity.h"
#include "model/domain.h"
#include "model/process.h"
#include "model/readings.h"
#include "model/sensor.h"

namespace jouleprof::model {

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
  // False until the recording was closed in order: a file that says false was cut off.
  bool complete = false;
  // Where traced processes wrote what they told, absolute; empty: nothing was to be traced.
  std::string trace_folder;

  bool operator==(const RunInfo&) const = default;
};

// Whether nothing of the work ran on a GPU outside of the recording's traces, so that readings
// around them tell of a GPU at rest. So it is of an import, and of a process that traced itself
// while it was attached to. A program that is run makes its context as it starts, and one that was
// profiled for a while ran before and after.
bool is_at_rest_around_traces(const RunInfo& run);

// Something the reader of a report should know, once.
struct Warning {
  HostTime at{};
  std::string text;

  bool operator==(const Warning&) const = default;
};

// A stretch in which nothing of the measured work ran, taken to learn the idle power.
struct IdleSpan {
  HostTime begin{};
  HostTime end{};

  bool operator==(const IdleSpan&) const = default;
};

// What measuring itself took.
struct Overhead {
  Duration cpu_time{};  // of the tool, all threads, over `wall_time`
  Duration wall_time{};
  std::uint64_t peak_memory_bytes = 0;

  bool operator==(const Overhead&) const = default;
};

// A named stretch of the measured program's work; windows may nest and overlap.
struct Window {
  std::string name;
  HostTime begin{};
  HostTime end{};
  pid_t pid = 0;
  pid_t thread = 0;
  bool device_time = false;  // the edges are the GPU's own, mapped to host time

  bool operator==(const Window&) const = default;
};

// A named stretch whose energy another tool found: no readings of its own, only its totals.
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
};

}  // namespace jouleprof::model
