#include "analysis/processes/recorded_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "analysis/levels/domains.h"
#include "analysis/processes/apportion.h"
#include "analysis/processes/board_use.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kOneLook = 50ms;      // readings of one list
constexpr Duration kWaitedFor = 1200ms;  // after its end, a child's time is in its parent's
constexpr Duration kGoOn = 10s;          // others' short processes, after one that a look listed
constexpr Duration kListsEnded = 3s;     // before the end
constexpr Duration kLongestEnd = 3s;     // of a trace that was not closed
constexpr std::size_t kFewLooks = 2;     // that list a short one

// The measured processes by pid, which is given out again and again.
class Parents {
 public:
  explicit Parents(const std::vector<model::Process>& processes) : processes_(processes) {
    for (std::size_t p = 0; p < processes.size(); ++p) {
      if (processes[p].in_tree) by_pid_.emplace(processes[p].pid, p);
    }
  }
  // The one that is the parent of `child` and lives at `t`.
  std::optional<std::size_t> of(const model::Process& child, HostTime t) const {
    if (!child.in_tree) return std::nullopt;
    const auto [begin, end] = by_pid_.equal_range(child.parent_pid);
    const auto found = std::find_if(begin, end, [&](const auto& entry) {
      const auto& other = processes_[entry.second];
      return other.start <= child.start && other.end.value_or(HostTime::max()) >= t;
    });
    return found == end ? std::nullopt : std::optional(found->second);
  }

 private:
  const std::vector<model::Process>& processes_;
  std::multimap<pid_t, std::size_t> by_pid_;
};

std::vector<BoardLook> looks_of(const model::Recording& recording, const model::Domain& domain) {
  const auto places = places_of(recording.processes);
  const auto parts = parts_of(recording, domain);
  const auto counts = gauge_of(recording, domain, model::gauge::kProcessCount);
  std::map<HostTime, BoardLook> looks;
  std::map<HostTime, std::size_t> listed;
  const auto look_at = [&](HostTime t) {
    auto next = looks.lower_bound(t - kOneLook);
    if (next == looks.end() || next->first > t)
      next = looks.try_emplace(t, BoardLook{t, {}, false}).first;
    return next;
  };
  for (const auto& count : counts) {
    const auto look = look_at(count.at);
    listed[look->first] = static_cast<std::size_t>(std::max(count.value, 0.0));
  }
  std::vector<model::GpuProcessReading> readings;
  for (const auto& r : recording.process_readings.gpu_processes) {
    if (is_use_of(recording, r.domain, domain)) readings.push_back(r);
  }
  std::ranges::stable_sort(readings, [](const auto& a, const auto& b) { return a.at < b.at; });
  for (const auto& r : readings) {
    auto& look = look_at(r.at)->second;
    const auto place = places.find(r.process);
    if (place == places.end()) {
      look.has_unidentified = true;
      continue;
    }
    auto& uses = look.uses;
    auto same =
        std::ranges::find_if(uses, [&](const auto& u) { return u.process == place->second; });
    if (same == uses.end()) {
      same = uses.insert(uses.end(), {place->second, r.compute_utilisation});
    } else if (r.compute_utilisation) {
      same->utilisation = same->utilisation.value_or(0) + *r.compute_utilisation;
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p]->id == r.domain) same->parts.insert(p);
    }
    // Without the privilege to list all instances, processes of others are missing, and the
    // instance of none is known.
    if (!parts.empty() && same->parts.empty()) look.has_unidentified = true;
  }
  std::vector<BoardLook> out;
  for (auto& [at, look] : looks) {
    const auto count = listed.find(at);
    if (count != listed.end() && count->second > look.uses.size()) look.has_unidentified = true;
    out.push_back(std::move(look));
  }
  return out;
}

// When a traced process had a context within [begin, end]: from its first launch to its end.
// `process` may be null. Empty: the end is before the begin.
struct ContextSpan {
  HostTime begin{};
  HostTime end{};
};

ContextSpan context_span(const model::Trace& trace, const model::Process* process, HostTime begin,
                         HostTime end) {
  HostTime first = HostTime::max();
  HostTime last = HostTime::min();
  for (const auto& chunk : trace.chunks) {
    if (!model::is_bins(chunk.kind)) continue;
    first = std::min(first, chunk.begin);
    last = std::max(last, chunk.end);
  }
  if (process != nullptr) last = process->end.value_or(end);
  return {std::max(first, begin), std::min(last, end)};
}

// Of traced processes that worked on the board.
std::vector<KnownContext> known_contexts(const model::Recording& recording,
                                         const model::Domain& domain, HostTime begin,
                                         HostTime end) {
  std::vector<KnownContext> out;
  for (const auto& trace : recording.traces) {
    const auto process = process_of(recording, trace);
    const bool is_here = std::ranges::any_of(trace.chunks, [&](const auto& chunk) {
      return model::is_bins(chunk.kind) && is_on(recording, trace, chunk, domain);
    });
    if (!process || !is_here) continue;
    const auto span = context_span(trace, &recording.processes[*process], begin, end);
    out.push_back({*process, span.begin, span.end});
  }
  return out;
}

// The looks that list a process of others which few looks list, so that others' processes may have
// begun and ended between two looks, too.
std::vector<HostTime> looks_with_strangers(const std::vector<BoardLook>& looks,
                                           const std::vector<model::Process>& processes) {
  std::map<std::size_t, std::vector<HostTime>> listed;
  for (const auto& look : looks) {
    for (const auto& use : look.uses) listed[use.process].push_back(look.at);
  }
  std::vector<HostTime> out;
  for (const auto& [process, at] : listed) {
    const bool is_short =
        at.size() <= kFewLooks && at.front() > looks.front().at && at.back() < looks.back().at;
    if (is_short && !processes[process].in_tree) out.insert(out.end(), at.begin(), at.end());
  }
  std::ranges::sort(out);
  return out;
}

// Where short processes of others come and go, what no listed process used may be theirs.
void add_strangers(const std::vector<BoardLook>& looks,
                   const std::vector<model::Process>& processes, std::vector<UseSlice>& slices) {
  const auto strangers = looks_with_strangers(looks, processes);
  if (strangers.empty()) return;
  std::vector<bool> is_listed(processes.size());
  for (const auto& look : looks) {
    for (const auto& use : look.uses) is_listed[use.process] = true;
  }
  for (auto& slice : slices) {
    const auto near = std::ranges::lower_bound(strangers, slice.begin - kGoOn);
    if (near == strangers.end() || *near > slice.end + kGoOn) continue;
    for (Claim& claim : slice.claims) {
      const bool is_guessed = std::ranges::none_of(
          claim.candidates, [&](std::size_t p) { return p == kUnidentified || is_listed[p]; });
      if (is_guessed) claim.candidates.push_back(kUnidentified);
    }
  }
}

bool uses_device(const model::Trace& trace) {
  return std::ranges::any_of(trace.chunks,
                             [](const auto& chunk) { return model::is_bins(chunk.kind); });
}

// Whether the process has a trace of its work on a GPU.
std::vector<bool> traced_processes(const model::Recording& recording) {
  std::vector<bool> out(recording.processes.size());
  for (const auto& trace : recording.traces) {
    const auto place = uses_device(trace) ? process_of(recording, trace) : std::nullopt;
    if (place) out[*place] = true;
  }
  return out;
}

}  // namespace

std::map<model::ProcessId, std::size_t> places_of(const std::vector<model::Process>& processes) {
  std::map<model::ProcessId, std::size_t> places;
  for (std::size_t i = 0; i < processes.size(); ++i) places[processes[i].id] = i;
  return places;
}

std::vector<UseSlice> recorded_use(const model::Recording& recording, const model::Domain& domain,
                                   HostTime begin, HostTime end) {
  BoardEvidence evidence;
  evidence.looks = looks_of(recording, domain);
  for (const auto& p : recording.processes) evidence.lives.push_back({p.start, p.end, p.in_tree});
  evidence.known = known_contexts(recording, domain, begin, end);
  for (const auto* part : parts_of(recording, domain)) {
    evidence.parts.push_back({static_cast<double>(slices_of(*part)),
                              gauge_of(recording, *part, model::gauge::kSmActivity)});
  }
  if (evidence.parts.empty())
    evidence.utilisation = gauge_of(recording, domain, model::gauge::kGpuUtilisation);
  const auto places = places_of(recording.processes);
  std::vector<Growing> cpu(recording.processes.size());
  std::vector<Growing> children(recording.processes.size());
  for (const auto& r : recording.process_readings.processes) {
    const auto place = places.find(r.process);
    if (place == places.end()) continue;
    const HostTime start = recording.processes[place->second].start;
    auto& time = cpu[place->second];
    if (time.empty() && start > HostTime{} && start < r.at) time.add(start, 0);
    time.add(r.at, seconds(r.cpu_time));
    children[place->second].add(r.at, seconds(r.unseen_children_cpu_time));
  }
  std::vector<HostTime> listed(cpu.size());
  for (const auto& look : evidence.looks) {
    for (const auto& use : look.uses) listed[use.process] = look.at;
  }
  const HostTime last_look = evidence.looks.empty() ? HostTime{} : evidence.looks.back().at;
  const Parents parents(recording.processes);
  for (std::size_t p = 0; p < cpu.size(); ++p) {
    if (cpu[p].empty()) continue;
    const auto& process = recording.processes[p];
    const double last = cpu[p].at(cpu[p].last());
    // A reading is repeated only when it changed. Others' processes are read while they are listed.
    const bool has_left = !process.in_tree && listed[p] < last_look;
    if (!process.end) {
      cpu[p].add(has_left ? std::max(listed[p], cpu[p].last()) : end, last);
      continue;
    }
    // What a child used after its last reading is its parent's once that has waited for it.
    const auto parent = parents.of(process, *process.end + kWaitedFor);
    if (!parent || *process.end <= cpu[p].last()) continue;
    const auto& waited = children[*parent];
    cpu[p].add(*process.end,
               last + waited.at(*process.end + kWaitedFor) - waited.at(cpu[p].last()));
  }
  evidence.cpu_share = [&cpu](std::size_t process, HostTime a, HostTime b) {
    return cpu[process].rate(a, b);
  };
  evidence.children_cpu_share = [&children](std::size_t process, HostTime a, HostTime b) {
    return children[process].rate(a, b);
  };
  auto slices = board_use(evidence, begin, end);
  add_strangers(evidence.looks, recording.processes, slices);
  return slices;
}

OtherUsers unlisted_users(const model::Recording& recording, const model::Domain& domain,
                          HostTime begin, HostTime end) {
  BoardEvidence evidence;
  evidence.looks = looks_of(recording, domain);
  for (const auto& p : recording.processes) evidence.lives.push_back({p.start, p.end, p.in_tree});
  evidence.known = known_contexts(recording, domain, begin, end);
  evidence.utilisation = gauge_of(recording, domain, model::gauge::kGpuUtilisation);
  // Where even empty lists are counted, the lists have ended.
  const bool have_ended = evidence.known.empty() &&
                          !gauge_of(recording, domain, model::gauge::kProcessCount).empty() &&
                          evidence.looks.back().at + kListsEnded < end;
  return std::max(have_ended ? OtherUsers::kMaybe : OtherUsers::kNone,
                  unlisted_users(evidence, begin, end));
}

namespace {

template <typename IsOwn>
Owner owner_by(const Claim& claim, IsOwn is_own) {
  const auto& all = claim.candidates;
  const bool unidentified = std::ranges::find(all, kUnidentified) != all.end();
  const auto own =
      std::ranges::count_if(all, [&](std::size_t p) { return p != kUnidentified && is_own(p); });
  if (own == static_cast<std::ptrdiff_t>(all.size()))
    return own == 1 ? Owner::kProcess : Owner::kCommand;
  return own > 0 || unidentified ? Owner::kUnknown : Owner::kOthers;
}

}  // namespace

Owner owner_of(const Claim& claim, const std::vector<model::Process>& processes) {
  return owner_by(claim, [&](std::size_t p) { return processes[p].in_tree; });
}

std::vector<UseSlice> untraced_use(const model::Recording& recording, const model::Domain& domain,
                                   HostTime begin, HostTime end) {
  const auto traced = traced_processes(recording);
  const auto is_traced = [&](std::size_t p) { return p != kUnidentified && traced[p]; };
  auto slices = recorded_use(recording, domain, begin, end);
  for (auto& slice : slices) {
    for (auto& claim : slice.claims) std::erase_if(claim.candidates, is_traced);
    std::erase_if(slice.claims,
                  [](const Claim& claim) { return claim.at_rest || claim.candidates.empty(); });
  }
  return slices;
}

std::vector<TracedPart> traced_parts(const model::Recording& recording, const model::Domain& domain,
                                     HostTime begin, HostTime end) {
  const auto traced = traced_processes(recording);
  std::vector<TracedPart> out;
  for (const auto& slice : recorded_use(recording, domain, begin, end)) {
    double all = 0, own = 0, others = 0;
    for (const Claim& claim : slice.claims) {
      if (claim.at_rest) continue;
      all += claim.weight;
      if (slice.is_guess || claim.in_doubt) continue;
      const Owner owner = owner_by(claim, [&](std::size_t p) { return traced[p]; });
      if (owner == Owner::kOthers) others += claim.weight;
      if (owner == Owner::kProcess || owner == Owner::kCommand) own += claim.weight;
    }
    out.push_back({slice.begin, slice.end});
    if (all > 0) out.back().least = own / all, out.back().most = 1 - others / all;
  }
  return out;
}

std::optional<std::size_t> process_of(const model::Recording& recording,
                                      const model::Trace& trace) {
  HostTime first = HostTime::max();
  for (const auto& chunk : trace.chunks) first = std::min(first, chunk.begin);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < recording.processes.size(); ++i) {
    const auto& p = recording.processes[i];
    if (p.pid != trace.pid && p.own_pid != trace.pid) continue;
    if (p.start > first || (p.end && *p.end < first)) {
      if (!best) best = i;
      continue;
    }
    best = i;
  }
  return best;
}

void add_traced_processes(model::Recording& recording) {
  std::uint32_t next = 0;
  for (const auto& p : recording.processes) {
    next = std::max(next, static_cast<std::uint32_t>(p.id) + 1);
  }
  for (const auto& trace : recording.traces) {
    if (!uses_device(trace) || process_of(recording, trace)) continue;
    model::Process& p = recording.processes.emplace_back();
    p.id = model::ProcessId{next++};
    p.pid = trace.pid;
    p.name = trace.program.empty() ? "traced program" : trace.program;
    p.start = trace.chunks.front().begin;
    for (const auto& chunk : trace.chunks) {
      p.start = std::min(p.start, chunk.begin);
      p.end = std::max(p.end.value_or(chunk.end), chunk.end);
    }
    p.in_tree = true;
  }
}

TracedSplit split_traced(const model::Recording& recording, const model::ActivityProfile& activity,
                         Energy energy) {
  TracedSplit out;
  out.shares.resize(recording.processes.size());
  out.unattributed = energy;
  const auto share_of = [&](std::size_t process) -> model::ProcessShare& {
    auto& share = out.shares[process];
    if (!share) share = model::ProcessShare{activity.domain.id, {}, {}, {}, {}};
    return *share;
  };
  for (const auto& part : activity.by_process) {
    const auto place = process_of(recording, recording.traces[part.trace]);
    if (!place) continue;
    auto& share = share_of(*place);
    share.kernels = share.kernels.value_or(Energy{}) + part.kernels;
    share.idle_between = share.idle_between.value_or(Energy{}) + part.idle_between;
    share.energy += part.kernels + part.idle_between;
    out.unattributed -= part.kernels + part.idle_between;
  }
  std::vector<Claim> claims;
  for (auto& slice : untraced_use(recording, activity.domain, activity.begin, activity.end)) {
    double sum = 0;
    for (const auto& claim : slice.claims) sum += claim.weight;
    for (auto& claim : slice.claims) {
      claim.weight *= seconds(slice.end - slice.begin) / sum;
      claims.push_back(std::move(claim));
    }
  }
  std::vector<double> weights;
  for (const auto& claim : claims) weights.push_back(claim.weight);
  const auto parts = apportion(activity.others, weights);
  for (std::size_t c = 0; c < parts.size(); ++c) {
    const Owner owner = owner_of(claims[c], recording.processes);
    if (owner == Owner::kUnknown) {
      out.contested += parts[c];
      out.contested_time += duration_of(claims[c].weight);
      continue;
    }
    out.unattributed -= parts[c];
    if (owner == Owner::kProcess) share_of(claims[c].candidates.front()).energy += parts[c];
    if (owner == Owner::kCommand) out.within_command += parts[c];
    if (owner == Owner::kOthers) out.others += parts[c];
  }
  return out;
}

std::vector<LostEnd> lost_ends(const model::Recording& recording, std::optional<HostTime> from,
                               std::optional<HostTime> to) {
  std::vector<LostEnd> out;
  for (std::uint32_t t = 0; t < recording.traces.size(); ++t) {
    const model::Trace& trace = recording.traces[t];
    if (trace.status.ended || !trace.position || trace.chunks.empty()) continue;
    const auto process = process_of(recording, trace);
    if (!process || !recording.processes[*process].end) continue;  // it lives
    LostEnd lost{t, HostTime::min(), *recording.processes[*process].end};
    for (const auto& chunk : trace.chunks) lost.begin = std::max(lost.begin, chunk.end);
    lost.begin = std::max(lost.begin, lost.end - kLongestEnd);
    if (from) lost.begin = std::max(lost.begin, *from);
    if (to) lost.end = std::min(lost.end, *to);
    if (lost.begin < lost.end) out.push_back(lost);
  }
  return out;
}

std::string lost_text(const model::Recording& recording, const LostEnd& lost) {
  const model::Trace& trace = recording.traces[lost.trace];
  return fmt::format(
      "{} (pid {}) ended without closing its trace, as after a signal or _exit: what it ran in its "
      "last {:.2f} s is not known",
      trace.program.empty() ? "a program" : trace.program, trace.pid,
      seconds(lost.end - lost.begin));
}

}  // namespace jouleprof::analysis
