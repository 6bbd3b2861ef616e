#include "analysis/command_energy.h"

#include <algorithm>
#include <cmath>

#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::CommandEnergy;
using model::DomainProfile;
using model::Measurement;

// A share of a device's energy, that machines' own processes stay below.
constexpr double kUsed = 0.1;

bool is_used_by_others(const DomainProfile& d, const BoardLevels& levels) {
  const Energy others = d.others.value_or(Energy{});
  if (d.domain.kind == model::DomainKind::kGpu) return levels.shared || others > Energy{};
  return others.joules() > kUsed * d.energy->energy.joules();
}

// Energy is divided by use, as if a unit of it drew the same power in all families. How wrong that
// is where it draws twice as much in one of them.
double division_joules(Energy own, Energy others) {
  const double a = std::max(own.joules(), 0.0);
  const double b = std::max(others.joules(), 0.0);
  return a + b > 0 ? a * b / (a + b + std::min(a, b)) : 0;
}

// Of the sensor's error, what a part of its energy has.
double part_of(const Measurement& whole, Energy part) {
  if (whole.energy <= Energy{}) return 1;
  return std::min(std::abs(part.joules() / whole.energy.joules()), 1.0);
}

CommandEnergy all_of(const DomainProfile& d) {
  const Energy rest = d.levels.rest ? d.levels.rest->energy : Energy{};
  CommandEnergy all{*d.energy, d.energy->energy - rest, {}, {}, false};
  if (d.levels.rest) all.rest = rest;
  return all;
}

}  // namespace

std::string no_command_reason(const model::Recording& recording) {
  const auto& source = recording.run.source;
  if (source == "monitor" || source == "serve")
    return "the recording is of a machine, not a command";
  if (source == "library" && recording.process_readings.empty()) {
    return "a program that records by itself reads no processes: energies are of whole devices";
  }
  return {};
}

std::optional<CommandEnergy> command_energy(const model::Recording& recording,
                                            const DomainProfile& d, Energy processes,
                                            const BoardLevels& levels) {
  if (!d.energy || !no_command_reason(recording).empty()) return std::nullopt;
  if (recording.process_readings.empty()) return all_of(d);
  const Measurement& whole = *d.energy;
  const Energy others = d.others.value_or(Energy{});
  const Energy unattributed = d.unattributed.value_or(Energy{});
  CommandEnergy out;
  out.processes = processes;
  if (d.idle_part && !is_used_by_others(d, levels)) out.rest = d.idle_part;
  out.undivided = std::max(unattributed, Energy{}) + d.held_unowned.value_or(Energy{});
  // Parts may exceed the whole.
  Energy also = std::max(-unattributed, Energy{});
  if (!out.rest && d.levels.rest) {
    const Energy above = whole.energy - d.levels.rest->energy;
    const double share = above > Energy{} ? processes.joules() / above.joules() : 0;
    also += Energy::joules(std::clamp(share, 0.0, 1.0) * d.levels.rest->repeatability.joules());
  }
  set_interval(out, whole, others, also);
  return out;
}

void set_interval(CommandEnergy& own, const Measurement& whole, Energy others, Energy also) {
  own.energy = whole;
  own.energy.energy = own.processes + own.rest.value_or(Energy{});
  const double part = part_of(whole, own.energy.energy);
  const double repeatability =
      part * whole.repeatability.joules() + division_joules(own.processes, others) + also.joules();
  own.energy.repeatability = Energy::joules(repeatability);
  own.energy.error = Energy::joules(std::hypot(repeatability, part * model::gain_joules(whole)));
  // What was divided off is within the sensor's own error.
  const bool is_alone = others + own.undivided <= whole.error;
  if (!is_alone) {
    own.energy.provenance = combine(whole.provenance, model::Provenance::kEstimated);
  }
}

}  // namespace jouleprof::analysis
