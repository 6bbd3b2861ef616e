// Divides the energy of each process among slices of time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "analysis/processes/recorded_use.h"
#include "analysis/slices/activity_slices.h"
#include "model/activity/activity_profile.h"
#include "model/process/process.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Gets what each process took while a profile is made. Processes are numbers in the recording's
// list; only those of the tree are kept.
class ProcessSlicer {
 public:
  using EnergyOf = std::function<Energy(HostTime, HostTime)>;
  using Weights = std::vector<double>;  // by slice

  // `traced`: of the GPUs with traced activity. Arguments outlive this.
  ProcessSlicer(const model::Recording& recording, HostTime begin, HostTime end,
                const SliceRequest& request, const std::vector<model::ActivitySlices>& traced);

  // What processes took from `begin` to `end`: by time as `above`, the energy to be divided.
  void add_portions(model::DomainId domain, HostTime begin, HostTime end,
                    std::span<const Energy> portions, const EnergyOf& above);
  // In proportion to `weights`. Without a positive one, the process's energies by time are unknown.
  void add(model::DomainId domain, std::size_t process, Energy energy, const Weights& weights);
  // Kernels by their own slices, idle time between launches by its time, and the energy of a
  // process without a trace by its use. Not what processes hold.
  void add_traced(const model::ActivityProfile& activity, const TracedSplit& split);
  void add_cpu_time(std::size_t process, HostTime begin, HostTime end, Duration time);

  Weights no_weights() const { return Weights(slices_.count, 0.0); }
  // Adds `amount`, evenly over the time.
  void spread(Weights& weights, HostTime begin, HostTime end, double amount) const;

  // The rows with the highest energies.
  model::ProcessSlices finish();

 private:
  // Values of one process, from its first slice on.
  struct Sums {
    std::size_t first = 0;
    std::vector<std::int64_t> values;
    std::int64_t total = 0;
    bool known = true;

    void add(std::size_t slice, std::int64_t value);
  };
  struct TracedWeights {
    Weights kernels;
    Weights idle_between;
  };

  std::pair<std::size_t, std::size_t> slices_within(HostTime begin, HostTime end) const;
  TracedWeights traced_weights(const model::ActivityProfile& activity, std::size_t process) const;

  const model::Recording& recording_;
  const std::vector<model::ActivitySlices>& traced_;
  model::ProcessSlices slices_;
  std::map<std::pair<std::size_t, model::DomainId>, Sums> energies_;  // microjoules
  std::map<std::size_t, Sums> cpu_times_;                             // nanoseconds
};

}  // namespace jouleprof::analysis
