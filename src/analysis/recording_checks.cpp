#include "analysis/recording_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

#include "analysis/activity/replay_time.h"
#include "analysis/levels/domains.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

void check_clocks(const model::Recording& recording, HostTime begin, HostTime end,
                  std::vector<std::string>& out) {
  // Clock points of an import lie around the pauses of the other tool, which it names itself.
  if (recording.run.source.starts_with("import:")) return;
  auto points = recording.clock_points;
  std::ranges::sort(points, [](const auto& a, const auto& b) { return a.host < b.host; });
  Duration slept{};
  Duration stepped{};
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto& a = points[i - 1];
    const auto& b = points[i];
    if (b.host < begin || a.host > end) continue;
    const Duration sleep = b.suspended - a.suspended;
    const Duration step = (b.real - a.real) - (b.host - a.host) - sleep;
    if (sleep > 100ms) slept += sleep;
    // Slewing by a time daemon is far below this.
    if (std::chrono::abs(step) > 100ms + (b.host - a.host) / 1000) stepped += step;
  }
  if (slept > Duration{}) {
    out.push_back(fmt::format(
        "the machine was suspended for {:.1f} s; that time is not in any figure", seconds(slept)));
  }
  if (stepped != Duration{}) {
    out.push_back(fmt::format(
        "the wall clock was set by {:+.1f} s; energies are not affected, but times of day "
        "before and after differ by it",
        seconds(stepped)));
  }
}

void check_limits(const model::Recording& recording, HostTime begin, HostTime end,
                  std::vector<std::string>& out) {
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu || domain.parent) continue;
    int all = 0;
    int power = 0;
    int thermal = 0;
    for (const auto& r :
         gauge_of(recording, domain, model::gauge::kClockEventReasons, begin, end)) {
      if (!(r.value >= 0)) continue;
      const auto reasons = model::ClockReasons::of_gauge(r.value);
      ++all;
      power += reasons.limited_by_power();
      thermal += reasons.limited_by_heat();
    }
    const auto report = [&](int n, const char* what) {
      if (n > 0) {
        out.push_back(
            fmt::format("{}: held back by its {} limit in {:.0f} % of the readings; clocks "
                        "were lower than the work asked for",
                        domain.device, what, 100.0 * n / all));
      }
    };
    report(power, "power");
    report(thermal, "thermal or slowdown");
  }
}

// Of a recorder that was killed.
void check_open_windows(const model::Recording& recording, std::vector<std::string>& out) {
  const auto& open = recording.run.open_windows;
  if (recording.run.complete || open.empty() || recording.run.being_written) return;
  HostTime end = open.front().begin;
  for (const auto& window : open) end = std::max(end, window.begin);
  for (const auto& r : recording.readings.counters) end = std::max(end, r.after);
  for (const auto& r : recording.readings.powers) end = std::max(end, r.at);
  for (auto& text : model::texts_of(open, end, "the recording was cut off")) {
    out.push_back(std::move(text));
  }
}

std::string how_divided(const model::Recording& recording, const model::Domain& board) {
  bool by_activity = false, by_slices = true;
  for (const auto* instance : instances_of(recording.domains, board.id)) {
    by_activity |= !gauge_of(recording, *instance, model::gauge::kSmActivity).empty();
    by_slices &= slices_of(*instance) > 0;
  }
  if (!by_slices) {
    return "only where one instance worked, because the driver does not say how large each is";
  }
  return by_activity
             ? "by the activity and the slices of its instances"
             : "by the slices of the instances that have processes (ESTIMATED; the driver does not "
               "report their activity, so that whether each worked is not known)";
}

void check_divided(const model::Recording& recording, std::vector<std::string>& out) {
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu || !is_divided(recording, domain)) continue;
    out.push_back(fmt::format(
        "{}: MIG divides this GPU, and its sensors see all instances together: held energy is "
        "unattributed, active energy is divided {}, and kernels have no energy; disable MIG mode "
        "to "
        "measure one program",
        domain.device, how_divided(recording, domain)));
  }
}

// The times between two values of a sensor, or after its last one, in which a read of it failed.
struct FailedTime {
  HostTime begin{};
  std::optional<HostTime> end;  // absent: no value came after
  std::string why;              // of the first failure
};

std::vector<FailedTime> failed_times(const model::Recording& recording, model::SensorId sensor) {
  std::vector<HostTime> values;
  for (const auto& r : recording.readings.counters) {
    if (r.sensor == sensor) values.push_back(r.after);
  }
  for (const auto& r : recording.readings.powers) {
    if (r.sensor == sensor) values.push_back(r.at);
  }
  std::vector<FailedTime> out;
  for (const auto& f : recording.readings.failures) {
    if (f.sensor != sensor) continue;
    const auto after = std::ranges::upper_bound(values, f.at);
    if (after == values.begin()) continue;
    const HostTime begin = *std::prev(after);
    if (!out.empty() && out.back().begin == begin) continue;
    const auto end = after == values.end() ? std::optional<HostTime>{} : *after;
    out.push_back({begin, end, f.error.message});
  }
  return out;
}

}  // namespace

std::vector<std::string> recording_warnings(const model::Recording& recording, HostTime begin,
                                            HostTime end) {
  std::vector<std::string> out;
  if (recording.run.being_written) {
    out.push_back("the recording is still being written; figures end with what it has so far");
  } else if (!recording.run.complete) {
    out.push_back("the recording was cut off; figures end there");
  }
  for (const auto& w : recording.warnings) out.push_back(w.text);
  check_clocks(recording, begin, end, out);
  check_limits(recording, begin, end, out);
  check_divided(recording, out);
  check_open_windows(recording, out);
  return out;
}

std::vector<std::string> replay_warnings(const model::Recording& recording, Timelines& timelines,
                                         HostTime begin, HostTime end, HostTime work_end) {
  const ReplayTime replay = replay_time(recording);
  const auto took = [&](HostTime from, HostTime to) {
    std::string all;
    for (std::size_t i = 0; i < recording.domains.size(); ++i) {
      const auto& domain = recording.domains[i];
      if (!timelines[i] || domain.parent || !domain.visible) continue;
      const auto energy = replay.energy_within(*timelines[i], from, to);
      if (!energy) continue;
      all += fmt::format("{}{:.1f} J of {}", all.empty() ? "" : ", ", energy->energy.joules(),
                         domain.device);
    }
    return all;
  };
  std::vector<std::string> out;
  if (const auto all = took(end, work_end); !all.empty()) {
    out.push_back(
        fmt::format("isolated re-runs of layers and kernels (--replay) ran for {:.1f} s after the "
                    "program; their "
                    "{} are in no figure",
                    seconds(replay.within(end, work_end)), all));
  }
  if (const auto all = took(begin, end); !all.empty()) {
    out.push_back(fmt::format(
        "isolated re-runs of layers and kernels (--replay) ran for {:.1f} s of this time; "
        "the figures include their {}",
        seconds(replay.within(begin, end)), all));
  }
  return out;
}

std::vector<std::string> failed_read_warnings(const model::Recording& recording,
                                              const std::string& device,
                                              const TimelineSensors& sensors, RecordedSpan span,
                                              HostTime work_begin) {
  std::vector<std::string> out;
  const auto check = [&](const model::Sensor& sensor, const char* instead) {
    auto times = failed_times(recording, sensor.id);
    std::erase_if(times, [&](const FailedTime& t) {
      return std::min(t.end.value_or(span.end), span.end) - std::max(t.begin, span.begin) < 1s;
    });
    if (times.empty()) return;
    const FailedTime& first = times.front();
    out.push_back(
        fmt::format("{}: {} could not be read from {:.1f} s {}{}: {}; {}", device, sensor.name,
                    seconds(first.begin - work_begin),
                    first.end ? fmt::format("to {:.1f} s", seconds(*first.end - work_begin)) : "on",
                    times.size() > 1 ? fmt::format(", the first of {} times", times.size()) : "",
                    first.why, instead));
  };
  if (sensors.counter) {
    check(*sensors.counter, sensors.power ? "the integral of power is used there"
                                          : "nothing else shows the energy there");
  }
  if (sensors.power) {
    check(*sensors.power, sensors.counter ? "the energy there is the counter's alone"
                                          : "nothing else shows the energy there");
  }
  return out;
}

namespace {

using model::DomainKind;

constexpr std::size_t kFewestPieces = 8;
constexpr std::size_t kMostPieces = 200;
constexpr int kMostLatePieces = 2000;
constexpr double kLate = 3;  // seconds: more than a meter that is read once a second may be late
constexpr double kMostAway = 0.05;    // of the time: what the meter's own error of 5 % hides
constexpr double kShortestPiece = 5;  // seconds: a BMC's means are over a second or more

// Student's factor at 95 %, to 1 % from 4 degrees of freedom on.
double student95(double freedom) { return 1.96 + 2.45 / freedom + 2.5 / (freedom * freedom); }

// The timelines of domains that contain no other and are in no other one.
std::vector<EnergyTimeline*> parts_of_machine(const model::Recording& recording,
                                              Timelines& timelines) {
  std::vector<EnergyTimeline*> out;
  for (std::size_t i = 0; i < recording.domains.size(); ++i) {
    const model::Domain& domain = recording.domains[i];
    if (!timelines[i] || contains_others(domain.kind)) continue;
    if (!is_part(domain, recording.domains)) out.push_back(&*timelines[i]);
  }
  return out;
}

Duration longest_pause(const model::Recording& recording, model::SensorId sensor,
                       RecordedSpan span) {
  Duration longest{};
  std::optional<HostTime> last;
  for (const auto& r : recording.readings.powers) {
    if (r.sensor != sensor || r.at < span.begin || r.at > span.end) continue;
    if (last) longest = std::max<Duration>(longest, r.at - *last);
    last = r.at;
  }
  return longest;
}

std::optional<double> watts_of(EnergyTimeline& timeline, HostTime from, Duration length) {
  const auto a = timeline.up_to(from);
  const auto b = timeline.up_to(from + length);
  if (!a || !b) return std::nullopt;
  return ((*b - *a) / length).watts();
}

std::optional<double> watts_of(const std::vector<EnergyTimeline*>& parts, HostTime from,
                               Duration length) {
  double sum = 0;
  for (EnergyTimeline* part : parts) {
    const auto watts = watts_of(*part, from, length);
    if (!watts) return std::nullopt;
    sum += *watts;
  }
  return sum;
}

bool is_wall(const std::optional<EnergyTimeline>& timeline) {
  return timeline && timeline->sensors().power &&
         timeline->sensors().power->name.starts_with("wall:");
}

}  // namespace

std::optional<WallSlope> wall_slope(const std::vector<WallPiece>& pieces) {
  const auto n = static_cast<double>(pieces.size());
  if (pieces.size() < kFewestPieces) return std::nullopt;
  double x = 0;
  double y = 0;
  WallSlope out;
  out.pieces = pieces.size();
  out.low = out.high = Power::watts(pieces.front().sensors);
  for (const auto& piece : pieces) {
    x += piece.sensors / n;
    y += piece.wall / n;
    out.low = std::min(out.low, Power::watts(piece.sensors));
    out.high = std::max(out.high, Power::watts(piece.sensors));
  }
  double xx = 0;
  double xy = 0;
  for (const auto& piece : pieces) {
    xx += (piece.sensors - x) * (piece.sensors - x);
    xy += (piece.sensors - x) * (piece.wall - y);
  }
  const double deviation = std::sqrt(xx / n);
  if (deviation < 5 || deviation < 0.05 * x) return std::nullopt;
  out.ratio = xy / xx;
  double squares = 0;
  double products = 0;
  double before = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double rest = pieces[i].wall - y - out.ratio * (pieces[i].sensors - x);
    squares += rest * rest;
    if (i > 0) products += rest * before;
    before = rest;
  }
  // Neighbours err alike: fans and the temperature change slowly.
  const double alike = squares > 0 ? std::clamp(products / squares, 0.0, 0.9) : 0;
  const double sigma = std::sqrt(squares / (n - 2) / xx * (1 + alike) / (1 - alike));
  out.error = student95(n - 2) * sigma;
  return out;
}

Result<std::optional<WallSlope>> clearest_slope(
    Duration whole, Duration longest_pause,
    const std::function<Result<std::vector<WallPiece>>(Duration length, Duration shift)>&
        pieces_of) {
  const double all = seconds(whole);
  const double pause = seconds(longest_pause);
  double length = std::max({kShortestPiece, 2 * pause, all / static_cast<double>(kMostPieces)});
  std::optional<WallSlope> best;
  for (; all / length >= static_cast<double>(kFewestPieces); length *= 2) {
    for (const double shift :
         {0.0, -0.5, 0.5, -1.0, 1.0, -2.0, 2.0, -5.0, 5.0, -10.0, 10.0, -20.0, 20.0}) {
      const auto pieces = pieces_of(duration_of(length), duration_of(shift));
      if (!pieces) return forward_error(pieces);
      auto slope = wall_slope(*pieces);
      // Between two readings a step is a line, and shifts are tried in steps of half a second:
      // where each piece ends at a step, so much of it is in the wrong piece.
      const double smeared = (pause + 0.5) / length;
      if (slope) slope->error += std::abs(slope->ratio) * smeared;
      if (slope && (!best || slope->ratio * best->error > best->ratio * slope->error)) best = slope;
    }
  }
  return best;
}

std::string does_not_follow(const WallSlope& slope) {
  return fmt::format(
      "does not follow this machine: one more watt at the sensors is {:.3f} ± {:.3f} W at the "
      "meter "
      "({:.1f} to {:.1f} W, {} pieces of time). It is another machine's, or its readings are stale",
      slope.ratio, slope.error, slope.low.watts(), slope.high.watts(), slope.pieces);
}

std::optional<LateWall> late_wall(const model::Recording& recording, Timelines& timelines,
                                  std::size_t domain, RecordedSpan work) {
  auto& wall = timelines[domain];
  if (!is_wall(wall)) return std::nullopt;
  const auto parts = parts_of_machine(recording, timelines);
  if (parts.empty() || work.end <= work.begin) return std::nullopt;
  const Duration step =
      std::max<Duration>(duration_of(1), (work.end - work.begin) / kMostLatePieces);
  double low = INFINITY;
  double high = 0;
  LateWall out;
  Duration late{};
  for (HostTime at = work.begin; at + step <= work.end; at += step) {
    const auto watts = watts_of(*wall, at, step);
    double least = 0;  // what the parts drew at least
    for (EnergyTimeline* part : parts) {
      const double shown = watts_of(*part, at, step).value_or(0);
      least += shown * std::max(1 + part->sensor_scale().gain_low, 0.0);
    }
    if (!watts) continue;
    low = std::min(low, *watts);
    high = std::max(high, *watts);
    late = *watts < least ? late + step : Duration{};
    out.late = std::max(out.late, late);
  }
  const auto mean = wall->sensors().power->traits.window;
  if (seconds(out.late) < kLate || (mean && *mean > out.late)) return std::nullopt;
  out.error = Power::watts(high - low) * out.late;
  return out;
}

std::string why_no_wall(const model::Recording& recording, Timelines& timelines, std::size_t domain,
                        RecordedSpan part, RecordedSpan work) {
  auto& wall = timelines[domain];
  if (!is_wall(wall)) return "";
  const Duration away = wall->missing_samples(part.begin, part.end);
  if (seconds(away) > std::max(kLate, kMostAway * seconds(part.end - part.begin))) {
    return fmt::format(
        "the meter was not read for {:.1f} s of {:.1f} s, and the power in that time is unknown; "
        "report the time before or after (--from, --to)",
        seconds(away), seconds(part.end - part.begin));
  }
  const auto parts = parts_of_machine(recording, timelines);
  if (parts.empty()) return "";
  const auto shown = wall->energy(part.begin, part.end);
  Energy least;
  for (EnergyTimeline* inside : parts) {
    if (const auto energy = inside->energy(part.begin, part.end)) least += energy->low();
  }
  if (shown && shown->high() < least) {
    return fmt::format(
        "the meter shows {:.4g} J where the sensors of the machine's parts show {:.4g} J at least: "
        "it is another machine's, has another unit, sees one of several supplies, or is the mean "
        "of "
        "a longer time",
        shown->energy.joules(), least.joules());
  }
  const auto slope = clearest_slope(
      work.end - work.begin, longest_pause(recording, wall->sensors().power->id, work),
      [&](Duration length, Duration shift) -> Result<std::vector<WallPiece>> {
        std::vector<WallPiece> out;
        for (HostTime at = work.begin; at + length <= work.end; at += length) {
          const auto watts = watts_of(*wall, at + shift, length);
          const auto sensors = watts_of(parts, at, length);
          if (watts && sensors) out.push_back({*sensors, *watts});
        }
        return out;
      });
  if (!slope || !*slope || (*slope)->follows()) return "";
  return "the meter " + does_not_follow(**slope);
}

}  // namespace jouleprof::analysis
