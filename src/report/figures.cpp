#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/total.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGpuStep = 20ms;     // of the driver's sample buffer
constexpr Duration kOtherStep = 100ms;  // of polled sensors
constexpr std::size_t kMostFine = 400'000;
// A few readings so far after all others are stamped wrongly.
constexpr Duration kFarAhead = 1h;
constexpr int kTimesAhead = 10;  // the time of the others

// The shortest of 1, 2 and 5 times a power of ten that is not below `least`.
Duration round_step(Duration least) {
  for (Duration unit = 1ms;; unit *= 10) {
    for (const int factor : {1, 2, 5}) {
      if (factor * unit >= least) return factor * unit;
    }
  }
}

// The finest of the domain's power sensors: neither its refresh period nor, where that is longer,
// its averaging window.
Duration resolution_of(const model::Recording& recording, const model::Domain& domain) {
  std::optional<Duration> finest;
  for (const auto& sensor : recording.sensors) {
    if (sensor.domain != domain.id || sensor.kind == model::SensorKind::kGauge) continue;
    if (!sensor.traits.refresh) continue;
    const Duration own =
        std::max(*sensor.traits.refresh, sensor.traits.window.value_or(Duration{}));
    finest = std::min(finest.value_or(Duration::max()), own);
  }
  const Duration usual = domain.kind == model::DomainKind::kGpu ? kGpuStep : kOtherStep;
  // 20.1 ms is 20 ms, and not 50.
  return std::max(round_step(finest.value_or(usual) * 3 / 4), kGpuStep);
}

class Track {
 public:
  Track(const analysis::Run& run, const analysis::Part& part, std::size_t domain, HostTime origin,
        std::size_t steps)
      : run_(run), part_(part), domain_(domain) {
    const model::Domain& d = run.recording().domains[domain];
    fine_ = resolution_of(run.recording(), d);
    // A coarse curve finds the length.
    const auto rough = run.curve(domain, 1s, part);
    auto all = rough.empty() ? run.curve(domain, fine_, part) : rough;
    if (all.empty()) return;
    // Readings that are stamped days ahead must not make the steps of all others long.
    for (std::size_t i = all.size() - 1; i > 0; --i) {
      const Duration before = all[i - 1].end - all.front().begin;
      const bool is_far = all[i].begin - all[i - 1].end > std::max(kFarAhead, kTimesAhead * before);
      if (is_far && all.back().end - all[i].begin < before) all.resize(i);
    }
    const Duration length = all.back().end - all.front().begin;
    step_ = std::max(fine_, round_step(length / static_cast<std::int64_t>(steps)));
    fine_ = std::max(fine_, round_step(length / static_cast<std::int64_t>(kMostFine)));
    // One edge is the origin, so that the command's begin is not within a step.
    const Duration lead = origin - all.front().begin;
    if (part.is_whole() && lead > Duration{}) part_.from = -(lead / step_) * step_;
    steps_ = run.curve(domain, step_, part_);
    // They have no place, either. The rough length may miss up to a second at both ends.
    const std::size_t most = 4 * steps;
    while (!steps_.empty() && place_of(steps_.back().begin) > most) {
      if (!left_out_) left_out_ = steps_.back().end;
      steps_.pop_back();
    }
  }

  std::optional<PowerTrack> track() const {
    if (steps_.empty()) return {};
    PowerTrack track;
    track.id = run_.recording().domains[domain_].id;
    track.begin = steps_.front().begin;
    track.end = steps_.back().end;
    track.step = step_;
    track.resolution = fine_;
    track.left_out = left_out_;
    add_steps(track);
    if (step_ >= 2 * fine_) add_extremes(track);
    return track;
  }

 private:
  // Time without readings has absent steps, so that a step's place is its time.
  std::size_t place_of(HostTime t) const {
    return static_cast<std::size_t>((t - steps_.front().begin) / step_);
  }

  void add_steps(PowerTrack& track) const {
    track.steps.resize(place_of(steps_.back().begin) + 1);
    for (const auto& step : steps_) {
      const auto own = run_.energy(domain_, step.begin, step.end);
      const auto so_far = run_.energy(domain_, steps_.front().begin, step.end);
      if (!own || !so_far) continue;
      track.steps[place_of(step.begin)] = {own->energy, own->farthest(), so_far->repeatability};
      const double e = so_far->farthest().joules();
      const double r = so_far->repeatability.joules();
      if (so_far->energy > Energy{}) {
        track.calibration_ratio = std::sqrt(std::max(e * e - r * r, 0.0)) / so_far->energy.joules();
      }
    }
  }

  void add_extremes(PowerTrack& track) const {
    track.extremes.resize(track.steps.size());
    for (const auto& fine : run_.curve(domain_, fine_, part_)) {
      if (fine.begin < steps_.front().begin) continue;
      const std::size_t at = place_of(fine.begin);
      if (at >= track.extremes.size()) continue;
      const double watts = fine.power.watts();
      auto& e = track.extremes[at];
      e = e ? std::pair(std::min(e->first, watts), std::max(e->second, watts))
            : std::pair(watts, watts);
    }
  }

  const analysis::Run& run_;
  analysis::Part part_;
  std::size_t domain_;
  Duration fine_{};
  Duration step_{};
  std::vector<model::PowerStep> steps_;
  std::optional<HostTime> left_out_;
};

}  // namespace

std::string power_track_name(const model::Recording& recording, const model::Domain& domain) {
  const bool gpu = domain.kind == model::DomainKind::kGpu;
  return fmt::format("{}{}{} power (W){}", domain.device, gpu ? "" : " ",
                     gpu ? "" : to_string(domain.kind),
                     provenance_mark(provenance_of(recording, domain.id)));
}

std::vector<PowerTrack> power_tracks(const analysis::Run& run, const analysis::Part& part,
                                     HostTime origin, std::size_t steps) {
  std::vector<PowerTrack> tracks;
  for (std::size_t i = 0; i < run.recording().domains.size(); ++i) {
    if (auto track = Track(run, part, i, origin, steps).track()) {
      tracks.push_back(std::move(*track));
    }
  }
  return tracks;
}

namespace {

using model::Measurement;

constexpr std::string_view kGrey = "#8e9aa8", kBlue = "#4fa6f2", kOrange = "#d89a2c",
                           kSky = "#c3c1e4", kYellow = "#f6f42c", kPink = "#a663a8",
                           kStone = "#a7bea3";

class Parts {
 public:
  void add(std::string_view label, std::string_view colour, const std::optional<Energy>& energy,
           std::optional<Measurement> level = {}) {
    if (!energy || *energy == Energy{}) return;
    all_.push_back({label, colour, *energy, std::move(level)});
  }
  void add(std::string_view label, std::string_view colour, const Measurement& level) {
    add(label, colour, level.energy, level);
  }
  std::vector<BalancePart> take() { return std::move(all_); }

 private:
  std::vector<BalancePart> all_;
};

// Not divided among processes: by level, as far as those are known.
void add_levels(Parts& parts, const model::DomainProfile& domain) {
  const auto& [rest, held, active, idle, held_time, reason] = domain.levels;
  if (!rest) return parts.add("energy", kOrange, *domain.energy);
  parts.add("rest", kGrey, *rest);
  if (held && active) {
    parts.add("held", kBlue, *held);
    parts.add("dynamic, not attributed", kOrange, *active);
  } else {
    parts.add("dynamic, not attributed", kOrange, domain.energy->energy - rest->energy);
  }
}

}  // namespace

std::vector<BalancePart> balance_parts(const model::Profile& profile,
                                       const model::DomainProfile& domain) {
  Parts parts;
  if (!domain.energy) return {};
  const auto processes = processes_of(profile, domain);
  if (!processes || !domain.idle_part) {
    add_levels(parts, domain);
    return parts.take();
  }
  Energy kernels, between, held;
  for (const auto& process : profile.processes) {
    for (const auto& share : process.shares) {
      if (share.domain != domain.domain.id) continue;
      kernels += share.kernels.value_or(Energy{});
      between += share.idle_between.value_or(Energy{});
      held += share.held.value_or(Energy{});
    }
  }
  const auto& levels = domain.levels;
  parts.add(levels.rest ? "rest" : "idle", kGrey, domain.idle_part, levels.rest);
  // The interval is that of all held energy.
  const bool is_all_held = levels.held && levels.held->energy == held;
  parts.add("held", kBlue, held, is_all_held ? levels.held : std::nullopt);
  parts.add("kernels", kOrange, kernels);
  parts.add("processes", kOrange, *processes - kernels - between - held);
  parts.add("idle between launches", kYellow, between);
  parts.add("other processes", kPink, domain.others);
  const bool is_all_unowned = levels.held && levels.held->energy == domain.held_unowned;
  parts.add("held, unowned", kSky, domain.held_unowned,
            is_all_unowned ? levels.held : std::nullopt);
  parts.add("unattributed", kStone, domain.unattributed);
  return parts.take();
}

}  // namespace jouleprof::report
