// Whether what earlier runs know of kernels agrees with this run's readings.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "analysis/kernels/regression/power_regression.h"

namespace jouleprof::analysis {

// The indices of `known` that `own` contradicts, in order. `own` was solved without them;
// `model_error` is the relative error of the regression's model of one kernel.
//
// Each known power is compared with what the readings and all other known powers predict for it
// (studentised deletion residuals, Cook and Weisberg 1982). While one is more than 2.5 sigma away,
// the worst is removed, together with all that would explain the readings nearly as well in its
// place: where collinear kernels together draw another power than known, which of them changed
// can't be decided, and none of their known powers is used.
std::vector<std::size_t> contradicted(const PowerSolution& own, std::span<const KnownPower> known,
                                      double model_error);

}  // namespace jouleprof::analysis
