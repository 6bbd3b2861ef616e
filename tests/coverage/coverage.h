// How often the truth lies within the interval, and how wide that is, of one row.
#pragma once

#include <algorithm>
#include <cmath>

#include "analysis/levels/board_levels.h"
#include "analysis/timeline/locked_load.h"
#include "analysis/timeline/recording_timelines.h"
#include "tests/coverage/rows.h"

namespace jouleprof::coverage {

struct Outcome {
  int runs = 0;
  int inside = 0;
  int absent = 0;
  double half_width = 0;  // median, of the truth
};

// A figure and half of its interval; absent: no figure.
struct Figure {
  double value = 0;
  double truth = 0;
  double half = 0;
};

inline std::optional<Figure> figure_of(const Row& row, const Run& run) {
  analysis::Timelines timelines = analysis::timelines_of(run.recording);
  if (!timelines[0]) return std::nullopt;
  auto m = timelines[0]->energy(at(run.begin), at(run.end));
  if (row.bounds == Row::Bounds::kRest) {
    const auto levels = analysis::board_levels(*timelines[0], run.recording.domains[0],
                                               run.recording, at(run.begin), at(run.end));
    if (!levels.rest) return std::nullopt;
    // It may have changed at any time of the work: both levels are to be inside.
    const double watts = levels.rest->power.watts();
    const bool after = std::abs(watts - run.rest_after) > std::abs(watts - kRestWatts);
    return Figure{watts, after ? run.rest_after : kRestWatts, levels.rest->error.watts()};
  }
  if (!m) return std::nullopt;
  // As a profile has it.
  const auto lock = analysis::suspected_lock(run.recording, run.recording.domains[0], *timelines[0],
                                             at(run.begin), at(run.end), kRestWatts);
  if (lock) {
    const double active = std::max(m->energy.joules() - kRestWatts * (run.end - run.begin), 0.0);
    analysis::widen(*m, Energy::joules(lock->error * active));
  }
  const Energy half = row.bounds == Row::Bounds::kError ? m->error : m->repeatability;
  return Figure{m->energy.joules(), run.joules, half.joules()};
}

inline Outcome outcome_of(
    const Row& row, unsigned first_seed, int runs,
    const std::function<void(unsigned, const Run&, const Figure&)>& outside = {}) {
  Outcome out;
  std::vector<double> widths;
  for (int i = 0; i < runs; ++i) {
    const unsigned seed = first_seed + static_cast<unsigned>(i);
    Random random(seed);
    const Run run = make_run(row.setting(random), seed);
    ++out.runs;
    const auto figure = figure_of(row, run);
    if (!figure) {
      ++out.absent;
      continue;
    }
    widths.push_back(figure->half / std::abs(figure->truth));
    const bool inside = std::abs(figure->value - figure->truth) <= figure->half + 1e-6;
    out.inside += inside;
    if (!inside && outside) outside(seed, run, *figure);
  }
  if (!widths.empty()) {
    const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
    std::nth_element(widths.begin(), middle, widths.end());
    out.half_width = *middle;
  }
  return out;
}

}  // namespace jouleprof::coverage
