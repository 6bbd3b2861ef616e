#include "report/text/bench_cells.h"

#include <algorithm>
#include <cmath>

#include "report/quantity.h"
#include "report/text/table.h"

namespace jouleprof::report {

std::string joules_text(double joules) {
  if (joules != 0 && std::abs(joules) < 1e-3) {
    return std::abs(joules) < 1e-6 ? number_text(joules * 1e9) + " nJ"
                                   : number_text(joules * 1e6) + " uJ";
  }
  return energy_text(Energy::joules(joules));
}

std::string seconds_text(double s) { return duration_text(duration_of(s)); }

std::string plus_minus(double half, double of, bool ascii) {
  if (!(of > 0)) return "-";
  return (ascii ? "+-" : "±") + percent_text(half / of);
}

std::vector<std::string> bench_comparison(const std::vector<BenchResult>& results,
                                          const TextOptions& text) {
  Table table({"batch", "latency", "p99", "samples/s", "energy per sample", "95 %", "total", "W"});
  for (const auto& result : results) {
    const auto& bench = result.bench;
    const double samples = static_cast<double>(bench.batch);
    std::vector<Cell> row{{std::to_string(bench.batch), Style::kBold},
                          {seconds_text(bench.latency.median)},
                          {seconds_text(bench.latency.p99)},
                          {number_text(samples / bench.latency.mean)}};
    std::vector<Cell> figures{{"-"}, {"-"}, {"-"}, {"-"}};
    if (result.energy) {
      for (const auto& r : bench_rows(bench, *result.energy)) {
        if (!r.phase.empty() || r.unit != "sample") continue;
        if (r.device) {
          figures[0] = {joules_text(r.device->joules), Style::kBold};
          figures[1] = {plus_minus(r.device->error, r.device->joules, text.ascii)};
        }
        if (r.total) figures[2] = {joules_text(r.total->joules)};
      }
      const auto& energy = *result.energy;
      if (energy.device && energy.profile.domains[*energy.device].mean_power) {
        figures[3] = {number_text(energy.profile.domains[*energy.device].mean_power->watts())};
      }
    }
    row.insert(row.end(), figures.begin(), figures.end());
    table.add(std::move(row));
  }
  return table.lines(static_cast<std::size_t>(std::max(text.width, 60)), text.colour);
}

}  // namespace jouleprof::report
