// A sweep: the same work, run at several settings of a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jouleprof::model {

// What is run, and how the order and number of runs are decided. Settings are in the knob's unit.
struct SweepPlan {
  std::vector<std::string> command;
  std::string knob;  // "power_limit_watts", "sm_clock_megahertz", ...
  // Nothing is set: runs have the settings found, and `settings` and `reference` say nothing.
  bool observe = false;
  std::vector<double> settings;      // highest first
  double reference = 0;              // one of them; it is in each block
  std::optional<double> found;       // the setting before the sweep
  std::vector<std::string> devices;  // UUIDs

  // What a run's work is: its windows of this name, or a number that it prints, or an iteration of
  // a benchmark, or the command.
  std::string window;
  std::string throughput;  // a regular expression whose group is the number
  std::string bench;       // the workload; `command` lacks the file of its result

  bool whole_machine = false;  // energies are of whole GPUs, and not of the command

  std::string objective = "energy";
  double eta = 0.5;
  std::optional<double> max_slowdown;  // 0.05 is 5 %
  std::optional<double> max_watts;

  std::uint64_t seed = 1;
  unsigned fewest_blocks = 3;
  unsigned most_blocks = 8;
  double tolerance = 0.01;             // the sweep ends when nothing better than this is likely
  std::optional<double> max_seconds;   // of all runs
  std::optional<double> most_celsius;  // a run begins at this temperature or below

  bool operator==(const SweepPlan&) const = default;
};

// One run of the command. What is not known is absent.
struct SweepRun {
  unsigned number = 0;  // from 1, in the order of time
  unsigned block = 0;   // from 1; 0: warm-up
  double setting = 0;
  std::int64_t started_unix_ns = 0;
  double wall_seconds = 0;  // with cool-down, until the next run can begin
  std::optional<int> exit_status;

  std::optional<double> seconds;       // of one unit of the work
  std::optional<double> joules;        // of the GPUs, for one unit of the work
  std::optional<double> total_joules;  // of the GPUs, the whole run
  std::optional<double> units;         // of the work in the run; of a throughput: per second

  std::optional<double> requested;        // read back after the change
  std::optional<double> requested_after;  // and after the run
  std::optional<double> enforced_watts;
  std::optional<double> start_celsius;
  std::optional<double> end_celsius;
  std::optional<double> mean_watts;
  std::optional<double> peak_watts;
  std::optional<double> sm_megahertz;  // means over the run, as the rest
  std::optional<double> memory_megahertz;
  std::optional<double> sm_utilisation;  // ratios from 0 to 1, as the rest
  std::optional<double> memory_utilisation;
  std::optional<double> limited_by_power;
  std::optional<double> limited_by_heat;
  std::optional<double> loss;  // the last training loss that the work printed

  bool simulated = false;  // a sensor belonged to a simulated device: nothing was measured
  std::string unranked;    // why it is not ranked; empty: it is
  std::string remark;      // on a run that is ranked

  bool is_warm_up() const { return block == 0; }
  bool is_ranked() const { return !is_warm_up() && unranked.empty() && seconds && joules; }
  bool operator==(const SweepRun&) const = default;
};

// --- How settings of a GPU are named: on the command line, for people, and in files ---

struct KnobWords {
  std::string_view word;  // of the command line
  std::string_view name;  // for people
  std::string_view unit;
  std::string_view label;     // in files, with the unit
  std::string_view smi_flag;  // with which nvidia-smi sets it
};

// In the order of meters::control::Knob.
inline constexpr std::array<KnobWords, 3> kKnobWords{{
    {"power", "power limit", "W", "power_limit_watts", "-pl"},
    {"sm-clock", "SM clock", "MHz", "sm_clock_megahertz", "-lgc"},
    {"memory-clock", "memory clock", "MHz", "memory_clock_megahertz", "-lmc"},
}};

// Null for an unknown label.
constexpr const KnobWords* knob_words(std::string_view label) {
  for (const auto& words : kKnobWords) {
    if (words.label == label) return &words;
  }
  return nullptr;
}

}  // namespace jouleprof::model
