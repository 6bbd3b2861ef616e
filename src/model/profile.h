// What a report shows: the result of analysing a recording.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"
#include "model/process/process.h"
#include "model/recording.h"

namespace jouleprof::model {

// --- Quartiles of a list of values ---

// A quarter of the values is at most `lower`, half of them at most `median`, three quarters at most
// `upper`.
template <typename T>
struct Quartiles {
  T lower{};
  T median{};
  T upper{};

  bool operator==(const Quartiles&) const = default;
};

// Fewer values have no quartiles that say more than the values.
inline constexpr std::size_t kFewestForQuartiles = 4;

// By linear interpolation between the sorted values, as numpy.percentile (Hyndman and Fan 1996,
// definition 7). Absent for fewer than kFewestForQuartiles values.
inline std::optional<Quartiles<double>> quartiles_of(std::vector<double> values) {
  if (values.size() < kFewestForQuartiles) return std::nullopt;
  std::ranges::sort(values);
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    const double share = place - std::floor(place);
    return values[below] + share * (values[above] - values[below]);
  };
  return Quartiles<double>{at(0.25), at(0.5), at(0.75)};
}

// `values`: joules.
inline std::optional<Quartiles<Energy>> energy_quartiles_of(std::vector<double> values) {
  const auto q = quartiles_of(std::move(values));
  if (!q) return std::nullopt;
  return Quartiles<Energy>{Energy::joules(q->lower), Energy::joules(q->median),
                           Energy::joules(q->upper)};
}

// `values`: seconds.
inline std::optional<Quartiles<Duration>> time_quartiles_of(std::vector<double> values) {
  const auto q = quartiles_of(std::move(values));
  if (!q) return std::nullopt;
  return Quartiles<Duration>{duration_of(q->lower), duration_of(q->median), duration_of(q->upper)};
}

// --- Energies, and the parts of a profile ---

// An energy with what it is worth.
struct Measurement {
  Energy energy;
  // Half the width of the 95 % interval of the true energy, the sensor's gain error included.
  Energy error;
  // Half of the interval without the gain error: what a comparison on the same device has to
  // exceed.
  Energy repeatability;
  Provenance provenance = Provenance::kMeasured;
  std::string sensor;  // Sensor::name, several joined by " + "
  std::string method;  // "fused", "counter", "samples", "model", ...
  // How far the interval's middle lies above the energy, in parts of it: of a sensor that is known
  // to read low. Not 0: the interval is not symmetric.
  double shift = 0;
  // The part of the error that is an additive offset of the sensor's power, at most. Between
  // energies of one device it cancels where both took the same time; the gain always does.
  Energy offset = {};

  Energy middle() const { return energy + Energy::joules(shift * energy.joules()); }
  // The interval's ends; energy cannot be negative, so the lower one is at least zero.
  Energy low() const { return std::max(middle() - error, Energy{}); }
  Energy high() const { return middle() + error; }
  // How far the ends lie below and above the energy; one may be negative.
  Energy below() const { return energy - middle() + error; }
  Energy above() const { return middle() - energy + error; }
  // Half the width of the narrowest interval around the energy itself that holds this one.
  Energy farthest() const { return std::max(below(), above()); }
};

// The shift of the sum of two.
inline double shift_of_sum(const Measurement& a, const Measurement& b) {
  if (a.shift == b.shift) return a.shift;
  const double sum = a.energy.joules() + b.energy.joules();
  if (sum <= 0) return 0;
  return (a.shift * a.energy.joules() + b.shift * b.energy.joules()) / sum;
}

// What a person could do about a part of the energy.
struct Finding {
  std::string code;        // stable, for machines: "waiting", "power_limit", ...
  std::string device;      // "gpu0"; empty: of the whole machine
  std::string text;        // a sentence without the energy
  std::string next_step;   // a sentence
  Measurement energy;      // of the device, in the time or by the launches that the text names
  double share = 0;        // of the device's energy, or of the machine's
  bool estimated = false;  // the energy is an estimate, whatever the sensor
};

// Adds to a sum whose errors add up linearly, as if all sensors erred to the same side. Its sensor
// and method stay.
inline void add(Measurement& sum, const Measurement& more) {
  sum.shift = shift_of_sum(sum, more);
  sum.energy += more.energy;
  sum.error += more.error;
  sum.offset += more.offset;
  sum.repeatability += more.repeatability;
  sum.provenance = combine(sum.provenance, more.provenance);
}

// An energy by level of power. All three sum exactly to the whole; each is absent where unknown.
struct EnergyLevels {
  std::optional<Measurement> rest;    // what the board would have drawn at rest
  std::optional<Measurement> held;    // what an open context added to that; of GPUs only
  std::optional<Measurement> active;  // above both: work, and the time between launches
  // Rest and held together: known also where they cannot be separated.
  std::optional<Energy> idle;
  std::optional<Duration> held_time;  // for which a context held the board
  std::string reason;                 // why one of them is absent; empty where none is missing
};

// Between these a part of an energy lies with 95 %, if the whole is exact: what is not known is
// whose it is.
struct DivisionBounds {
  Energy low;
  Energy high;
};

// The energy of the command (docs/glossary.md): the part of a device's energy that is its own.
struct CommandEnergy {
  Measurement energy;  // processes + rest; the error is the sensor's and the division's
  // Energy of its processes above rest, what they hold included. A part of all energy where the
  // domain's shares_include_rest is set.
  Energy processes;
  // At rest, of a device that no other family used; absent: another did, or `processes` has it.
  std::optional<Energy> rest;
  // Energy of no known process, and not in `energy`: it may be the command's, too.
  Energy undivided;
  // False: the recording knows of no other process, and all energy is the command's.
  bool is_divided = true;
  // Set in a sum where a device lacks readings of a part of the time, and all of this is "at
  // least".
  bool is_partial = false;
  // The bounds of one of several sockets, where they are wider, as CPU time does not say on which
  // socket it was. The sum over the sockets does not have that error, and `energy` neither.
  std::optional<DivisionBounds> on_socket{};

  Energy low() const { return on_socket ? on_socket->low : energy.low(); }
  Energy high() const { return on_socket ? on_socket->high : energy.high() + undivided; }
  // Half of the interval without the calibration error and `undivided`.
  Energy repeatability() const {
    if (!on_socket) return energy.repeatability;
    return energy.repeatability +
           Energy::joules((high() - low() - energy.high() - undivided + energy.low()).joules() / 2);
  }
  // It would be "at least 0 J": nothing is known.
  bool is_unknown() const { return is_partial && low() <= Energy{}; }
};

// Errors add up linearly, as in a total.
inline void add(std::optional<CommandEnergy>& sum, const CommandEnergy& more) {
  if (!sum) {
    sum = more;
    sum->on_socket.reset();
    return;
  }
  add(sum->energy, more.energy);
  sum->processes += more.processes;
  if (more.rest) sum->rest = sum->rest.value_or(Energy{}) + *more.rest;
  sum->undivided += more.undivided;
  sum->is_divided = sum->is_divided || more.is_divided;
}

// How a whole was found three ways. Parts sum exactly to the whole; the others agree or a warning
// says that they don't.
struct Balance {
  std::optional<Energy> counter;   // the energy counter's own difference over the span
  std::optional<Energy> integral;  // the integral of the power samples alone
  // idle_part + processes + within_command + others + held_unowned + unattributed
  std::optional<Energy> parts;
};

// One domain over the analysed span.
struct DomainProfile {
  Domain domain;
  std::optional<Measurement> energy;  // absent: see `reason`
  std::string reason;                 // why `energy` is absent
  // Where `energy` is absent: the sum of another tool's windows. What its error is, is not known.
  std::optional<Energy> reported;
  bool reported_lacks_windows = false;  // without a figure of this domain: it is a lower bound
  std::optional<Measurement> least;     // where `energy` is absent: of the time that has readings
  EnergyLevels levels;
  std::optional<PowerLevel> rest_power;  // the levels that `levels` and all other views rest on
  std::optional<PowerLevel> held_power;  // rest included
  std::optional<Power> mean_power;
  std::optional<Power> peak_power;  // over the sensor's own averaging window
  std::optional<Duration> peak_window;
  Balance balance;
  // energy == idle_part + sum of ProcessProfile::shares + within_command + others + held_unowned +
  // unattributed, exactly, when attributed. `idle_part` is the energy at rest; rest and held
  // together where they cannot be separated.
  std::optional<Energy> idle_part;
  // The energy at rest is unknown, and the shares of processes are shares of all of the energy.
  bool shares_include_rest = false;
  // Energy of the command's processes, but of which of them is unknown.
  std::optional<Energy> within_command;
  std::optional<Energy> others;        // of processes outside the command's tree
  std::optional<Energy> held_unowned;  // held, by contexts that are not known to be of a process
  std::optional<Energy> unattributed;  // what no process can be charged with
  // Bounds of the command's dynamic energy, where it was divided by utilisation or CPU time.
  std::optional<DivisionBounds> command_bounds{};
  std::optional<CommandEnergy> command;  // absent: no energy, or Profile::command_reason

  // All of its energy, or of a device that was lost the part that is known.
  const std::optional<Measurement>& known() const { return energy ? energy : least; }
};

// The share of one process in one domain.
struct ProcessShare {
  DomainId domain{};
  // Dynamic: of the time that it held the board, and of its work. Of all energy where the domain's
  // shares_include_rest.
  Energy energy;
  // The part of `energy` in kernels, where they were traced.
  std::optional<Energy> kernels;
  std::optional<Energy> idle_between;  // launches
  std::optional<Energy> held;
  // Bounds of `energy`, where it was divided by utilisation.
  std::optional<DivisionBounds> bounds{};
};

struct ProcessProfile {
  Process process;
  std::optional<Duration> cpu_time;  // within the span, unseen children's included
  std::optional<std::uint64_t> peak_pss_bytes;
  std::optional<std::uint64_t> peak_uss_bytes;
  // Read more often than the others: also of processes that live for less than seconds.
  std::optional<std::uint64_t> peak_rss_bytes;
  std::optional<std::uint64_t> peak_gpu_memory_bytes;
  std::optional<double> mean_sm_utilisation;
  std::vector<ProcessShare> shares;
  Provenance provenance = Provenance::kEstimated;  // a share is a model, even of measured energy
};

// What windows took in one domain: a sum over those for which there is a figure.
struct WindowEnergy {
  DomainId domain{};
  std::size_t count = 0;      // windows in the sum
  std::size_t measuring = 0;  // windows that measure the device, where not all of the group do
  std::optional<Measurement> energy;  // of windows of this recording
  // The sum of single windows, of which each has all energy of the device in its time. Absent: it
  // is `energy`. It is more where windows of several processes overlap. A mean is of this sum.
  std::optional<Measurement> singles;
  EnergyLevels levels;             // of `energy`
  std::optional<Energy> reported;  // of imported ones: another tool's, its error is not known
  std::string reason;              // why a window is not in the sum; empty when all are
  // Spread of the energies of single windows, which differ by the work and by the sensor's noise.
  // Absent for few windows, where one has no energy, where processes share the device's time, and
  // where most windows are shorter than 100 ms or the sensor's resolution: it sees what surrounds
  // them.
  std::optional<Quartiles<Energy>> quartiles;
};

// All windows of one name; of imported ones, all of one name and the same labels. Windows of one
// process that overlap or nest count in full, each; where those of several processes overlap, a
// device's energy counts once.
struct WindowGroup {
  std::string name;
  std::vector<ImportedWindow::Label> labels;
  bool imported = false;
  std::size_t count = 0;
  Duration total_time{};
  std::optional<Quartiles<Duration>> time_quartiles;  // of few windows absent
  std::vector<WindowEnergy> energies;  // one for each of the profile's domains, in their order

  Duration mean_time() const {
    return count > 0 ? total_time / static_cast<std::int64_t>(count) : Duration{};
  }
};

struct Profile {
  RunInfo run;
  HostTime begin{};  // of the analysed span
  HostTime end{};
  RealTime start_time{};
  std::vector<DomainProfile> domains;     // in the recording's order
  std::vector<ProcessProfile> processes;  // of the command's tree, by energy, greatest first
  // Why no domain has a CommandEnergy; empty where any has.
  std::string command_reason;
  std::optional<Overhead> overhead;
  // In the order in which a name first appears; imported ones last.
  std::vector<WindowGroup> windows;
  std::vector<Finding> findings;      // the most expensive first
  std::vector<std::string> warnings;  // in words, each once
  bool simulated = false;             // any sensor was a simulated device's

  Duration duration() const { return end - begin; }
  // False: it holds nothing but windows that another tool timed, and no moment is known.
  bool has_span() const { return end > begin || run.work_begin.has_value(); }
};

}  // namespace jouleprof::model
