// Energies by call stack: what flame graphs draw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/activity/activity_profile.h"

namespace jouleprof::report {

// One path of a flame graph.
struct EnergyStack {
  std::vector<std::string> frames;  // outermost first: device, phase, layers, kernel
  Energy energy;                    // of this path itself; negative only for unattributed energy
  Duration time{};                  // on the device
};

// Their energies sum to the measured energy of the device, to the microjoule: idle energy, energy
// between launches and unattributed energy are paths of their own. The names of kernels and layers
// that are not resolvable say so.
std::vector<EnergyStack> energy_stacks(const model::ActivityProfile& profile);

}  // namespace jouleprof::report
