// Pairs of simulated runs, and how often compare() has a verdict about them.
#pragma once

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/compare.h"
#include "analysis/compare/sides.h"

namespace jouleprof::decisions {

struct Laboratory {
  std::string name;
  double correlation = 0;  // of the power's noise, from one run to the next
  double noise = 0.01;     // of the power, relative
  double warm_up = 0;      // of the first run's power
  double drift = 0;        // of the power, from run to run
  double spread = 0.007;   // of the time: Student's t with four degrees of freedom
};

inline std::vector<Laboratory> laboratories() {
  return {{"independent noise"},
          {"noise that lasts, 0.3 from run to run", 0.3},
          {"noise that lasts, 0.5", 0.5},
          {"noise that lasts, 0.8", 0.8},
          {"the same, 0.5, and a warming board", 0.5, 0.01, 0.02, 0.0003},
          {"heavy tails of time alone", 0, 0.001},
          {"sensor noise alone", 0, 0, 0, 0, 0}};
}

// Each side's runs, in the order in which `compare --pairs` makes them.
inline std::pair<std::vector<analysis::RunFigures>, std::vector<analysis::RunFigures>> pairs_of(
    const Laboratory& lab, unsigned pairs, double effect, std::mt19937_64& random) {
  constexpr double kRepeatability = 0.0005;  // half of a 95 % interval
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(4);
  std::vector<analysis::RunFigures> sides[2];
  double lasting = normal(random);
  for (unsigned at = 0; at < 2 * pairs; ++at) {
    lasting = lab.correlation * lasting +
              std::sqrt(1 - lab.correlation * lab.correlation) * normal(random);
    const bool is_after = (at % 2 == 1) != analysis::is_after_first(at / 2);
    const double power = std::log(250) + lab.noise * lasting - lab.warm_up * std::exp(-(at / 3.0)) +
                         lab.drift * at + kRepeatability / 1.96 * normal(random) +
                         (is_after ? std::log1p(effect) : 0);
    const double time = std::log(10) + lab.spread * heavy(random);
    analysis::RunFigures run;
    run.name = std::to_string(at);
    run.boards = {{"gpu0", "GPU-1"}};
    run.energy = {std::exp(power + time), kRepeatability, {{"gpu0", 0.05}}};
    run.time = {std::exp(time)};
    run.power = {std::exp(power), kRepeatability, {{"gpu0", 0.05}}};
    sides[is_after].push_back(std::move(run));
  }
  return {std::move(sides[0]), std::move(sides[1])};
}

// Verdicts of "lower" and "higher": of energy, time and power.
struct Verdicts {
  int comparisons = 0;
  std::array<int, 3> lower{};
  std::array<int, 3> higher{};
};

inline void add(Verdicts& verdicts, const Laboratory& lab, unsigned pairs, double effect,
                std::mt19937_64& random) {
  const auto [before, after] = pairs_of(lab, pairs, effect, random);
  const auto made = analysis::compare(before, after, {.paired = true});
  ++verdicts.comparisons;
  const analysis::Difference* differences[] = {&made->energy, &made->time, &made->power};
  for (std::size_t i = 0; i < 3; ++i) {
    verdicts.lower[i] += differences[i]->verdict == analysis::Verdict::kLower ? 1 : 0;
    verdicts.higher[i] += differences[i]->verdict == analysis::Verdict::kHigher ? 1 : 0;
  }
}

}  // namespace jouleprof::decisions
