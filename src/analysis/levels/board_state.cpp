#include "analysis/levels/board_state.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "analysis/levels/domains.h"
#include "model/device/gauge_names.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kLeastHighClock = 1.2e9;  // hertz
constexpr double kHeldClock = 0.5;         // of the highest
constexpr double kAnyUse = 0.005;          // of utilisation, while a clock is read
constexpr double kBusy = 0.05;             // of utilisation, in an idle span
constexpr Duration kTogether = 200ms;      // gauges of one round

// What was read together with `t`, the nearest one.
std::optional<double> read_at(const std::vector<model::GaugeReading>& readings, HostTime t) {
  auto next = std::lower_bound(readings.begin(), readings.end(), t,
                               [](const auto& r, HostTime x) { return r.at < x; });
  const bool is_before_nearer = next != readings.begin() &&
                                (next == readings.end() || t - std::prev(next)->at < next->at - t);
  if (is_before_nearer) --next;
  if (next == readings.end() || std::chrono::abs(next->at - t) > kTogether) return std::nullopt;
  return next->value;
}

}  // namespace

BoardState::BoardState(const model::Recording& recording, const model::Domain& domain) {
  const auto clocks = gauge_of(recording, domain, model::gauge::kSmClock);
  const auto utilisations = gauge_of(recording, domain, model::gauge::kGpuUtilisation);
  const auto counts = gauge_of(recording, domain, model::gauge::kProcessCount);
  double highest = kLeastHighClock;
  for (const auto& r : clocks) highest = std::max(highest, r.value);
  for (const auto& r : clocks) {
    // A utilisation is a mean over the second before: work that ended leaves one.
    const bool used =
        read_at(utilisations, r.at).value_or(0) > kAnyUse && read_at(counts, r.at).value_or(1) > 0;
    evidence_.push_back({r.at, r.value > kHeldClock * highest || used});
  }
  if (clocks.empty()) {
    for (const auto& r : counts) {
      evidence_.push_back({r.at, r.value > 0});
    }
    for (const auto& r : recording.process_readings.gpu_processes) {
      if (is_use_of(recording, r.domain, domain)) evidence_.push_back({r.at, true});
    }
  }
  add_traces(recording, domain);
  if (clocks.empty() && !evidence_.empty()) add_idle_spans(recording, utilisations);
  std::stable_sort(evidence_.begin(), evidence_.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  // A clock that was read while a launch ran does not count as rest.
  std::erase_if(evidence_, [&](const auto& e) { return !e.held && was_traced(e.at, e.at); });
}

void BoardState::add_traces(const model::Recording& recording, const model::Domain& domain) {
  for (const auto& trace : recording.traces) {
    for (const auto& chunk : trace.chunks) {
      if (!model::is_bins(chunk.kind) || !is_on(recording, trace, chunk, domain)) continue;
      evidence_.push_back({chunk.begin, true});
      evidence_.push_back({chunk.end, true});
      traced_.push_back({chunk.begin, chunk.end});
    }
  }
  std::sort(traced_.begin(), traced_.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<RecordedSpan> joined;
  for (const auto& s : traced_) {
    if (joined.empty() || s.begin > joined.back().end) joined.push_back(s);
    joined.back().end = std::max(joined.back().end, s.end);
  }
  traced_ = std::move(joined);
}

void BoardState::add_idle_spans(const model::Recording& recording,
                                const std::vector<model::GaugeReading>& utilisations) {
  const auto looked_at = evidence_;
  for (const auto& span : recording.idle_spans) {
    const auto inside = [&](const auto& e) { return e.at >= span.begin && e.at <= span.end; };
    const bool is_held = std::any_of(looked_at.begin(), looked_at.end(),
                                     [&](const auto& e) { return e.held && inside(e); });
    const bool is_used = std::any_of(utilisations.begin(), utilisations.end(),
                                     [&](const auto& r) { return r.value > kBusy && inside(r); });
    if (is_held || is_used) continue;
    evidence_.push_back({span.begin, false});
    evidence_.push_back({span.end, false});
  }
}

std::vector<StateChange> BoardState::changes() const {
  std::vector<StateChange> out;
  for (std::size_t i = 1; i < evidence_.size(); ++i) {
    if (evidence_[i].held == evidence_[i - 1].held) continue;
    out.push_back({evidence_[i - 1].at, evidence_[i].at, evidence_[i].held});
  }
  return out;
}

bool BoardState::is_between(bool held, HostTime t) const {
  const auto next = std::lower_bound(evidence_.begin(), evidence_.end(), t,
                                     [](const auto& e, HostTime x) { return e.at < x; });
  if (next != evidence_.end() && next->at == t) return next->held == held;
  if (evidence_.empty()) return false;
  if (next != evidence_.end() && next->held != held) return false;
  return next == evidence_.begin() || std::prev(next)->held == held;
}

std::vector<RecordedSpan> BoardState::rests() const {
  std::vector<RecordedSpan> out;
  bool open = false;
  for (const auto& e : evidence_) {
    if (!e.held && open) out.back().end = e.at;
    if (!e.held && !open) out.push_back({e.at, e.at});
    open = !e.held;
  }
  return out;
}

bool BoardState::was_traced(HostTime begin, HostTime end) const {
  const auto next = std::lower_bound(traced_.begin(), traced_.end(), begin,
                                     [](const auto& s, HostTime t) { return s.end < t; });
  return next != traced_.end() && next->begin <= end;
}

}  // namespace jouleprof::analysis
