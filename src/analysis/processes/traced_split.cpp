#include "analysis/processes/traced_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analysis/processes/apportion.h"
#include "analysis/processes/recorded_use.h"

namespace jouleprof::analysis {
namespace {

bool uses_device(const model::Trace& trace) {
  return std::any_of(trace.chunks.begin(), trace.chunks.end(),
                     [](const auto& chunk) { return model::is_bins(chunk.kind); });
}

}  // namespace

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

namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = 3s;

}  // namespace

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
    lost.begin = std::max(lost.begin, lost.end - kLongest);
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
