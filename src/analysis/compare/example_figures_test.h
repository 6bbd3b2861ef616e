// Figures of runs as tests make them up.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/compare.h"

namespace jouleprof::analysis {

// A run of `joules` and 10 s on one GPU whose calibration error is 5 %, begun at minute `minute`.
inline RunFigures example_run(double joules, int minute = 0) {
  RunFigures run;
  run.name = std::to_string(minute) + ".jprof";
  run.host = "node";
  run.boot_id = "boot";
  run.started = RealTime{std::chrono::hours{400'000} + std::chrono::minutes{minute}};
  run.length = std::chrono::seconds{10};
  run.boards = {{"gpu0", "GPU-1"}};
  run.energy = {joules, 0.0001, {{"gpu0", 0.05}}};
  run.time = {10.0};
  run.power = {joules / 10, 0.0001, {{"gpu0", 0.05}}};
  return run;
}

inline std::vector<RunFigures> example_runs(const std::vector<double>& joules, int first_minute,
                                            int minutes) {
  std::vector<RunFigures> runs;
  for (const double each : joules) {
    runs.push_back(example_run(each, first_minute));
    first_minute += minutes;
  }
  return runs;
}

inline FigureRow example_row(std::string name, double joules) {
  return {std::move(name), "", 1, {joules, 0.001, {{"gpu0", 0.05}}}, {1.0}};
}

}  // namespace jouleprof::analysis
