// Which setting of a sweep is best for an objective, within constraints.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/sweep/sweep.h"
#include "base/result.h"

namespace jouleprof::analysis {

enum class Objective {
  kEnergy,  // E
  kEdp,     // E t, the energy-delay product (Gonzalez and Horowitz 1996)
  kEd2p,    // E t^2
  kCost,    // eta E + (1 - eta) P_max t, P_max: the highest limit, times GPUs (Zeus, NSDI 2023)
  kTime,    // t
};

std::optional<Objective> parse_objective(std::string_view word);  // energy, edp, ed2p, cost, time
std::string_view to_string(Objective objective);

// A setting is feasible where it meets a constraint with this probability, and so do all settings
// between it and the constraint's safe end: the reference for time, the lowest setting for power.
// In that fixed order, one setting at most is taken wrongly in 5 % of sweeps, however many are
// looked at (Maurer, Hothorn and Lehmacher 1995).
inline constexpr double kConstraintConfidence = 0.95;

struct RecommendOptions {
  Objective objective = Objective::kEnergy;
  double eta = 0.5;                    // of kCost, from 0 to 1
  std::optional<double> max_slowdown;  // of the work against the reference: 0.05 is 5 %
  std::optional<double> max_watts;     // of the mean power
  std::optional<double> reference;     // setting to compare with; absent: the highest
  unsigned draws = 2000;               // of the model
};

// A ratio with its interval of 95 %; absent where no setting was measured twice.
struct Change {
  double ratio = 0;
  std::optional<Interval> interval;
};

struct RatedPoint {
  const SweepPoint* point = nullptr;
  SweepSample mean;  // of its samples; of runs in blocks: in an average block
  Change slowdown;   // of time against the reference: 0.1 takes 10 % longer
  Change saving;     // of energy against the reference: 0.2 takes 20 % less
  double score = 0;
  bool ruled_out = false;  // at 99 %: not the best, or slower than the constraint allows
  bool within = true;      // its means meet the constraints
  bool feasible = true;    // so do its errors, as kConstraintConfidence has it
  std::optional<double> probability_within;   // that it meets all constraints; with any of them
  bool on_pareto_front = false;               // no other point takes less time and less energy
  std::optional<double> probability_of_best;  // among feasible ones
};

struct Recommendation {
  std::vector<RatedPoint> points;  // in the sweep's order
  std::size_t best = 0;
  std::size_t reference = 0;
  // Feasible points whose score does not differ from that of `best` at 95 %, and `best`.
  std::vector<std::size_t> ties;
  // The change by `best` against the setting found before the sweep, where that was measured.
  std::optional<Change> saving_against_found;
  std::optional<Change> slowdown_against_found;
  // At 95 %, no setting that meets the constraints has a score lower than that of `best` by more
  // than this share of it.
  std::optional<double> regret;
};

// The feasible point that most probably has the least score; where no setting was measured twice,
// the one with the least score. Probabilities and intervals come from draws of the BlockModel with
// a fixed seed. `sweep` outlives the result. Errors: invalid_argument for fewer than two points,
// eta outside of [0, 1], a reference that was not measured, cost of a knob that is not in watts;
// unavailable when no point is feasible.
Result<Recommendation> recommend(const Sweep& sweep, const RecommendOptions& options = {});

}  // namespace jouleprof::analysis
