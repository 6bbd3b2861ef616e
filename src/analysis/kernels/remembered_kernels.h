// What earlier runs know of this run's kernels, and what this run knows for later ones.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "analysis/kernels/regression/power_regression.h"
#include "model/activity/activity.h"

namespace jouleprof::analysis {

// A signature, or a variant of it, is known where an earlier run on `board` resolved the same
// signature with a mean time of a launch within 7 % and an SM clock within a quarter (or with both
// clocks unknown). From its clock to this run's, power is scaled as that of loops is, with the same
// doubt (power_by_clock()); times may differ as the clocks do. Its power is the mean of
// those runs; its sigma that of one more run: the least error of them, and the spread between runs
// (ErrorModel::between_runs, as two runs' worth of knowledge, and the observed deviations). In the
// table's order. Pooled signatures have no power of their own.
std::vector<KnownKernel> known_kernels(std::span<const model::RememberedKernel> remembered,
                                       const std::string& board, const ActivityTable& table,
                                       std::optional<double> sm_clock_hertz);

// What the model's own data resolved to +-50 % or better, without what earlier runs know: its power
// where nothing overlaps it. Without `observed`.
std::vector<model::RememberedKernel> resolved_kernels(const std::string& board,
                                                      const ActivityTable& table,
                                                      const KernelModel& model,
                                                      std::optional<double> sm_clock_hertz);

// Whether what earlier runs know of kernels agrees with this run's readings.
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
