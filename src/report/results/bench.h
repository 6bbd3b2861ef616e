// A benchmark, as people and programs read it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "analysis/bench/bench_energy.h"
#include "base/result.h"
#include "model/bench.h"
#include "report/cells.h"

namespace jouleprof::report {

struct BenchResult {
  model::BenchCase bench;
  Result<analysis::BenchEnergy> energy;
};

struct BenchOptions {
  bool card = false;  // list the model's layers
};

// Joules of one unit of work, with the ends of their 95 % interval.
struct JoulesPer {
  double joules = 0;
  double error = 0;          // to the farther end of the 95 % interval
  double repeatability = 0;  // the same without the calibration error
  model::Provenance provenance = model::Provenance::kMeasured;

  // The interval's ends: energy cannot be negative; a small figure above idle may be, by noise, and
  // is in its interval then, too.
  double low() const { return std::max(joules - error, std::min(joules, 0.0)); }
  double high() const { return joules + error; }
};

// What one unit of work takes: an iteration, a sample, a token, 1e9 multiply-accumulates.
struct BenchRow {
  std::string phase;  // empty: the whole iteration
  std::string unit;
  double count = 0;                 // in all iterations
  std::optional<JoulesPer> device;  // of the domain that does the work
  std::optional<JoulesPer> total;
  // The levels of `device`; absent where the level is unknown.
  std::optional<JoulesPer> rest;
  std::optional<JoulesPer> held;
  std::optional<JoulesPer> active;
};

std::vector<BenchRow> bench_rows(const model::BenchCase& bench,
                                 const analysis::BenchEnergy& energy);

std::string bench_to_text(const std::vector<BenchResult>& results, const BenchOptions& options = {},
                          const TextOptions& text = {});
// The documented JSON object (docs/json.md).
std::string bench_to_json(const model::BenchDocument& document,
                          const std::vector<BenchResult>& results);
// One row for each case, phase and unit, with a header. What is absent is an empty field.
std::string bench_to_csv(const std::vector<BenchResult>& results);

// Energy of one inference, from a power log and a latency, as people read it.
// A table for each device; `latency` is that of one inference.
std::string latency_energy_to_text(const std::vector<analysis::DevicePower>& devices,
                                   Duration latency, const TextOptions& text = {});

}  // namespace jouleprof::report
