// What a step of an inference server costs: its energy and time as linear functions of what it
// computed.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/kernels/kernel_model.h"
#include "analysis/timeline/sensors/observed_power.h"
#include "model/activity/serving.h"

namespace jouleprof::analysis {

// Of a request in a step: prefill tokens, decode tokens, products of prefill tokens with the tokens
// that they attend to, tokens of context that decoding reads.
inline constexpr std::size_t kWorkKinds = 4;
using StepWork = std::array<double, kWorkKinds>;

StepWork work_of(const model::StepShare& share);

// A step on one board; times are seconds of a TimeBase.
struct BoardStep {
  double begin = 0;
  double end = 0;
  StepWork work{};       // of all its requests
  bool prefill = false;  // of any

  double time() const { return end - begin; }
};

// Power in a step = idle + step_watts + what its work adds; the watts come from the regression that
// kernels have, with the sensors' response. The time of a step, which is known exactly, is another
// regression: fixed + fixed while any request prefills + what the work adds. Both together say what
// of a step's energy goes with its work.
class StepModel {
 public:
  // `steps`: in order of their begins; they may overlap. Absent without rows.
  static std::optional<StepModel> fit(std::span<const BoardStep> steps, TimeBase time,
                                      std::span<const ObservedPower> observed, const IdleHint& idle,
                                      double time_constant);

  // Above idle_watts().
  double joules_of(const BoardStep& step) const;
  // What goes with the work, its time included: of a request or of all of them.
  double own_joules(const StepWork& work) const;
  // What any prefill adds to a step, however long it is.
  double prefill_joules() const;
  // The derivatives of joules_of() and own_joules() by the regression's watts.
  Eigen::VectorXd factor_of(double time, const StepWork& work) const;
  Eigen::VectorXd own_factor(const StepWork& work) const;
  Eigen::VectorXd prefill_factor() const;

  double variance(const Eigen::VectorXd& factor) const { return solution_.variance(factor); }
  double idle_watts() const { return solution_.watts[0]; }
  double idle_sigma() const;
  double step_watts() const { return solution_.watts[1]; }
  double explained() const { return solution_.explained; }
  std::size_t rows() const { return solution_.rows; }
  // The steps' numbers of requests, or their work, hardly vary: the fixed part of a step and the
  // requests' own cannot be separated.
  bool is_fixed_part_known() const { return fixed_known_; }

 private:
  void fit_times(std::span<const BoardStep> steps);

  PowerSolution solution_;                     // idle, time, the work, unused
  std::array<double, kWorkKinds> scale_{};     // seconds of a column for one unit of work
  std::array<double, kWorkKinds> own_time_{};  // seconds for one unit of work
  double prefill_time_ = 0;                    // seconds
  bool fixed_known_ = true;
};

}  // namespace jouleprof::analysis
