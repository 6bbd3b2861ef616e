// What earlier runs know of this run's kernels, and what this run knows for later ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "model/activity/remembered_kernel.h"

namespace jouleprof::analysis {

// The relative standard deviation of a kernel's power between runs on one board, where too few runs
// say more. Two runs on one H200 differed by 1.3 % (median of the signatures) to 8.8 %.
inline constexpr double kBetweenRuns = 0.05;

// A signature, or a variant of it, is known where an earlier run on `board` resolved the same
// signature with a mean time of a launch within 7 % and an SM clock within 3 % (or with both clocks
// unknown). Its power is the mean of those runs; its sigma that of one more run: the error of the
// mean, and the spread between runs (kBetweenRuns, as two runs' worth of knowledge, and the
// observed deviations). In the table's order. Pooled signatures have no power of their own.
std::vector<KnownKernel> known_kernels(std::span<const model::RememberedKernel> remembered,
                                       const std::string& board, const ActivityTable& table,
                                       std::optional<double> sm_clock_hertz);

// What the model's own data resolved to +-20 % or better, without what earlier runs know.
// Signatures that overlap with others for a fifth of their time are left out. Without `observed`.
std::vector<model::RememberedKernel> resolved_kernels(const std::string& board,
                                                      const ActivityTable& table,
                                                      const KernelModel& model,
                                                      std::optional<double> sm_clock_hertz);

}  // namespace jouleprof::analysis
