#include "analysis/levels/board_levels.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/levels/board_state.h"
#include "analysis/levels/held_level.h"
#include "analysis/levels/machine_idle.h"
#include "analysis/levels/rest_level.h"
#include "analysis/levels/traced_device.h"
#include "model/device/gauge_names.h"
#include "model/gauges.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using model::Measurement;

constexpr Duration kStep = 20ms;       // of the curve in which an edge is located
constexpr Duration kLocated = 30ms;    // error of such an edge
constexpr double kLeastStepWatts = 3;  // between rest and held, to locate an edge by power
constexpr double kLeastStepRatio = 0.05;

// A part of `whole` with its own interval; the calibration error is common to all parts.
Measurement part_of(const Measurement& whole, Energy energy, double repeatability) {
  Measurement out = whole;
  out.energy = energy;
  out.repeatability = Energy::joules(repeatability);
  const double all = whole.energy.joules();
  const double gain = all > 0 ? gain_joules(whole) / all : 0.0;
  out.error = Energy::joules(std::hypot(repeatability, gain * energy.joules()));
  return out;
}

// When the state changed, located by power where rest and held differ clearly.
class Edges {
 public:
  Edges(EnergyTimeline& timeline, const BoardLevels& levels) : timeline_(timeline) {
    if (!levels.rest) return;
    const double rest = levels.rest->power.watts();
    const double step = levels.held ? levels.held->power.watts() - rest : 2 * least(rest);
    if (step >= least(rest)) threshold_ = rest + step / 2;
  }

  HostTime locate(const StateChange& change) {
    if (threshold_) {
      if (const auto at = crossing(change)) {
        error_ = std::max(error_, kLocated);
        return *at;
      }
    }
    const Duration half = (change.latest - change.earliest) / 2;
    error_ = std::max(error_, half);
    return change.earliest + half;
  }

  Duration error() const { return error_; }

 private:
  static double least(double rest) { return std::max(kLeastStepWatts, kLeastStepRatio * rest); }

  // The first step above the threshold where power rises, the end of the last one where it falls.
  std::optional<HostTime> crossing(const StateChange& change) {
    std::optional<HostTime> at;
    for (const auto& s : timeline_.curve(change.earliest, change.latest, kStep)) {
      if (s.power.watts() <= *threshold_) continue;
      if (change.held) return s.begin;
      at = s.end;
    }
    return at;
  }

  EnergyTimeline& timeline_;
  std::optional<double> threshold_;
  Duration error_{};
};

std::optional<std::vector<RecordedSpan>> held_spans(EnergyTimeline& timeline,
                                                    const BoardState& state, BoardLevels& levels) {
  const auto extent = timeline.extent();
  if (!state.is_known() || !extent) return std::nullopt;
  Edges edges(timeline, levels);
  std::vector<RecordedSpan> spans;
  if (state.evidence().front().held) spans.push_back({extent->begin, extent->end});
  for (const StateChange& change : state.changes()) {
    const HostTime at = edges.locate(change);
    if (change.held) {
      spans.push_back({at, extent->end});
    } else if (!spans.empty()) {
      spans.back().end = at;
    }
  }
  levels.edge_error = edges.error();
  return spans;
}

bool is_shared(const model::Recording& recording, const model::Domain& domain,
               const BoardState& state, HostTime work_begin, HostTime work_end) {
  if (is_divided(recording, domain)) return true;
  if (recording.run.command.empty()) return false;
  // The command's own context begins after the command. Clocks stay up for a second after the last
  // context has ended, so that a list of processes decides where there is one.
  const bool is_listed = !gauge_of(recording, domain, model::gauge::kProcessCount).empty();
  if (!is_listed && !recording.idle_spans.empty() && state.is_known() &&
      state.is_between(true, work_begin)) {
    return true;
  }
  return std::any_of(recording.process_readings.gpu_processes.begin(),
                     recording.process_readings.gpu_processes.end(), [&](const auto& r) {
                       if (r.domain != domain.id && r.domain != domain.parent) return false;
                       if (r.at < work_begin || r.at > work_end) return false;
                       return std::none_of(
                           recording.processes.begin(), recording.processes.end(),
                           [&](const auto& p) { return p.id == r.process && p.in_tree; });
                     });
}

}  // namespace

std::optional<Duration> BoardLevels::held_time(HostTime begin, HostTime end) const {
  if (!held_spans) return std::nullopt;
  Duration sum{};
  for (const auto& s : *held_spans) {
    sum += std::max(std::min(s.end, end) - std::max(s.begin, begin), Duration{});
  }
  return sum;
}

model::EnergyLevels BoardLevels::split(const Measurement& energy, HostTime begin, HostTime end,
                                       std::optional<Duration> length) const {
  model::EnergyLevels out;
  const Duration all = length.value_or(end - begin);
  const double own = energy.repeatability.joules();
  if (rest) {
    const Energy part = rest->power * all;
    out.rest = part_of(energy, part, (rest->error * all).joules());
    if (!is_board) {
      out.idle = part;
      out.active =
          part_of(energy, energy.energy - part, std::hypot(own, (rest->error * all).joules()));
      return out;
    }
  } else {
    out.reason = "the power at rest is unknown: " + rest_reason;
    if (!is_board) return out;
  }
  auto held_for = held_time(begin, end);
  if (!held_for) {
    if (!rest) return out;
    out.reason =
        "it is not known when a context held the board: no SM clock and no list of "
        "processes was recorded";
    return out;
  }
  held_for = std::max(*held_for - ((end - begin) - all), Duration{});
  out.held_time = held_for;
  if (!held && *held_for > Duration{}) {
    if (!rest) return out;
    out.reason = "the power of the board while held is unknown: " + held_reason;
    return out;
  }
  if (!rest && *held_for < all) return out;
  const Energy at_rest = rest ? rest->power * (all - *held_for) : Energy{};
  const Energy while_held = held ? held->power * *held_for : Energy{};
  out.idle = at_rest + while_held;
  const double step = rest && held ? (held->power - rest->power).watts() : 0;
  const double edge = *held_for > Duration{} && *held_for < all ? step * seconds(edge_error) : 0;
  const double rest_error = rest ? (rest->error * (all - *held_for)).joules() : 0;
  const double held_error = held ? (held->error * *held_for).joules() : 0;
  out.active = part_of(energy, energy.energy - *out.idle,
                       std::hypot(std::hypot(own, edge), std::hypot(rest_error, held_error)));
  if (!rest) return out;
  const double common = (rest->error * *held_for).joules();
  out.held = part_of(energy, *out.idle - out.rest->energy,
                     std::hypot(edge, std::hypot(common, held_error)));
  return out;
}

BoardLevels board_levels(EnergyTimeline& timeline, const model::Domain& domain,
                         const model::Recording& recording, HostTime work_begin,
                         HostTime work_end) {
  BoardLevels out;
  out.is_board =
      domain.kind == model::DomainKind::kGpu || domain.kind == model::DomainKind::kGpuMemory;
  if (!out.is_board) {
    auto idle = machine_idle(timeline, domain, recording, work_begin, work_end);
    out.rest = std::move(idle.level);
    out.rest_reason = std::move(idle.reason);
    out.warnings = std::move(idle.warnings);
    return out;
  }
  const BoardState state(recording, domain);
  auto rest = rest_level(timeline, domain, recording, state);
  auto held = held_level(timeline, domain, recording, state);
  out.rest = std::move(rest.level);
  out.rest_reason = std::move(rest.reason);
  out.held = std::move(held.level);
  out.held_reason = std::move(held.reason);
  out.held_spans = held_spans(timeline, state, out);
  out.shared = is_shared(recording, domain, state, work_begin, work_end);
  return out;
}

}  // namespace jouleprof::analysis
