#include "analysis/kernels/kernel_evidence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"
#include "base/text.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

// The idle power of a GPU with a context, observed while it runs nothing.
// Idle power drifts with temperature by several percent. So observations close to work, and after
// long work, have the greatest weights. `table` outlives it.
class QuietPower {
 public:
  // `memory`: seconds after work during which the sensors still respond to it.
  QuietPower(const ActivityTable& table, double memory) : table_(table), memory_(memory) {}

  // In order of their begins; those that overlap work or its response are ignored.
  void add(const ObservedPower& s);

  // Absent with fewer than five usable observations.
  std::optional<IdleHint> hint() const;

 private:
  const ActivityTable& table_;
  double memory_;
  std::size_t next_ = 0;    // bin
  double last_end_ = -1e9;  // of the bins before it
  double heat_ = 0;         // busy seconds before that, exponentially weighted
  int count_ = 0;
  int between_ = 0;  // of them, between work
  double weight_ = 0;
  double watts_ = 0;
  double squares_ = 0;
};

constexpr int kFewest = 5;      // observations
constexpr double kNear = 0.12;  // seconds from the nearest work

void QuietPower::add(const ObservedPower& s) {
  const auto& bins = table_.bins;
  while (next_ < bins.size() && bins[next_].begin < s.end) {
    const auto& bin = bins[next_];
    double busy = 0;
    for (std::size_t i = bin.first; i < table_.end_of(next_); ++i) busy += table_.entries[i].busy;
    heat_ = heat_ * std::exp(-(bin.begin - last_end_) / kErrors.warm) + busy;
    last_end_ = bin.begin + bin.width;
    ++next_;
  }
  if (last_end_ > s.begin - memory_) return;
  const double since = s.begin - last_end_;
  const double until = next_ < bins.size() ? bins[next_].begin - s.end : 1e9;
  const double length = s.end - s.begin;
  const double weight = length * std::exp(-std::min(since, until) / kNear) *
                        (0.05 + heat_ * std::exp(-since / kErrors.warm));
  ++count_;
  between_ += last_end_ > -1e8 && next_ < bins.size() ? 1 : 0;
  weight_ += weight;
  watts_ += weight * s.watts;
  squares_ += weight * s.watts * s.watts;
}

std::optional<IdleHint> QuietPower::hint() const {
  if (count_ < kFewest || weight_ <= 0) return std::nullopt;
  const double mean = watts_ / weight_;
  const double spread = std::sqrt(std::max(squares_ / weight_ - mean * mean, 0.0));
  return IdleHint{mean, 0.5 + 0.3 * spread, between_ < kFewest ? kErrors.held : 0.0};
}

using namespace std::chrono_literals;

constexpr double kMostWatts = 20e3;  // no board draws more
constexpr double kAsLow = 1.1;       // times the lowest power within the work: counts as idle
constexpr Duration kAround = 3s;     // of the work

double lowest_of(const std::vector<ObservedPower>& observed) {
  double lowest = 1e300;
  for (const ObservedPower& s : observed) lowest = std::min(lowest, s.watts);
  return lowest;
}

// Counter and samples measure the same board; where they differ by a factor, the counter is right.
void scale_samples(EnergyTimeline& timeline, HostTime begin, HostTime end,
                   std::vector<ObservedPower>& observed) {
  const auto counted = timeline.counter_only(begin, end);
  const auto sampled = timeline.samples_only(begin, end);
  if (!counted || !sampled || *sampled <= Energy{} || end - begin < 2s) return;
  const double ratio = counted->joules() / sampled->joules();
  if (std::abs(ratio - 1) > 0.1) return;  // another fault; the profile warns of it
  for (ObservedPower& s : observed) {
    if (!s.counter) s.watts *= ratio;
  }
}

// `lowest`: the lowest power within the work.
IdleHint idle_of_another_time(const model::Recording& recording, EnergyTimeline& timeline,
                              const BoardLevels& levels, double lowest) {
  if (levels.held && levels.held->power.watts() < lowest) {
    return {levels.held->power.watts(), std::max(levels.held->error.watts(), kErrors.other_run)};
  }
  for (const auto& span : recording.idle_spans) {
    const auto energy = timeline.energy(span.begin, span.end);
    if (!energy || span.end <= span.begin) continue;
    const double idle = (energy->energy / (span.end - span.begin)).watts();
    return {std::min(idle + kErrors.no_context, std::max(lowest, idle)), kErrors.no_context};
  }
  return {0.6 * lowest, 0.3 * lowest + 1};
}

void drop_lost(std::span<const LostEnd> lost, const ActivityTable& table, double time_constant,
               std::vector<ObservedPower>& observed) {
  for (const LostEnd& end : lost) {
    const double from = table.time.seconds_of(end.begin);
    const double to = table.time.seconds_of(end.end) + 6 * time_constant;
    std::erase_if(observed, [&](const ObservedPower& s) { return s.end > from && s.begin < to; });
  }
}

constexpr double kWorksAlone = 0.98;      // of the work on a board
constexpr double kEnoughTimeAlone = 0.3;  // of the observed time

// The mean of a part over an observation; 1 where nothing is known.
double mean_part(std::span<const TracedPart> traced, double TracedPart::*part, TimeBase time,
                 const ObservedPower& s) {
  const HostTime begin = time.host_of(s.begin), end = time.host_of(s.end);
  auto at = std::ranges::partition_point(traced, [&](const auto& p) { return p.end <= begin; });
  double sum = 0, length = 0;
  for (; at != traced.end() && at->begin < end; ++at) {
    const double within = seconds(std::min(at->end, end) - std::max(at->begin, begin));
    sum += (*at).*part * within;
    length += within;
  }
  return length > 0 ? sum / length : 1;
}

// False: others worked in most of the time.
bool keep_alone(std::span<const TracedPart> traced, TimeBase time,
                std::vector<ObservedPower>& observed) {
  if (std::ranges::all_of(traced, [](const auto& p) { return p.most >= kWorksAlone; })) return true;
  std::vector<ObservedPower> alone;
  double kept = 0, all = 0;
  for (const ObservedPower& s : observed) {
    all += s.end - s.begin;
    if (mean_part(traced, &TracedPart::least, time, s) < kWorksAlone) continue;
    kept += s.end - s.begin;
    alone.push_back(s);
  }
  if (kept < kEnoughTimeAlone * all) return false;
  observed = std::move(alone);
  return true;
}

// Power is divided by use, as energy is, which may differ in power by a factor of two.
void take_part(std::span<const TracedPart> traced, TimeBase time, KernelEvidence& evidence) {
  double own = 0, all = 0;
  for (ObservedPower& s : evidence.observed) {
    const double part = mean_part(traced, &TracedPart::most, time, s);
    own += part * (s.end - s.begin);
    all += s.end - s.begin;
    s.watts = evidence.idle.watts + (s.watts - evidence.idle.watts) * part;
  }
  const double others = all > 0 ? 1 - own / all : 0;
  evidence.untraced = others / (1 + std::min(others, 1 - others));
}

}  // namespace

KernelEvidence kernel_evidence(const model::Recording& recording, EnergyTimeline& timeline,
                               const ActivityTable& table, const BoardLevels& levels,
                               std::span<const LostEnd> lost, std::span<const TracedPart> traced) {
  KernelEvidence out;
  const auto& last = table.bins.back();
  const HostTime first_work = table.time.host_of(table.bins.front().begin);
  const HostTime last_work = table.time.host_of(last.begin + last.width);
  out.observed = timeline.observations(first_work, last_work, table.time);
  std::erase_if(out.observed,
                [](const ObservedPower& s) { return s.watts < 0 || s.watts > kMostWatts; });
  drop_lost(lost, table, timeline.time_constant(), out.observed);
  if (const auto extent = timeline.extent()) {
    scale_samples(timeline, std::max(first_work, extent->begin), std::min(last_work, extent->end),
                  out.observed);
  }
  const bool is_alone = keep_alone(traced, table.time, out.observed);
  const double lowest = lowest_of(out.observed);
  if (!is_alone) {
    out.idle_unseen = true;
    out.idle = idle_of_another_time(recording, timeline, levels, lowest);
    take_part(traced, table.time, out);
    return out;
  }

  std::vector<ObservedPower> ordered = out.observed;
  if (model::is_at_rest_around_traces(recording.run) && !out.observed.empty()) {
    for (const auto& [from, to] :
         {std::pair{first_work - kAround, first_work}, std::pair{last_work, last_work + kAround}}) {
      for (const ObservedPower& s : timeline.observations(from, to, table.time)) {
        if (s.watts < kAsLow * lowest) ordered.push_back(s);
      }
    }
  }
  std::ranges::sort(ordered, {}, &ObservedPower::begin);
  QuietPower quiet(table, 0.02 + 6 * timeline.time_constant());
  for (const ObservedPower& s : ordered) quiet.add(s);
  if (const auto hint = quiet.hint()) {
    out.idle = *hint;
    return out;
  }
  out.idle_unseen = true;
  out.idle = idle_of_another_time(recording, timeline, levels, lowest);
  return out;
}

ClockLimits::ClockLimits(const model::Recording& recording, const model::Domain& domain) {
  std::optional<model::GaugeReading> last;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kClockEventReasons)) {
    if (last) {
      const auto reasons = model::ClockReasons::of_gauge(last->value);
      const bool held = reasons.limited_by_power() || reasons.limited_by_heat();
      intervals_.push_back({last->at, r.at, held});
    }
    last = r;
  }
}

std::optional<double> ClockLimits::held_share(HostTime begin, HostTime end,
                                              const ReplayTime& replays) const {
  double held = 0;
  double all = 0;
  for (const Interval& s : intervals_) {
    if (s.end <= begin || s.begin >= end || replays.holds(s.begin)) continue;
    const double length = seconds(std::min(s.end, end) - std::max(s.begin, begin));
    all += length;
    if (s.held) held += length;
  }
  return all > 0 ? std::optional(held / all) : std::nullopt;
}

namespace {

constexpr double kMostHeld = 0.03;  // the same, of a slot: a power limit slows kernels
constexpr std::size_t kMostNamed = 10;

using ByClass = ActivityTable::Replay::ByClass;

// Launches of the variant of the re-run kernel by signature, wherever they ran.
ByClass in_place(const ActivityTable& table, const ActivityTable::Replay& replay) {
  ByClass out;
  for (const auto& total : table.scope_totals) {
    if (total.trace != replay.trace) continue;
    if (total.variant != replay.variant_of(total.kernel_class)) continue;
    out[total.kernel_class].launches += total.launches;
    out[total.kernel_class].busy += total.busy;
  }
  return out;
}

// The relative difference in time from in place; 0: no such kernel ran in place.
double longer(const ByClass& in_program, const ByClass& alone_by_class) {
  double alone = 0;
  double expected = 0;
  for (const auto& [k, ran] : alone_by_class) {
    const auto found = in_program.find(k);
    if (found == in_program.end() || found->second.launches == 0) continue;
    alone += ran.busy;
    expected += static_cast<double>(ran.launches) * found->second.busy /
                static_cast<double>(found->second.launches);
  }
  return expected > 0 ? alone / expected - 1 : 0;
}

// The kernel of a re-run in which any ran: the one with most busy time.
std::uint32_t kernel_of(const ActivityTable::Replay& replay) {
  return std::ranges::max_element(
             replay.ran, [](const auto& a, const auto& b) { return a.second.busy < b.second.busy; })
      ->first;
}

// Re-runs of several sizes of one kernel in the proportions of the program, in which they also ran
// where a loop does not know them: where the program's launches are not separated by size, only
// together do they take the time in place. They follow each other; what comes later is a
// repetition.
ByClass all_sizes(const ActivityTable& table, std::size_t index) {
  const auto& replay = table.replays[index];
  if (replay.ran.empty()) return replay.ran;
  const std::uint32_t kernel = kernel_of(replay);
  const auto is_of_it = [&](const ActivityTable::Replay& other) {
    return other.trace == replay.trace && (other.ran.empty() || kernel_of(other) == kernel);
  };
  std::size_t first = index;
  while (first > 0 && is_of_it(table.replays[first - 1])) --first;
  ActivityTable::Replay::Ran sum;
  for (std::size_t i = first; i < table.replays.size() && is_of_it(table.replays[i]); ++i) {
    const auto& other = table.replays[i];
    if (other.ran.empty() || other.variant_of(kernel) != replay.variant_of(kernel)) continue;
    const auto& ran = other.ran.at(kernel);
    const double weight =
        replay.of_program == 0 || ran.launches == 0
            ? 1
            : static_cast<double>(other.of_program) / static_cast<double>(ran.launches);
    sum.launches += replay.of_program == 0 ? ran.launches : other.of_program;
    sum.busy += weight * ran.busy;
  }
  return {{kernel, sum}};
}

}  // namespace

ReplayCheck drop_deviating_replays(const ActivityTable& table, const SmClocks& clocks,
                                   std::vector<ObservedPower>& observed) {
  const auto drop = [&](double begin, double end) {
    std::erase_if(observed, [&](const ObservedPower& s) { return s.end > begin && s.begin < end; });
  };
  if (table.replays.empty()) return {};
  const bool differ = clocks.replays_differ();
  std::size_t elsewhere = 0;  // at other clocks
  ReplayCheck out;
  std::vector<std::string> dropped;
  // Of the loops of a kernel, weighted by their time: the errors of loops at higher and at lower
  // clocks than the program's cancel.
  struct Doubt {
    double seconds = 0;
    double more = 0;
    double clock = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Doubt> doubts;
  for (std::size_t index = 0; index < table.replays.size(); ++index) {
    const auto& replay = table.replays[index];
    const bool known = !replay.ran.empty() && replay.clock > 0 && clocks.program_hertz();
    const double clock = known ? replay.clock / *clocks.program_hertz() : 1;
    if ((differ && !known) || std::abs(std::log(clock)) > kFarClock) {
      ++elsewhere;
      drop(replay.begin, replay.end);
      continue;
    }
    const auto in_program = in_place(table, replay);
    const ByClass alone = all_sizes(table, index);
    const double times = 1 + longer(in_program, alone);
    const double more = without_clock(times, clock) - 1;
    if (std::abs(more) <= kErrors.rerun_kernel_apart) {
      if (!replay.ran.empty()) {
        const std::uint32_t kernel = kernel_of(replay);
        const std::uint32_t variant = replay.variant_of(kernel);
        const double middle = more < 0 ? 1 + more / 2 : 1;
        const PowerByClock power = power_by_clock(times, clock);
        out.loops.push_back({kernel, variant, replay.begin, replay.end, power.ratio / middle});
        Doubt& doubt = doubts[{kernel, variant}];
        const double weight = replay.end - replay.begin;
        doubt.seconds += weight;
        doubt.more += weight * std::abs(more < 0 ? more / 2 / middle : more);
        doubt.clock += weight * (clock < 1 ? -power.off : power.off);
        if (std::abs(more) > kErrors.rerun_apart) continue;
      }
      // Where the program was at its limit, too, all slots together have the loop's clock.
      if (known && clocks.held_long()) continue;
      // Other sizes take other times: a slot is held against the loop that it is of.
      const double loop = 1 + longer(in_program, replay.ran);
      for (std::size_t i = 0; i < replay.slots.size(); ++i) {
        const double slot = 1 + longer(in_program, replay.slots[i]);
        if (slot / loop * (1 + more) - 1 > kMostHeld) {
          const double begin = replay.begin + static_cast<double>(i) * replay.kSlot;
          drop(begin, begin + replay.kSlot);
        }
      }
      continue;
    }
    const auto& name = table.classes[kernel_of(replay)].key.name;
    dropped.push_back(fmt::format("{} ({:+.0f} %)", demangle(name), 100 * more));
    drop(replay.begin, replay.end);
  }
  for (const auto& [of, doubt] : doubts) {
    const double all = std::hypot(doubt.more / doubt.seconds, doubt.clock / doubt.seconds,
                                  clocks.doubt_of(of.first));
    if (all > kErrors.rerun_noted) out.deviating.push_back({of.first, of.second, all});
  }
  if (elsewhere > 0) {
    const bool all = elsewhere == table.replays.size();
    out.warnings.push_back(fmt::format("{}isolated re-runs not used: {}",
                                       all ? "" : fmt::format("{} ", elsewhere),
                                       clocks.why_replays_differ()));
  }
  if (dropped.empty()) return out;
  const std::size_t more = dropped.size() > kMostNamed ? dropped.size() - kMostNamed : 0;
  dropped.resize(std::min(dropped.size(), kMostNamed));
  out.warnings.push_back(
      fmt::format("isolated re-runs not used, because their kernels took another time than in the "
                  "program: {}{}",
                  fmt::join(dropped, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  return out;
}

}  // namespace jouleprof::analysis
