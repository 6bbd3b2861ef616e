// Watts of each kernel class of one GPU, with what is uncertain about them.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/power_regression.h"
#include "analysis/kernels/power_rows.h"

namespace jouleprof::analysis {

// What is known of the idle power beforehand.
struct IdleHint {
  double watts = 0;
  double sigma = 0;
};

class KernelModel {
 public:
  // Busy and idle seconds of one class, or of one variant of it (index into
  // ActivityTable::variants).
  struct Use {
    std::uint32_t kernel_class = 0;
    std::uint32_t variant = model::kNone;
    double busy = 0;
    double overlapped = 0;  // of it, beside other launches
    double gap = 0;
  };
  struct Estimate {
    double joules = 0;  // above idle
    double sigma = 0;   // without the sensor's gain
  };

  // `limit_watts`: the board's power limit, 0 where it is not known. `sway`: by how much the power
  // of all kernels changed with the clocks, one sigma; it could pass for differences among kernels.
  // Absent when there is no row. `table` outlives the model.
  static std::optional<KernelModel> fit(const ActivityTable& table, std::span<const SeenPower> seen,
                                        const IdleHint& idle, double limit_watts, double rise,
                                        double sway);

  Estimate energy_of(std::span<const Use> uses) const;
  // The same, without what is uncertain about it.
  double joules_of(const Use& use) const;
  // Of a class that has variants: of each.
  std::vector<Use> all_of(std::uint32_t kernel_class) const;

  double idle_watts() const { return solution_.watts[0]; }
  double idle_sigma() const;
  double gap_watts() const { return solution_.watts[solution_.watts.size() - 1]; }
  double mean_busy_watts() const { return mean_busy_; }  // above idle
  const PowerSolution& solution() const { return solution_; }
  const SensorTiming& timing() const { return timing_; }

  // Classes that the data can't tell apart: lists of two or more, greatest energy first. Each has
  // an interval of more than half of its energy, and errs against another of its list.
  std::vector<std::vector<std::uint32_t>> groups() const;
  // Too little of the time to have watts of its own: it has those of all such classes together.
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
  SensorTiming timing_;
  double mean_busy_ = 0;
  double sway_ = 0;
  PowerSolution solution_;
};

}  // namespace jouleprof::analysis
