// What drivers reported last of the processes on each GPU.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::session {

// Thread safety: none.
class GpuUses {
 public:
  // A use of a domain within another one counts for the outer one.
  explicit GpuUses(const std::vector<model::Domain>& domains);

  void append(const std::vector<model::GpuProcessUse>& uses);

  // Uses of one domain, by its place in the list, that were reported after `since`; each process
  // once, with the mean utilisation of its reports since end_tick(), or where there was none since
  // then, with that of the last report. A report without a utilisation makes the mean unknown.
  std::vector<model::GpuProcessUse> of(std::size_t domain, HostTime since) const;

  // A tick ends: means begin anew.
  void end_tick();

  // Forgets those reported before `t`.
  void forget_before(HostTime t);

 private:
  std::vector<std::size_t> outermost_;  // by place
  struct Reports {
    model::GpuProcessUse last;
    double sum = 0;  // of utilisations in this tick
    int count = 0;
    bool unknown = false;
  };
  std::map<std::pair<std::size_t, pid_t>, Reports> reports_;
  std::map<model::DomainId, std::size_t> places_;
};

// The weight of each use in the division of a GPU's energy. Empty: it cannot be divided.
//  - The only process on a GPU has all of it, whatever its utilisation.
//  - Of several, each its utilisation; where one's is unknown, the energy cannot be divided.
std::vector<double> weights_of(const std::vector<model::GpuProcessUse>& uses);

}  // namespace jouleprof::session
