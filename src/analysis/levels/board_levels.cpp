#include "analysis/levels/board_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "analysis/levels/domains.h"
#include "analysis/levels/rest_level.h"
#include "analysis/timeline/sensors/error_model.h"
#include "model/device/sensor.h"
#include "model/recording.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using model::Measurement;

// --- The idle power of processors and memory: while the measured program does no work ---

constexpr double kBusyCpu = 0.25;
constexpr Duration kIdleStep = 100ms;
constexpr Duration::rep kFewestSteps = 3;  // of a span
constexpr double kLeastApart = 0.2;        // of two uses of the CPUs, for the slope between them
constexpr double kApart = 0.1;             // before and after, of the power: worth a warning

// The busy share of all CPUs' time over the span, at least; absent without readings of the machine
// near both ends. A reading that came late after an idle span includes the work: all that it may
// have taken is subtracted.
std::optional<double> cpu_use(const model::Recording& recording, const model::IdleSpan& span,
                              bool is_idle = true) {
  const Duration length = span.end - span.begin;
  const model::MachineReading* first = nullptr;
  const model::MachineReading* last = nullptr;
  const model::MachineReading* late = nullptr;
  for (const auto& r : recording.process_readings.machine) {
    if (r.at < span.begin - 100ms || r.at > span.end + length) continue;
    if (r.at > span.end + 20ms) {
      if (late == nullptr || r.at < late->at) late = &r;
      continue;
    }
    if (first == nullptr || r.at < first->at) first = &r;
    if (last == nullptr || r.at > last->at) last = &r;
  }
  if (first == nullptr) return std::nullopt;
  Duration work{};
  if (2 * (last->at - first->at) < length) {
    if (late == nullptr || !is_idle) return std::nullopt;
    last = late;
    work = late->at - span.end;
  }
  const double total = seconds(last->total_cpu_time - first->total_cpu_time);
  if (total <= 0) return std::nullopt;
  const double of_work = total * (seconds(work) / seconds(last->at - first->at));
  const double busy = seconds(last->busy_cpu_time - first->busy_cpu_time);
  return std::max(busy - of_work, 0.0) / (total - of_work);
}

model::PowerLevel level(const ObservedLevel& observed, const char* source) {
  return {observed.power, observed.error, source, true, std::nullopt};
}

// The variance of idle power over steps of the time, about the mean of each span.
class IdleVariance {
 public:
  void add(EnergyTimeline& timeline, const RecordedSpan& span, Power mean) {
    const Duration length = span.end - span.begin;
    const Duration step = length / std::max(length / kIdleStep, kFewestSteps) + 1ns;
    double before = 0;
    for (const auto& s : timeline.curve(span.begin, span.end, step)) {
      const double apart = (s.power - mean).watts();
      sum_ += apart * (apart + 2 * before) * seconds(step);  // neighbours vary together
      squares_ += apart * apart * seconds(step);
      before = apart;
      ++degrees_;
    }
    --degrees_;
    ++spans_;
  }
  // Of a mean over `length`: half of its 95 % interval, by Student's t with the degrees of freedom
  // of one span, since steps that vary together leave fewer degrees than there are steps.
  double error(Duration length) const {
    if (degrees_ < spans_) return 0;
    const boost::math::students_t student{degrees_ / spans_};
    return boost::math::quantile(student, 0.975) *
           std::sqrt(std::max(sum_, squares_) / degrees_ / seconds(length));
  }

 private:
  double sum_ = 0;  // W^2 s
  double squares_ = 0;
  double degrees_ = 0;
  double spans_ = 0;
};

// What ran in the idle spans draws power, too, and is divided by CPU time like all work. The level
// without it: on the line through the powers at both uses of the CPUs, at a use of 0. Where these
// uses hardly differ, the slope of the line is not known, and is taken too flat.
void subtract_background(model::PowerLevel& rest, double use_at_rest, Power at_work, double use) {
  if (use_at_rest <= 0) return;
  const double more = use - use_at_rest;
  const double apart = std::copysign(std::max(std::abs(more), kLeastApart * use_at_rest), more);
  const double slope = (at_work - rest.power).watts() / apart;
  const Power background = std::clamp(Power::watts(slope * use_at_rest), Power{}, rest.power);
  rest.power -= background;
  rest.error = Power::watts(
      std::hypot(rest.error.watts() * (1 + use_at_rest / std::abs(apart)), background.watts()));
  rest.source += ", less what other processes took then";
}

// From the recording's idle spans before and after the work.
//  - Power varies: the error is also that of a mean over a span, by the power of its steps.
//  - Spans in which more than 25 % of all CPUs' time was busy are ignored. If none is left, idle
//    power is unknown.
//  - Where those before and after the work agree within their errors, they are joined. Where not,
//    those before the work are used, and the error is widened to reach the others. Spans after the
//    work alone get 10 % more error.
//  - The first 100 ms of a span longer than half a second are ignored, because some sensors lag.
//  - What other processes drew in them is subtracted.
LevelResult machine_idle(EnergyTimeline& timeline, const model::Domain& domain,
                         const model::Recording& recording, HostTime work_begin,
                         HostTime work_end) {
  LevelResult out;
  std::vector<std::pair<RecordedSpan, Measurement>> spans;
  IdleVariance variance;
  std::vector<double> uses[2];  // of the CPUs, before and after
  bool any_busy = false;
  for (const auto& span : recording.idle_spans) {
    const auto busy = cpu_use(recording, span);
    if (busy && *busy > kBusyCpu) {
      any_busy = true;
      continue;
    }
    HostTime begin = span.begin;
    if (span.end - begin > 500ms) begin += 100ms;
    if (span.end <= begin) continue;
    const auto m = timeline.energy(begin, span.end);
    if (!m) continue;
    variance.add(timeline, {begin, span.end}, m->energy / (span.end - begin));
    spans.push_back({{begin, span.end}, *m});
    if (busy) uses[span.begin >= work_end ? 1 : 0].push_back(*busy);
  }
  std::vector<ObservedLevel> before;
  std::vector<ObservedLevel> after;
  for (const auto& [span, m] : spans) {
    const Duration length = span.end - span.begin;
    const ObservedLevel p{
        m.energy / length,
        Power::watts(std::hypot((m.repeatability / length).watts(), variance.error(length)))};
    if (span.end <= work_begin) before.push_back(p);
    if (span.begin >= work_end) after.push_back(p);
  }
  const auto first = join(before);
  const auto last = join(after);
  if (first && last) {
    const double difference = std::abs(first->power.watts() - last->power.watts());
    if (difference <= std::hypot(first->error.watts(), last->error.watts())) {
      out.level = level(*join({*first, *last}), "observed before and after the work");
    } else {
      out.level = level(*first, "observed before the work");
      out.level->error = Power::watts(difference + last->error.watts());
      if (difference > kApart * first->power.watts()) {
        out.warnings.push_back(fmt::format(
            "{}: idle power was {:.1f} W before the work and {:.1f} W after it; the idle part uses "
            "the first and its interval covers both",
            label_of(domain), first->power.watts(), last->power.watts()));
      }
    }
  } else if (first) {
    out.level = level(*first, "observed before the work");
  } else if (last) {
    out.level = level(*last, "observed after the work");
    out.level->error += kErrors.after_alone * last->power;
  } else if (any_busy) {
    out.reason = "other work ran while it was to be measured";
    out.warnings.push_back(
        fmt::format("{}: idle power is unknown, because other work ran while it was to be measured",
                    label_of(domain)));
  } else {
    out.reason = "no time without the work was recorded";
  }
  const auto& use_at_rest = uses[first ? 0 : 1];
  const auto use = cpu_use(recording, {work_begin, work_end}, false);
  const auto work = timeline.energy(work_begin, work_end);
  if (out.level && follows_cpu_time(domain.kind) && !use_at_rest.empty() && use && work) {
    const double sum = std::accumulate(use_at_rest.begin(), use_at_rest.end(), 0.0);
    subtract_background(*out.level, sum / static_cast<double>(use_at_rest.size()),
                        work->energy / (work_end - work_begin), *use);
  }
  return out;
}

// --- A board's time and energy at rest, held and at work ---

constexpr Duration kStep = 20ms;       // of the curve in which an edge is located
constexpr Duration kLocated = 30ms;    // error of such an edge
constexpr double kLeastStepWatts = 3;  // between rest and held, to locate an edge by power
constexpr double kLeastStepRatio = 0.05;

// A part of `whole` with its own interval; the gain error is common to all parts. An offset of the
// sensor is in what is drawn all the time: at rest, for `offset_time`; the parts above have none.
Measurement part_of(const Measurement& whole, const model::ScaleError& scale, Energy energy,
                    double repeatability, Duration offset_time = {}) {
  Measurement out = whole;
  out.energy = energy;
  out.repeatability = Energy::joules(repeatability);
  out.offset = offset_time > Duration{} ? whole.offset : Energy{};
  const double own = energy.joules();
  out.shift = whole.shift == 0 ? 0 : scale.gain_shift();
  if (whole.shift != 0 && own > 0) out.shift += (scale.offset_shift() * offset_time).joules() / own;
  out.error = Energy::joules(
      std::hypot(repeatability, model::gain_ratio(whole) * own, out.offset.joules()));
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
  // Of a program that was attached to there is no command.
  const bool is_run = !recording.run.command.empty();
  const bool has_own =
      is_run || std::ranges::any_of(recording.processes, [](const auto& p) { return p.in_tree; });
  if (!has_own) return false;
  // The command's own context begins after the command. Clocks stay up for a second after the last
  // context has ended, so that a list of processes decides where there is one.
  const bool is_listed = !gauge_of(recording, domain, model::gauge::kProcessCount).empty();
  if (is_run && !is_listed && !recording.idle_spans.empty() && state.is_known() &&
      state.is_between(true, work_begin)) {
    return true;
  }
  return std::ranges::any_of(recording.process_readings.gpu_processes, [&](const auto& r) {
    if (r.domain != domain.id && r.domain != domain.parent) return false;
    if (r.at < work_begin || r.at > work_end) return false;
    return std::ranges::none_of(recording.processes,
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
    out.rest = part_of(energy, scale, part, (rest->error * all).joules(), all);
    if (!is_board) {
      out.idle = part;
      out.active = part_of(energy, scale, energy.energy - part,
                           std::hypot(own, (rest->error * all).joules()));
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
  if (!rest && *held_for <= Duration{}) return out;
  const Energy while_held = held ? held->power * *held_for : Energy{};
  const Duration not_held = all - *held_for;
  Energy at_rest, rest_error;
  if (rest) {
    at_rest = rest->power * not_held;
    rest_error = rest->error * not_held;
  } else {  // a board that is not held draws at most what a held one does
    const Energy most = held->power * not_held;
    at_rest = Energy::joules(std::clamp(energy.energy - while_held, Energy{}, most).joules() / 2);
    rest_error = Energy::joules(most.joules() / 2);
  }
  out.idle = at_rest + while_held;
  const Power rest_power = rest ? rest->power : Power{};
  const double step = held ? (held->power - rest_power).watts() : 0;
  const double edge = *held_for > Duration{} && *held_for < all ? step * seconds(edge_error) : 0;
  const double held_error = held ? (held->error * *held_for).joules() : 0;
  out.active =
      part_of(energy, scale, energy.energy - *out.idle,
              std::hypot(std::hypot(own, edge), std::hypot(rest_error.joules(), held_error)));
  if (!rest) return out;
  const double common = (rest->error * *held_for).joules();
  out.held = part_of(energy, scale, *out.idle - out.rest->energy,
                     std::hypot(edge, std::hypot(common, held_error)));
  return out;
}

BoardLevels board_levels(EnergyTimeline& timeline, const model::Domain& domain,
                         const model::Recording& recording, HostTime work_begin,
                         HostTime work_end) {
  BoardLevels out;
  out.scale = timeline.sensor_scale();
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
