// The energy of processes by time.
#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::model {

// Equal slices of time, one after the other. The values of a row begin at slice `first` and are
// zero outside.
struct ProcessSlices {
  struct Row {
    ProcessId process{};
    DomainId domain{};
    std::size_t first = 0;
    std::vector<Energy> energies;  // they sum exactly to the process's share of the domain
  };
  struct CpuTime {
    ProcessId process{};
    std::size_t first = 0;
    std::vector<Duration> times;  // they sum to ProcessProfile::cpu_time, but for rounding
  };
  HostTime begin{};  // of the first slice
  Duration step{};
  std::size_t count = 0;
  // The rows with the highest energies, greatest first, and the CPU time of their processes.
  std::vector<Row> rows;
  std::vector<CpuTime> cpu_times;
};

}  // namespace jouleprof::model
