// The energies of windows, as formats write them.
#pragma once

#include <functional>

#include "analysis/run.h"

namespace jouleprof::report {

// The energy of a window in the domain at this place of the recording's list.
using WindowEnergyOf =
    std::function<Result<model::Measurement>(const model::Window& window, std::size_t domain)>;

// `run` outlives it.
inline WindowEnergyOf window_energy_of(const analysis::Run& run) {
  return [&run](const model::Window& window, std::size_t domain) {
    return run.energy(domain, window);
  };
}

}  // namespace jouleprof::report
