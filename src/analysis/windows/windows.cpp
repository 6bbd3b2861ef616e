#include "analysis/windows/windows.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/timeline/recording_timelines.h"
#include "analysis/windows/window_chains.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::ImportedWindow;
using model::Window;
using model::WindowGroup;

bool begins_in(const std::optional<RecordedSpan>& part, std::optional<HostTime> begin) {
  return !part || (begin && *begin >= part->begin && *begin < part->end);
}

// The energy of several windows by level. Errors of a level are common to all windows.
class LevelSum {
 public:
  void add(const model::EnergyLevels& levels) {
    if (sum_ && !sum_->reason.empty()) return;
    if (!sum_ || !levels.reason.empty()) {
      sum_ = levels;
      return;
    }
    add(sum_->rest, levels.rest);
    add(sum_->held, levels.held);
    add(sum_->active, levels.active);
    if (sum_->held_time && levels.held_time) *sum_->held_time += *levels.held_time;
    if (sum_->idle && levels.idle) {
      *sum_->idle += *levels.idle;
    } else {
      sum_->idle.reset();
    }
  }
  // `whole`: the sum of the windows' energies; its interval is part of the active energy's.
  // `whole` may differ from the sum of the windows' energies: by `more` joules of active energy.
  model::EnergyLevels sum(const model::Measurement& whole, Energy more) const {
    if (!sum_) return {};
    model::EnergyLevels out = *sum_;
    if (!out.reason.empty()) return {{}, {}, {}, {}, {}, out.reason};
    if (out.active) {
      out.active->energy += more;
      out.active->repeatability = whole.repeatability;
      if (out.rest) out.active->repeatability += out.rest->repeatability;
      if (out.held) out.active->repeatability += out.held->repeatability;
      out.active->error = std::max(whole.error, out.active->repeatability);
    }
    return out;
  }

 private:
  static void add(std::optional<model::Measurement>& to,
                  const std::optional<model::Measurement>& more) {
    if (!to || !more) return to.reset();
    to->energy += more->energy;
    to->repeatability += more->repeatability;
    to->error += more->error;
  }

  std::optional<model::EnergyLevels> sum_;
};

// Windows of one process count in full each. Where those of several processes overlap, as the
// ranks' of one job do, they share the device's time: one window for each time in which any was
// open.
class SharedTime {
 public:
  struct Span {
    HostTime begin{};
    HostTime end{};
    std::size_t count = 0;  // of windows
  };

  // `windows`: in order of begin; outlives this.
  explicit SharedTime(std::span<const Window* const> windows) : windows_(windows) {
    const auto other = [&](const Window* w) { return w->pid != windows.front()->pid; };
    if (std::ranges::none_of(windows, other)) {
      spans_ = singles();
      return;
    }
    is_shared_ = true;
    for (const Window* w : windows) {
      if (spans_.empty() || w->begin >= spans_.back().end) {
        spans_.push_back({w->begin, w->end, 1});
        continue;
      }
      spans_.back().end = std::max(spans_.back().end, w->end);
      ++spans_.back().count;
    }
  }

  const std::vector<Span>& spans() const { return spans_; }
  // Each window in full.
  std::vector<Span> singles() const {
    std::vector<Span> all;
    for (const Window* w : windows_) all.push_back({w->begin, w->end, 1});
    return all;
  }
  bool is_shared() const { return is_shared_; }
  // At least half of them are so long that single ones have an energy of their own, by sensors of
  // this resolution.
  bool are_long(Duration resolution) const {
    const Duration least = std::max(kShortWindow, resolution);
    const auto is_short = [least](const Window* w) { return w->end - w->begin < least; };
    const auto few = std::ranges::count_if(windows_, is_short);
    return 2 * static_cast<std::size_t>(few) <= windows_.size();
  }
  std::span<const Window* const> windows() const { return windows_; }

 private:
  std::span<const Window* const> windows_;
  std::vector<Span> spans_;
  bool is_shared_ = false;
};

// Spans of which no two overlap have no more energy than the time from the first to the last: the
// errors of many short ones add up to more.
void limit_to_whole(model::Measurement& sum, std::span<const SharedTime::Span> spans,
                    EnergyTimeline& timeline) {
  const auto overlap = [](const SharedTime::Span& a, const SharedTime::Span& b) {
    return b.begin < a.end;
  };
  if (std::ranges::adjacent_find(spans, overlap) != spans.end()) return;
  const auto whole = timeline.energy(spans.front().begin, spans.back().end);
  if (!whole) return;
  // What begins at 0 may not reach below its figure by less.
  const Energy most = std::max(whole->high() - sum.energy, sum.energy);
  sum.error = std::min(sum.error, most);
  sum.repeatability = std::min(sum.repeatability, most);
}

// Adds up the energies of spans in order of begin; the interval is that of their chains. `each`
// gets every span that has an energy, `without` the error of one that has none.
template <class Each, class Without>
std::optional<model::Measurement> sum_of(std::span<const SharedTime::Span> spans,
                                         EnergyTimeline& timeline, const Each& each,
                                         const Without& without) {
  model::WindowSum sum;
  WindowChains chains;
  const auto ended = [&](const WindowChain& chain) {
    const auto whole = timeline.energy(chain.begin, chain.end);
    if (whole) (void)add_chain(chain, *whole, timeline, sum);
  };
  Energy energy;
  for (const auto& span : spans) {
    const auto m = timeline.energy(span.begin, span.end);
    if (!m) {
      without(m.error());
      continue;
    }
    energy += m->energy;
    each(span, *m);
    chains.add(span.begin, span.end, ended);
  }
  chains.end_all(ended);
  auto out = sum.sum();
  if (!out) return out;
  out->energy = energy;
  limit_to_whole(*out, spans, timeline);
  return out;
}

void add_up(const SharedTime& windows, EnergyTimeline& timeline, const BoardLevels* levels,
            const CommonEnergy* common, model::WindowEnergy& out) {
  LevelSum by_level;
  std::vector<double> single;  // joules of each
  out.energy = sum_of(
      windows.spans(), timeline,
      [&](const SharedTime::Span& span, const model::Measurement& m) {
        out.count += span.count;
        single.push_back(m.energy.joules());
        if (levels != nullptr) by_level.add(levels->split(m, span.begin, span.end));
      },
      [&](const Error& error) {
        if (out.reason.empty()) out.reason = error.message;
      });
  if (!out.energy) return;
  if (windows.is_shared()) {
    const auto ignore = [](const auto&...) {};
    out.singles = sum_of(windows.singles(), timeline, ignore, ignore);
  }
  const Energy energy = out.energy->energy;
  if (!windows.is_shared() && windows.are_long(timeline.resolution()) &&
      out.count == windows.windows().size()) {
    out.quartiles = model::energy_quartiles_of(std::move(single));
  }
  const bool is_whole = !windows.is_shared() && out.count == windows.windows().size();
  if (common != nullptr && *common && is_whole) {
    if (auto whole = (*common)(windows.windows()); whole && replaces(*whole, *out.energy)) {
      out.energy = std::move(*whole);
    }
  }
  out.levels = by_level.sum(*out.energy, out.energy->energy - energy);
}

std::vector<WindowGroup> groups_of(const model::Recording& recording, Timelines& timelines,
                                   std::span<const BoardLevels> levels,
                                   std::span<const CommonEnergy> common,
                                   const std::optional<RecordedSpan>& part) {
  std::vector<WindowGroup> groups;
  std::unordered_map<std::string_view, std::size_t> by_name;
  std::vector<std::vector<const Window*>> members;
  for (const Window& w : recording.windows) {
    if (!begins_in(part, w.begin)) continue;
    const auto [place, is_new] = by_name.try_emplace(w.name, groups.size());
    if (is_new) {
      groups.emplace_back().name = w.name;
      members.emplace_back();
    }
    WindowGroup& group = groups[place->second];
    ++group.count;
    group.total_time += w.end - w.begin;
    members[place->second].push_back(&w);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<double> times;
    for (const Window* w : members[g]) times.push_back(seconds(w->end - w->begin));
    groups[g].time_quartiles = model::time_quartiles_of(std::move(times));
  }
  // In order of begin, as chains need them.
  std::vector<SharedTime> times;
  std::vector<bool> restricted;  // some windows have devices of their own
  for (auto& windows : members) {
    std::ranges::stable_sort(windows,
                             [](const Window* a, const Window* b) { return a->begin < b->begin; });
    times.emplace_back(windows);
    restricted.push_back(
        std::ranges::any_of(windows, [](const Window* w) { return !w->devices.is_all(); }));
  }
  for (std::size_t d = 0; d < recording.domains.size() && !groups.empty(); ++d) {
    const std::string silent =
        timelines[d] ? "" : unavailable_reason(recording, recording.domains[d]);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      model::WindowEnergy& out = groups[g].energies.emplace_back();
      out.domain = recording.domains[d].id;
      out.reason = silent;
      if (restricted[g]) {
        std::vector<const Window*> here;
        for (const Window* w : members[g]) {
          if (w->devices.contains(out.domain)) here.push_back(w);
        }
        if (here.size() < groups[g].count) out.measuring = here.size();
        if (!timelines[d]) continue;
        if (here.empty()) {
          out.reason = std::string(model::kNoWindowMeasures);
          continue;
        }
        add_up(SharedTime(here), *timelines[d], d < levels.size() ? &levels[d] : nullptr, nullptr,
               out);
        continue;
      }
      if (!timelines[d]) continue;
      add_up(times[g], *timelines[d], d < levels.size() ? &levels[d] : nullptr,
             d < common.size() ? &common[d] : nullptr, out);
    }
  }
  return groups;
}

std::vector<WindowGroup> imported_groups(const model::Recording& recording,
                                         const std::optional<RecordedSpan>& part) {
  std::map<model::DomainId, std::size_t> places;
  for (std::size_t d = 0; d < recording.domains.size(); ++d) places[recording.domains[d].id] = d;
  // A name and its labels, each ended by a byte that separates them.
  const auto key_of = [](const ImportedWindow& w) {
    std::string key = w.name + '\0';
    for (const auto& label : w.labels) key += label.name + '\0' + label.value + '\0';
    return key;
  };
  std::vector<WindowGroup> groups;
  std::unordered_map<std::string, std::size_t> by_key;
  // Of each group: seconds of its windows, and joules by domain.
  std::vector<std::pair<std::vector<double>, std::vector<std::vector<double>>>> single;
  for (const ImportedWindow& w : recording.imported_windows) {
    if (!begins_in(part, w.begin)) continue;
    const auto [place, is_new] = by_key.try_emplace(key_of(w), groups.size());
    if (is_new) {
      WindowGroup& fresh = groups.emplace_back();
      fresh.name = w.name;
      fresh.labels = w.labels;
      fresh.imported = true;
      for (const auto& domain : recording.domains) fresh.energies.emplace_back().domain = domain.id;
      single.emplace_back().second.resize(recording.domains.size());
    }
    WindowGroup& group = groups[place->second];
    ++group.count;
    group.total_time += w.duration;
    auto& [times, joules] = single[place->second];
    times.push_back(seconds(w.duration));
    for (const auto& [domain, energy] : w.energies) {
      const auto found = places.find(domain);
      if (found == places.end()) continue;
      model::WindowEnergy& sum = group.energies[found->second];
      ++sum.count;
      joules[found->second].push_back(energy.joules());
      sum.reported = sum.reported.value_or(Energy{}) + energy;
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    WindowGroup& group = groups[g];
    group.time_quartiles = model::time_quartiles_of(std::move(single[g].first));
    for (std::size_t d = 0; d < group.energies.size(); ++d) {
      model::WindowEnergy& sum = group.energies[d];
      if (sum.count < group.count) {
        sum.reason = "the imported file has no energy for some of these windows";
      } else {
        sum.quartiles = model::energy_quartiles_of(std::move(single[g].second[d]));
      }
    }
  }
  return groups;
}

// Begin and duration are rounded each for itself: so much of an overlap is none.
constexpr Duration kRounding = std::chrono::milliseconds{2};

struct Span {
  HostTime begin;
  HostTime end;
  Energy energy;
};

// Of one setting of a sweep: a token or an epoch of it, and not all that ran.
bool is_sample(const model::ImportedWindow& window) {
  return std::ranges::any_of(window.labels,
                             [](const auto& label) { return label.name == "power_limit_watts"; });
}

}  // namespace

bool replaces(const model::Measurement& common, const model::Measurement& sum) {
  const Energy apart =
      common.energy > sum.energy ? common.energy - sum.energy : sum.energy - common.energy;
  return common.repeatability < sum.repeatability &&
         apart <= common.repeatability + sum.repeatability;
}

void mark_windows(Timelines& timelines, std::span<const Window> windows) {
  std::vector<HostTime> edges;
  edges.reserve(2 * windows.size());
  for (const Window& w : windows) {
    edges.push_back(w.begin);
    edges.push_back(w.end);
  }
  // Sorted, so that each mark is appended.
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for (auto& timeline : timelines) {
    if (!timeline) continue;
    for (const HostTime edge : edges) timeline->mark(edge);
  }
}

std::vector<WindowGroup> window_groups(const model::Recording& recording, Timelines& timelines,
                                       std::span<const BoardLevels> levels,
                                       std::span<const CommonEnergy> common,
                                       const std::optional<RecordedSpan>& part) {
  auto groups = groups_of(recording, timelines, levels, common, part);
  auto imported = imported_groups(recording, part);
  groups.insert(groups.end(), std::make_move_iterator(imported.begin()),
                std::make_move_iterator(imported.end()));
  return groups;
}

Result<ReportedEnergy> reported_energy(std::span<const model::ImportedWindow> windows,
                                       model::DomainId domain) {
  std::vector<Span> spans;
  std::vector<Span> without;
  std::size_t without_time = 0;
  bool has_samples = false;
  for (const auto& window : windows) {
    if (is_sample(window)) {
      has_samples = true;
      continue;
    }
    const HostTime begin = window.begin.value_or(HostTime{});
    const std::size_t before = spans.size();
    for (const auto& e : window.energies) {
      if (e.domain != domain) continue;
      if (!window.begin) ++without_time;
      spans.push_back({begin, begin + window.duration, e.energy});
    }
    if (spans.size() == before) without.push_back({begin, begin + window.duration, {}});
  }
  if (spans.empty()) {
    return fail(Errc::kUnavailable, has_samples
                                        ? "its windows are samples of a sweep's settings, which "
                                          "have no sum"
                                        : "no window has an energy of it");
  }
  if (without_time > 0 && spans.size() > 1) {
    return fail(Errc::kUnavailable,
                "its windows have no time: some may lie within others, so they have no sum");
  }
  std::ranges::stable_sort(spans, [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  ReportedEnergy sum;
  std::vector<Span> outermost;
  for (const Span& span : spans) {
    if (outermost.empty() || span.begin + kRounding >= outermost.back().end) {
      outermost.push_back(span);
      sum.energy += span.energy;
      ++sum.windows;
    } else if (span.end <= outermost.back().end + kRounding &&
               span.energy <= outermost.back().energy) {
      ++sum.within;
    } else {
      return fail(Errc::kUnavailable,
                  "its windows overlap in part: what they share is in both, so they have no sum");
    }
  }
  sum.lacking = static_cast<std::size_t>(std::ranges::count_if(without, [&](const Span& lacks) {
    const auto next =
        std::ranges::upper_bound(outermost, lacks.begin + kRounding, {}, &Span::begin);
    return next == outermost.begin() || lacks.end > std::prev(next)->end + kRounding;
  }));
  return sum;
}

}  // namespace jouleprof::analysis
