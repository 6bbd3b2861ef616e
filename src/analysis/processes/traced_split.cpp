#include "analysis/processes/traced_split.h"

#include <algorithm>
#include <map>

#include "analysis/processes/apportion.h"

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

std::vector<double> untraced_use(const model::Recording& recording, const model::Domain& domain,
                                 HostTime begin, HostTime end,
                                 const std::function<void(HostTime, std::size_t, double)>& also) {
  std::vector<double> use(recording.processes.size(), 0.0);
  std::map<model::ProcessId, std::size_t> places;
  for (std::size_t i = 0; i < use.size(); ++i) places[recording.processes[i].id] = i;
  for (const auto& trace : recording.traces) {
    const auto traced = uses_device(trace) ? process_of(recording, trace) : std::nullopt;
    if (traced) places.erase(recording.processes[*traced].id);
  }
  for (const auto& r : recording.process_readings.gpu_processes) {
    const auto place = places.find(r.process);
    if (place == places.end() || r.at < begin || r.at > end) continue;
    if (r.domain != domain.id && r.domain != domain.parent) continue;
    use[place->second] += r.compute_utilisation.value_or(0);
    if (also) also(r.at, place->second, r.compute_utilisation.value_or(0));
  }
  return use;
}

TracedSplit split_traced(const model::Recording& recording, const model::ActivityProfile& activity,
                         const BoardLevels& levels, Energy energy, std::optional<Energy> held,
                         HostTime begin, HostTime end) {
  TracedSplit out;
  out.shares.resize(recording.processes.size());
  out.unattributed = energy;
  std::vector<double> held_for(recording.processes.size(), 0.0);
  for (const auto& part : activity.by_process) {
    const auto place = process_of(recording, recording.traces[part.trace]);
    if (!place) continue;
    const auto context =
        context_span(recording.traces[part.trace], &recording.processes[*place], begin, end);
    held_for[*place] = std::max(seconds(context.end - context.begin), 0.0);
    auto& share = out.shares[*place];
    if (!share) share = model::ProcessShare{activity.domain.id, {}, Energy{}, Energy{}, {}};
    *share->kernels += part.kernels;
    *share->idle_between += part.idle_between;
    share->energy += part.kernels + part.idle_between;
    out.unattributed -= part.kernels + part.idle_between;
  }
  const auto of_untraced = apportion(
      activity.others, untraced_use(recording, activity.domain, activity.begin, activity.end));
  for (std::size_t i = 0; i < of_untraced.size(); ++i) {
    if (of_untraced[i] == Energy{}) continue;
    out.unattributed -= of_untraced[i];
    if (recording.processes[i].in_tree) {
      if (!out.shares[i]) out.shares[i] = model::ProcessShare{activity.domain.id, {}, {}, {}, {}};
      out.shares[i]->energy += of_untraced[i];
    } else {
      out.others += of_untraced[i];
    }
  }
  if (!held) return out;
  out.unattributed -= *held;
  out.held_unowned = *held;
  if (levels.shared) return out;
  const auto parts = apportion(*held, held_for);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!out.shares[i]) continue;
    out.shares[i]->held = parts[i];
    out.shares[i]->energy += parts[i];
    out.held_unowned -= parts[i];
  }
  return out;
}

}  // namespace jouleprof::analysis
