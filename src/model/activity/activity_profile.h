// Where inside a device the energy went: the result of attribution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity/activity.h"
#include "model/domain.h"
#include "model/profile.h"

namespace jouleprof::model {

// A kernel, a layer, a range or a phase. `energy` is active energy, above the device's idle power.
// Several layers that are one row, and the energies of each with all below it.
struct FoldedLayers {
  std::size_t count = 0;
  // Joules; `deviation`: sample standard deviation. Absent where one layer has no energy.
  struct Spread {
    double mean = 0;
    double deviation = 0;
    double least = 0;
    double greatest = 0;
  };
  std::optional<Spread> joules;
};

struct ActivityRow {
  std::string name;                      // readable: a kernel's is demangled
  std::string detail;                    // a kernel's grid and block; a layer's type and shapes
  std::uint32_t parent = kNone;          // the row of the same list that holds this one
  std::uint64_t count = 0;               // launches of a kernel; calls of a layer, where known
  std::uint64_t launches = 0;            // on the GPU, by this row itself
  Duration busy{};                       // of the GPU, by this row itself; what overlaps is shared
  std::optional<Duration> overlapped;    // of `busy`, while other launches ran; absent: no GPU's
  std::optional<Measurement> energy;     // by this row itself; absent: see `reason`
  std::optional<Measurement> inclusive;  // with all rows below it
  // False: the interval (of `inclusive`) is wider than the figure is worth: shown as "not
  // resolvable".
  bool resolvable = true;
  std::string reason;           // why energy is absent or not resolvable, or how rows were merged
  std::uint32_t group = kNone;  // collinear kernels share a group ...
  std::optional<Measurement> group_energy;  // ... whose sum has a narrower interval than its parts
  std::optional<double> macs;               // of a layer: multiply-accumulates of one call
  std::uint64_t parameters = 0;             // of a layer
  std::string symbol;                 // a kernel's name as the compiler wrote it; may be empty
  std::optional<KernelClass> kernel;  // which one, of a row of by_kernel
  // The interval (of `inclusive`) would be wider without the power that earlier runs found.
  bool remembered = false;
  std::optional<FoldedLayers> folded;  // report/activity/activity.h
};

// What one kernel took, launched in one phase by one layer within one range. Rows are indices into
// the lists of the profile; kNone: outside of all. On a CPU there is no kernel.
struct ActivityStack {
  Phase phase = Phase::kNone;
  std::uint32_t layer = kNone;
  std::uint32_t range = kNone;
  std::uint32_t kernel = kNone;
  std::uint64_t launches = 0;
  Duration busy{};
  Energy energy;
};

// What one process took.
struct ActivityProcess {
  // In one kernel signature.
  struct OfKernel {
    std::uint32_t kernel = kNone;  // index into ActivityProfile::by_kernel
    std::uint64_t launches = 0;
    Duration busy{};
    Energy energy;
  };
  std::uint32_t trace = kNone;  // index into Recording::traces
  pid_t pid = 0;
  std::uint64_t launches = 0;
  Duration busy{};
  Energy kernels;
  Energy idle_between;                // its part of the idle time between launches, by busy time
  std::vector<OfKernel> by_kernel{};  // their energies sum to `kernels`
};

// What attribution took from earlier runs.
struct RememberedUse {
  std::size_t kernels = 0;       // whose power entered
  std::size_t contradicted = 0;  // whose power this recording contradicts: not used
  RealTime first{};              // begin of the earliest run ...
  RealTime last{};               // ... and of the latest one

  bool operator==(const RememberedUse&) const = default;
};

// One domain over the time that was traced.
// measured.energy == idle + kernels + gaps + others + unattributed, exactly.
struct ActivityProfile {
  Domain domain;
  HostTime begin{};
  HostTime end{};
  Measurement measured;
  Energy idle;            // rest and held together
  EnergyLevels levels;    // of `measured`; levels.rest + levels.held == idle, where they are known
  Energy kernels;         // the sum of all kernels' energies
  Energy gaps;            // above idle, while nothing ran between launches
  Energy others;          // of processes that were not traced
  Energy lost;            // of `unattributed`: in time of which a killed process left no record
  Duration unrecorded{};  // in which kernels without a record ran, by readings of utilisation
  Energy unattributed;    // what the model does not explain; may be negative
  // While kernels were run alone (ChunkKind::kReplay), of the whole recording. In no figure above
  // or below.
  std::optional<Measurement> replay;
  Duration replay_time{};
  Duration replay_inside{};            // of it, between begin and end
  std::optional<Power> idle_power;     // while a context holds the board; rest included
  std::optional<Power> idle_error;     // half of its 95 % interval
  bool idle_observed = true;           // false: it was not observed in this recording
  double explained = 0;                // R^2: of the variance of the measured power
  std::size_t rows = 0;                // measurements that the regression stood on
  std::string method;                  // "regression on the energy counter and samples", "cpu time"
  std::vector<ActivityRow> by_kernel;  // greatest energy first
  std::vector<ActivityRow> by_layer;   // a parent before its children
  std::vector<ActivityRow> by_range;   // a parent before its children
  std::vector<ActivityRow> by_phase;
  std::vector<ActivityProcess> by_process;  // their kernels and idle_between sum to the whole's
  std::vector<ActivityStack> stacks;        // their energies sum to the kernels', exactly
  std::uint64_t launches = 0;
  std::uint64_t dropped = 0;
  std::uint64_t memsets_left_out = 0;       // of its processes, on all devices
  std::optional<RememberedUse> remembered;  // absent: no earlier run knew a kernel of this one
  std::vector<RememberedKernel> resolved;   // by this recording's own readings; for later runs
  std::vector<std::string> warnings;

  Duration length() const { return end - begin - replay_inside; }
};

// Where inside a device the energy went, by time.
// Energies of rows of an ActivityProfile over equal slices of time, one after the other. Those of a
// row sum to the row's energy with all rows below it, but for rounding.
struct ActivitySlices {
  struct Row {
    std::uint32_t row = 0;         // index into the profile's list
    std::vector<Energy> energies;  // of each slice
    // Half of the 95 % interval of each. The sum over some slices is an upper bound of that of
    // their energies' sum: the errors of a kernel's power are common to all slices.
    std::vector<Energy> errors;
  };
  // What one process took, of each slice.
  struct Process {
    std::uint32_t trace = 0;           // index into Recording::traces
    std::vector<double> kernels;       // joules
    std::vector<double> idle_between;  // seconds between launches, its part by busy time
  };
  DomainId domain{};
  HostTime begin{};  // of the first slice
  Duration step{};
  std::size_t count = 0;
  // The rows of the profile's lists with the highest energies; greatest first.
  std::vector<Row> by_kernel;
  std::vector<Row> by_layer;
  std::vector<Row> by_range;
  std::vector<Row> by_phase;
  std::vector<Process> by_process;  // those of the profile, in its order
};

}  // namespace jouleprof::model
