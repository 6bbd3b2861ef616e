// Where inside a device the energy went, by time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::model {

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
  // Of the lists of the profile, the rows with the highest energies; greatest first.
  std::vector<Row> by_kernel;
  std::vector<Row> by_layer;
  std::vector<Row> by_range;
  std::vector<Row> by_phase;
  std::vector<Process> by_process;  // those of the profile, in its order
};

}  // namespace jouleprof::model
