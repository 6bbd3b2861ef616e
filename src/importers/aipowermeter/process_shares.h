// What AIPowerMeter charged to each process: powers, shares of the CPU's time, memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/recording.h"

namespace jouleprof::importers {

// Adds up the records of one experiment. Energies are integrals by the trapezoidal rule within
// segments, as AIPowerMeter's own reader computes them: a process that a record does not list drew
// nothing then.
class ProcessShares {
 public:
  // `process` names a window: "process 16809", "processes of the experiment".
  void add_power(const std::string& process, model::DomainId domain, HostTime at, double watts);
  // Every process of the record at `at` has been added: those that are not among them drew nothing.
  void end_record(model::DomainId domain, HostTime at);
  void add_cpu_share(const std::string& process, double share);
  void add_memory(const std::string& process, double bytes);
  // Powers before and after are not joined.
  void end_segment();

  // One window a process, over all of `begin` to `end`; labels where there are figures.
  std::vector<model::ImportedWindow> windows(HostTime begin, HostTime end) const;

 private:
  struct Integral {
    std::optional<std::pair<HostTime, double>> last;  // within the segment
    double joules = 0;
    bool any = false;  // two values of one segment
  };
  struct Shares {
    std::map<model::DomainId, Integral> energies;
    double cpu_share_sum = 0;
    std::size_t cpu_shares = 0;
    std::optional<double> most_bytes;
  };
  std::map<std::string, Shares> processes_;
  std::map<model::DomainId, HostTime> last_records_;  // within the segment
};

}  // namespace jouleprof::importers
