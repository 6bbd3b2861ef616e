// A named interval of a machine whose energy was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/profile.h"

namespace jouleprof::analysis {

struct MachineWindow {
  std::string name;
  HostTime begin{};
  std::optional<HostTime> end;  // absent: it is open
  // Whether its energy is known: all sensors have reported the interval, or had some seconds to.
  // From then on it never changes.
  bool is_settled = false;
  std::vector<Result<model::Measurement>> energies;  // by domain, in the order of the machine's
};

}  // namespace jouleprof::analysis
