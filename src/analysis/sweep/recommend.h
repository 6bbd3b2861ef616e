// Which setting of a sweep is best for an objective, within constraints.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/sweep/mean_draws.h"
#include "analysis/sweep/sweep.h"
#include "base/result.h"

namespace jouleprof::analysis {

enum class Objective {
  kEnergy,  // E
  kEdp,     // E t, the energy-delay product (Gonzalez and Horowitz 1996)
  kEd2p,    // E t^2
  kCost,    // eta E + (1 - eta) P_max t, with P_max the highest setting in watts (Zeus, NSDI 2023)
  kTime,    // t
};

std::optional<Objective> parse_objective(std::string_view word);  // energy, edp, ed2p, cost, time
std::string_view to_string(Objective objective);

struct RecommendOptions {
  Objective objective = Objective::kEnergy;
  double eta = 0.5;                    // of kCost, from 0 to 1
  std::optional<double> max_slowdown;  // of the work against the reference: 0.05 is 5 %
  std::optional<double> max_watts;     // of the mean power
  std::optional<double> reference;     // setting to compare with; absent: the highest
  unsigned draws = 2000;               // of the bootstrap
};

// A ratio with its interval of 95 %; absent where a setting was measured only once.
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
  std::optional<Change> excess;  // of its score over the least one; with repeated samples
  bool ruled_out = false;        // at 99 %: not the best, or slower than the constraint allows
  bool feasible = true;
  bool on_pareto_front = false;               // no other point takes less time and less energy
  std::optional<double> probability_of_best;  // by the bootstrap
};

struct Recommendation {
  std::vector<RatedPoint> points;  // in the sweep's order
  std::size_t best = 0;
  std::size_t reference = 0;
  // Points that are as good as the least score within error; the fastest of them is `best`.
  std::vector<std::size_t> ties;
  // Of `best`, against the setting found before the sweep, where that was measured.
  std::optional<Change> saving_against_found;
  std::optional<Change> slowdown_against_found;
  // At 95 %, no feasible setting has a score lower than that of `best` by more than this ratio.
  std::optional<double> regret;
};

// The feasible point with the least score. Where points were measured repeatedly, MeanDraws with a
// fixed seed gives the intervals, and of all points whose score does not differ from the least one
// at 95 % the fastest is taken. `sweep` outlives the result. Errors: invalid_argument for
// fewer than two points, eta outside of [0, 1], a reference that was not measured, cost of a knob
// that is not in watts; unavailable when no point meets the constraints.
Result<Recommendation> recommend(const Sweep& sweep, const RecommendOptions& options = {});

}  // namespace jouleprof::analysis
