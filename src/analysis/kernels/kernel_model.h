// The power of each kernel signature of one GPU, and the energy of sets of launches with its error.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <span>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/activity/sm_clocks.h"
#include "analysis/kernels/kernel_evidence.h"
#include "analysis/kernels/regression/power_regression.h"
#include "analysis/kernels/regression/power_rows.h"

namespace jouleprof::analysis {

// What earlier runs know of a kernel signature, or of one variant of it.
struct KnownKernel {
  std::uint32_t kernel_class = 0;
  std::uint32_t variant = model::kNone;
  double watts = 0;  // above idle, while no other launch runs
  double sigma = 0;  // of this run's power: the spread between runs is in it
  std::size_t runs = 0;
  RealTime first{};
  RealTime last{};
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

  // `limit_watts`: the board's power limit, 0 where it is not known. `clocks`: of the
  // program; what they leave open, the regression could mistake for differences among kernels.
  // `known`: by earlier runs; those that this run contradicts are
  // not used. `reruns`: what is known of the loops in `observed`. Absent without rows. `table`
  // outlives the model.
  static std::optional<KernelModel> fit(const ActivityTable& table,
                                        std::span<const ObservedPower> observed,
                                        const IdleHint& idle, double limit_watts,
                                        double time_constant, const SmClocks& clocks,
                                        std::vector<KnownKernel> known = {},
                                        const ReplayCheck& reruns = {});

  Estimate energy_of(std::span<const Use> uses) const;
  // Rests on this run's readings alone.
  Estimate own_energy_of(std::span<const Use> uses) const;
  // Whether the estimate would be wider by a quarter or more without earlier runs.
  bool rests_on_known(std::span<const Use> uses) const;
  const std::vector<KnownKernel>& known() const { return known_; }  // that were used
  const std::vector<KnownKernel>& contradicted() const { return contradicted_; }
  // The joules of energy_of(), without its error.
  double joules_of(const Use& use) const;
  // The energy of busy seconds in a bin; the sum over a bin's entries is that of its launches.
  double joules_of(const ActivityTable::Entry& entry) const;
  // All uses of a kernel signature: one, or one for each of its variants.
  std::vector<Use> all_of(std::uint32_t kernel_class) const;

  // The load is locked to the sensors' samples, which may be wrong by so much of its energy.
  void set_sampling_error(double ratio);
  double sampling_error() const { return sampling_error_; }
  // The part of all kernels' energy by which the parts exceed what was measured, beyond its errors.
  void set_excess(double ratio) { excess_ = ratio; }

  double idle_watts() const { return solution_.watts[0]; }
  double idle_sigma() const;
  double idle_between_watts() const { return solution_.watts[solution_.watts.size() - 1]; }
  // Launches without a record seem to have run between the others.
  bool runs_between() const { return runs_between_; }
  const PowerSolution& solution() const { return solution_; }

  // Collinear kernel signatures: lists of two or more, longest busy time first. Each one's 95 %
  // error exceeds half of its energy, and is negatively correlated with that of another one.
  std::vector<std::vector<std::uint32_t>> groups() const;
  // It has no column of its own: all such signatures share one, and each one's power is as
  // uncertain as the prior of a signature.
  bool is_pooled(std::uint32_t kernel_class) const;
  // Because of their number, not because its busy time is short.
  bool is_above_cap(std::uint32_t kernel_class) const { return above_cap_[kernel_class]; }
  // The watts at a bound of what a kernel can draw, 0 or the highest, where the readings alone
  // would put its power beyond.
  std::optional<double> bound_of(std::uint32_t kernel_class) const;
  // False: what ran when explains neither the readings' variance nor their mean.
  bool explains() const { return explains_; }

 private:
  explicit KernelModel(const ActivityTable& table) : table_(&table) {}
  void choose_columns();
  void scale_loops(std::span<const LoopPower> loops, PowerRows& rows) const;
  // No kernel's power is negative or above the highest, also where it differs from its signature's.
  void solve(const PowerRows& rows, std::vector<PowerPrior>& priors, const PowerRows* others,
             std::span<const KnownPower> known = {});
  template <class Add>
  void each_factor(const Use& use, Add add) const;
  Eigen::VectorXd factor_of(std::span<const Use> uses) const;
  Estimate energy_by(const PowerSolution& solution, std::span<const Use> uses) const;
  void doubt_clocks(PowerRows& rows) const;
  KnownPower power_of(const KnownKernel& known) const;
  // The column in which a use's power differs from that of all others.
  std::size_t own_column(const Use& use) const;
  double deviation_of(const Use& use) const;  // relative, at 95 %
  void add_doubts(PowerSolution& solution, const PowerRows& rows,
                  const std::vector<PowerPrior>& priors, std::span<const PowerRows> others,
                  std::span<const KnownPower> known) const;
  void solve_with_known(PowerRows& rows, std::vector<PowerPrior>& priors, const PowerRows* also,
                        std::span<PowerRows> others, std::vector<KnownKernel> known);

  const ActivityTable* table_;
  std::vector<std::uint32_t> column_of_;  // by ActivityTable::Entry's numbers
  std::vector<bool> above_cap_;           // by signature
  std::vector<bool> shares_overlapped_;   // by signature: its overlapped time has no own column
  std::size_t own_columns_ = 0;
  std::size_t overlapped_columns_ = 0;
  std::size_t columns_ = 0;
  SmClocks::Variation clocks_;
  double sampling_error_ = 0;
  double excess_ = 0;
  double dropped_share_ = 0;  // of the launches
  bool runs_between_ = false;
  double held_sigma_ = 0;
  double own_sigma_ = 0;  // watts, of a signature's power before the readings
  double overlapped_sigma_ = 0;
  double highest_ = 0;  // watts above idle
  bool explains_ = true;
  std::vector<DeviatingKernel> deviating_;
  PowerSolution solution_;
  std::optional<PowerSolution> own_;  // without earlier runs; absent: as solution_
  std::vector<KnownKernel> known_;
  std::vector<KnownKernel> contradicted_;
};

}  // namespace jouleprof::analysis
