// Sweeps of simulated boards whose best setting is known, and what recommend() makes of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "analysis/sweep/recommend.h"

namespace jouleprof::decisions {

// A board's truth at its limits, highest first.
struct Board {
  std::vector<double> limits;
  std::vector<double> seconds;
  std::vector<double> joules;
};

struct BoardClass {
  std::string name;
  // Energy at a limit, given as 0 (the lowest) to 1 (the highest), relative.
  std::function<double(double, std::mt19937_64&)> energy;
};

inline std::vector<BoardClass> board_classes() {
  const auto valley = [](double x, double at, double depth) {
    return -depth * std::exp(-(x - at) * (x - at) / 0.01);
  };
  return {
      {"one minimum", [](double x, auto&) { return 1 + 0.8 * (x - 0.4) * (x - 0.4); }},
      {"flat", [](double x, auto&) { return 1 + 0.01 * (x - 0.4) * (x - 0.4); }},
      {"shallow", [](double x, auto&) { return 1 + 0.08 * (x - 0.5) * (x - 0.5); }},
      {"minimum at the lowest", [](double x, auto&) { return 1 + 0.5 * x; }},
      {"minimum at the highest", [](double x, auto&) { return 1.5 - 0.5 * x; }},
      {"two minima",
       [=](double x, auto&) { return 1 + valley(x, 0.2, 0.1) + valley(x, 0.8, 0.105); }},
      {"many minima",
       [](double, std::mt19937_64& random) {
         return std::exp(std::normal_distribution<double>(0, 0.25)(random));
       }},
  };
}

inline Board board_of(const BoardClass& kind, std::mt19937_64& random) {
  Board board;
  const double slowest = std::uniform_real_distribution<double>(0.1, 0.9)(random);
  const double bend = std::uniform_real_distribution<double>(1, 3)(random);
  for (int i = 10; i >= 0; --i) {
    const double x = i / 10.0;
    board.limits.push_back(200 + 500 * x);
    board.seconds.push_back(10 * (1 + slowest * std::pow(1 - x, bend)));
    board.joules.push_back(3000 * kind.energy(x, random));
  }
  return board;
}

struct SweepPlan {
  int repeats = 2;
  double noise = 0.01;    // of each time and energy, relative
  double drift = 0;       // of the energy, over the whole sweep
  bool in_blocks = true;  // in random order within blocks, as our own sweeps are; else in order
};

inline analysis::Sweep sweep_of(const Board& board, const SweepPlan& plan,
                                std::mt19937_64& random) {
  analysis::Sweep sweep;
  sweep.knob = "power_limit_watts";
  for (const double limit : board.limits) sweep.points.push_back({limit, {}});
  std::normal_distribution<double> noise(0, plan.noise);
  std::vector<std::size_t> order(board.limits.size());
  const double runs = static_cast<double>(order.size()) * plan.repeats;
  double done = 0;
  for (int block = 1; block <= plan.repeats; ++block) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (plan.in_blocks) std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const double drifted = 1 + plan.drift * done++ / runs;
      analysis::SweepSample sample{board.seconds[i] * std::exp(noise(random)),
                                   board.joules[i] * drifted * std::exp(noise(random)),
                                   {}};
      if (plan.in_blocks) sample.block = static_cast<unsigned>(block);
      sweep.points[i].samples.push_back(sample);
    }
  }
  return sweep;
}

// The least mean energy: what a choice without statistics takes.
inline std::size_t argmin(const analysis::Sweep& sweep) {
  std::size_t least = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (sweep.points[i].mean_joules() < sweep.points[least].mean_joules()) least = i;
  }
  return least;
}

struct Regrets {
  double sum = 0;
  double worst = 0;
  void add(double regret) {
    sum += regret;
    worst = std::max(worst, regret);
  }
};

struct SweepOutcome {
  int sweeps = 0;
  Regrets ours;
  Regrets of_argmin;
  int worse = 0;            // the true regret is beyond the one stated
  int less_likely = 0;      // another setting has a greater probability of being the best
  int too_slow = 0;         // with --max-slowdown 5%, in truth
  int argmin_too_slow = 0;  // of the least energy among settings whose mean meets it
};

inline void add(SweepOutcome& outcome, const Board& board, const analysis::Sweep& sweep,
                unsigned draws) {
  constexpr double kMaxSlowdown = 0.05;
  analysis::RecommendOptions options;
  options.draws = draws;
  const auto free = analysis::recommend(sweep, options);
  options.max_slowdown = kMaxSlowdown;
  const auto limited = analysis::recommend(sweep, options);
  ++outcome.sweeps;
  const double least = *std::min_element(board.joules.begin(), board.joules.end());
  const double regret = board.joules[free->best] / least - 1;
  outcome.ours.add(regret);
  outcome.of_argmin.add(board.joules[argmin(sweep)] / least - 1);
  if (free->regret) outcome.worse += 1 - least / board.joules[free->best] > *free->regret ? 1 : 0;
  const auto& points = free->points;
  outcome.less_likely += std::any_of(points.begin(), points.end(), [&](const auto& point) {
    return point.probability_of_best > points[free->best].probability_of_best;
  });
  const auto is_slow = [&](std::size_t i) {
    return board.seconds[i] > (1 + kMaxSlowdown) * board.seconds.front();
  };
  outcome.too_slow += is_slow(limited->best) ? 1 : 0;
  std::size_t fast = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const bool meets =
        sweep.points[i].mean_seconds() <= (1 + kMaxSlowdown) * sweep.points.front().mean_seconds();
    if (meets && sweep.points[i].mean_joules() < sweep.points[fast].mean_joules()) fast = i;
  }
  outcome.argmin_too_slow += is_slow(fast) ? 1 : 0;
}

}  // namespace jouleprof::decisions
