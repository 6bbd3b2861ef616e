#include "report/results/bench.h"

#include <algorithm>

#include "report/total.h"

namespace jouleprof::report {
namespace {

using model::Measurement;

std::optional<JoulesPer> per(const std::optional<Measurement>& m, double count) {
  if (!m || !(count > 0)) return std::nullopt;
  return JoulesPer{m->energy.joules() / count, m->farthest().joules() / count,
                   m->repeatability.joules() / count, m->provenance};
}

// Whether the device that does the work is in the total. Without it, the sum of the others would
// pass for what the work takes.
bool has_worker(const Total& total, const analysis::BenchEnergy& energy) {
  if (!energy.device || total.lost) return false;
  const auto* worker = &energy.profile.domains[*energy.device];
  return std::ranges::find(total.counted, worker) != total.counted.end();
}

// The sum over the domains that count in the profile's total; absent unless all have a figure.
std::optional<Measurement> total_of_group(const analysis::BenchEnergy& energy,
                                          const model::WindowGroup& group) {
  const model::Profile& profile = energy.profile;
  const Total total = total_of(profile);
  if (!has_worker(total, energy)) return std::nullopt;
  Measurement sum;
  sum.provenance = model::Provenance::kUnavailable;
  for (const auto* domain : total.counted) {
    const auto place = static_cast<std::size_t>(domain - profile.domains.data());
    if (place >= group.energies.size()) return std::nullopt;
    const auto& part = group.energies[place];
    if (!part.energy || part.count < group.count) return std::nullopt;
    add(sum, *part.energy);
  }
  return sum;
}

void add_levels(BenchRow& row, const model::EnergyLevels& levels, double count) {
  row.rest = per(levels.rest, count);
  row.held = per(levels.held, count);
  row.active = per(levels.active, count);
}

BenchRow whole_row(const analysis::BenchEnergy& energy, const std::string& unit, double count) {
  BenchRow row{{}, unit, count, {}, {}, {}, {}, {}};
  if (const Total total = total_of(energy.profile); has_worker(total, energy)) {
    row.total = per(total.energy, count);
  }
  if (!energy.device || !(count > 0)) return row;
  const auto& domain = energy.profile.domains[*energy.device];
  row.device = per(domain.energy, count);
  add_levels(row, domain.levels, count);
  return row;
}

BenchRow phase_row(const analysis::BenchEnergy& energy, const model::BenchPhase& phase,
                   const model::WindowGroup& group, const std::string& unit, double count) {
  BenchRow row{phase.name, unit, count, {}, {}, {}, {}, {}};
  row.total = per(total_of_group(energy, group), count);
  if (energy.device && *energy.device < group.energies.size()) {
    const auto& of_device = group.energies[*energy.device];
    if (of_device.count == group.count) {
      row.device = per(of_device.energy, count);
      add_levels(row, of_device.levels, count);
    }
  }
  return row;
}

}  // namespace

std::vector<BenchRow> bench_rows(const model::BenchCase& bench,
                                 const analysis::BenchEnergy& energy) {
  const auto iterations = static_cast<double>(bench.iterations);
  std::vector<BenchRow> rows{whole_row(energy, "iteration", iterations)};
  for (const auto& unit : bench.units) {
    rows.push_back(whole_row(energy, unit.name, iterations * unit.per_iteration));
  }
  if (bench.macs) {
    rows.push_back(whole_row(energy, "GMAC", iterations * static_cast<double>(*bench.macs) * 1e-9));
  }
  if (bench.parameters && *bench.parameters > 0) {
    rows.push_back(whole_row(energy, "million parameters",
                             iterations * static_cast<double>(*bench.parameters) * 1e-6));
  }
  for (std::size_t i = 0; i < bench.phases.size() && i < energy.phases.size(); ++i) {
    const auto& phase = bench.phases[i];
    rows.push_back(phase_row(energy, phase, energy.phases[i], "iteration", iterations));
    for (const auto& unit : phase.units) {
      rows.push_back(
          phase_row(energy, phase, energy.phases[i], unit.name, iterations * unit.per_iteration));
    }
  }
  return rows;
}

}  // namespace jouleprof::report
