// The power of each kernel signature of one GPU, and the energy of sets of launches with its error.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/power_regression.h"
#include "analysis/kernels/power_rows.h"

namespace jouleprof::analysis {

// The prior of the idle power.
struct IdleHint {
  double watts = 0;
  double sigma = 0;
};

class KernelModel {
 public:
  // Seconds of one kernel signature, or of one variant of it (index into ActivityTable::variants).
  struct Use {
    std::uint32_t kernel_class = 0;
    std::uint32_t variant = model::kNone;
    double busy = 0;
    double overlapped = 0;  // of `busy`, while other launches ran
    double idle_between = 0;
  };
  struct Estimate {
    double joules = 0;  // above idle
    double sigma = 0;   // without the sensor's calibration error
  };

  // `limit_watts`: the board's power limit, 0 where it is not known. `clock_variation`: relative
  // standard deviation of all kernels' power due to changing clocks; the regression could mistake
  // it for differences among kernels. Absent without rows. `table` outlives the model.
  static std::optional<KernelModel> fit(const ActivityTable& table,
                                        std::span<const ObservedPower> observed,
                                        const IdleHint& idle, double limit_watts,
                                        double time_constant, double clock_variation);

  Estimate energy_of(std::span<const Use> uses) const;
  // The joules of energy_of(), without its error.
  double joules_of(const Use& use) const;
  // All uses of a kernel signature: one, or one for each of its variants.
  std::vector<Use> all_of(std::uint32_t kernel_class) const;

  double idle_watts() const { return solution_.watts[0]; }
  double idle_sigma() const;
  double idle_between_watts() const { return solution_.watts[solution_.watts.size() - 1]; }
  const PowerSolution& solution() const { return solution_; }

  // Collinear kernel signatures: lists of two or more, longest busy time first. Each one's 95 %
  // error exceeds half of its energy, and is negatively correlated with that of another one.
  std::vector<std::vector<std::uint32_t>> groups() const;
  // Its busy time is too short for a column of its own; all such signatures share one column.
  bool is_pooled(std::uint32_t kernel_class) const;

 private:
  explicit KernelModel(const ActivityTable& table) : table_(&table) {}
  void choose_columns();
  template <class Add>
  void each_factor(const Use& use, Add add) const;
  Eigen::VectorXd factor_of(std::span<const Use> uses) const;

  const ActivityTable* table_;
  std::vector<std::uint32_t> column_of_;  // by ActivityTable::Entry's numbers
  std::size_t own_columns_ = 0;
  std::size_t overlapped_columns_ = 0;
  std::size_t columns_ = 0;
  double clock_variation_ = 0;
  PowerSolution solution_;
};

}  // namespace jouleprof::analysis
