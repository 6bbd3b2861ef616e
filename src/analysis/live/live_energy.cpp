#include "analysis/live/live_energy.h"

#include <algorithm>
#include <chrono>

#include "analysis/repeated/repeated_windows.h"
#include "analysis/windows/windows.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSilent = 3s;
constexpr Duration kTidyPeriod = 5s;       // settling computes the timeline: some milliseconds
constexpr Duration kLongestPending = 60s;  // of windows, where a sensor is never settled
// More marks than two in so short a time say no more than two do, and cost memory.
constexpr Duration kMarkBin = 4ms;
constexpr int kMarksPerBin = 2;
constexpr std::size_t kMostMarkBins = 4096;

}  // namespace

LiveEnergy::LiveEnergy(std::vector<model::Domain> domains,
                       const std::vector<model::Sensor>& sensors, Duration history)
    : domains_(std::move(domains)), totals_(domains_.size()), awaited_(domains_.size()) {
  const std::vector<bool> all(sensors.size(), true);
  for (const auto& domain : domains_) {
    const auto chosen = choose_sensors(sensors, domain.id, all);
    ledgers_.push_back(chosen ? std::make_unique<EnergyLedger>(*chosen, history) : nullptr);
    const bool repeats = chosen && RepeatedWindows::is_possible(*chosen);
    for_repeated_.push_back(repeats ? ledgers_.back().get() : nullptr);
  }
  if (std::ranges::all_of(for_repeated_, [](auto* ledger) { return ledger == nullptr; })) {
    for_repeated_ = {};
  }
}

void LiveEnergy::append(const model::Readings& readings) {
  for (auto& ledger : ledgers_) {
    if (ledger) ledger->append(readings);
  }
}

void LiveEnergy::mark(HostTime t) {
  if (++marks_[t.time_since_epoch() / kMarkBin] > kMarksPerBin) return;
  for (auto& ledger : ledgers_) {
    if (ledger) ledger->mark(t);
  }
}

void LiveEnergy::add(std::uint32_t name, HostTime begin, HostTime end) {
  mark(begin);
  mark(end);
  totals_.add(name, begin, end);
  if (!for_repeated_.empty()) repeated_.add(name, begin, end);
}

// A sensor that was waited for in vain is not waited for again until it speaks.
bool LiveEnergy::is_silent(std::size_t domain, HostTime t, HostTime now) {
  const HostTime newest = ledgers_[domain]->newest();
  auto& awaited = awaited_[domain];
  if (!awaited || awaited->newest != newest) {
    awaited = {newest, newest == HostTime{} ? now : std::max(newest, std::min(t, now))};
  }
  return now - awaited->since > kSilent;
}

bool LiveEnergy::knows(HostTime t, HostTime now) {
  // While one device is still awaited, the others' timelines need no solving.
  bool may_know = true;
  for (std::size_t d = 0; d < ledgers_.size(); ++d) {
    may_know &= !ledgers_[d] || ledgers_[d]->may_know(t) || is_silent(d, t, now);
  }
  if (!may_know) return false;
  for (std::size_t d = 0; d < ledgers_.size(); ++d) {
    if (ledgers_[d] && !ledgers_[d]->knows(t) && !is_silent(d, t, now)) return false;
  }
  return true;
}

Duration LiveEnergy::delay() const {
  Duration longest{};
  for (const auto& ledger : ledgers_) {
    if (ledger) longest = std::max(longest, ledger->delay());
  }
  return longest;
}

tl::unexpected<Error> LiveEnergy::no_sensor(std::size_t domain) const {
  const auto& reason = domains_[domain].unavailable_reason;
  return fail(Errc::kUnavailable, reason.empty() ? "no sensor" : reason);
}

Result<LiveEnergy::SoFar> LiveEnergy::energy_since(HostTime since, std::size_t domain) {
  EnergyLedger* const ledger = ledgers_[domain].get();
  if (ledger == nullptr) return no_sensor(domain);
  const auto known = ledger->known();
  const auto extent = ledger->timeline().extent();
  // Samples come more often than the counter is read. What they add may change, and is not kept.
  const HostTime until = extent ? std::min(extent->end, ledger->newest()) : HostTime{};
  if (!known || std::max(known->end, until) < since) {
    return fail(Errc::kUnavailable, "no readings of " + ledger->timeline().sensor_name() + " yet");
  }
  const HostTime begin = std::max(since, known->begin);
  if (known->end < begin) {
    auto energy = ledger->timeline().energy(begin, until);
    if (!energy) return forward_error(energy);
    return SoFar{std::move(*energy), begin, until};
  }
  auto energy = ledger->energy(begin, known->end);
  if (!energy) return forward_error(energy);
  SoFar out{std::move(*energy), begin, known->end};
  if (until <= out.end) return out;
  const auto more = ledger->timeline().energy(out.end, until);
  if (!more) return out;
  model::add(out.energy, *more);
  out.end = until;
  return out;
}

model::Provenance LiveEnergy::provenance(std::size_t domain) const {
  auto weakest = model::Provenance::kUnavailable;
  if (!ledgers_[domain]) return weakest;
  const auto& sensors = ledgers_[domain]->timeline().sensors();
  if (sensors.counter) weakest = model::combine(weakest, sensors.counter->provenance);
  if (sensors.power) weakest = model::combine(weakest, sensors.power->provenance);
  return weakest;
}

std::vector<Result<model::Measurement>> LiveEnergy::energy(HostTime begin, HostTime end) {
  std::vector<Result<model::Measurement>> out;
  for (std::size_t i = 0; i < domains_.size(); ++i) out.push_back(energy_of(i, begin, end));
  return out;
}

std::vector<Result<model::Measurement>> LiveEnergy::reported_energy(HostTime begin, HostTime end,
                                                                    HostTime now) {
  std::vector<Result<model::Measurement>> out;
  for (std::size_t i = 0; i < domains_.size(); ++i) {
    const bool is_counted = ledgers_[i] && ledgers_[i]->timeline().sensors().counter;
    if (!is_counted || ledgers_[i]->knows(end) || is_silent(i, end, now)) {
      out.push_back(energy_of(i, begin, end));
    } else {
      out.push_back(
          fail(Errc::kUnavailable, "the sensors have not reported the end of the window yet"));
    }
  }
  return out;
}

Result<model::Measurement> LiveEnergy::energy_of(std::size_t domain, HostTime begin, HostTime end) {
  if (!ledgers_[domain]) return no_sensor(domain);
  return ledgers_[domain]->energy(begin, end);
}

bool LiveEnergy::knows(std::size_t domain, HostTime t) {
  return ledgers_[domain] && ledgers_[domain]->knows(t);
}

std::optional<HostTime> LiveEnergy::known_until(std::size_t domain) {
  const auto known = ledgers_[domain] ? ledgers_[domain]->known() : std::nullopt;
  return known ? std::optional(known->end) : std::nullopt;
}

std::optional<Energy> LiveEnergy::counter_at(std::size_t domain, HostTime t) {
  return ledgers_[domain] ? ledgers_[domain]->counter_at(t) : std::nullopt;
}

std::optional<Energy> LiveEnergy::counter_wrap(std::size_t domain) const {
  if (!ledgers_[domain]) return std::nullopt;
  const auto& counter = ledgers_[domain]->timeline().sensors().counter;
  return counter ? counter->traits.wrap : std::nullopt;
}

void LiveEnergy::forget_before(HostTime t) {
  for (auto& ledger : ledgers_) {
    if (ledger) ledger->forget_before(t);
  }
}

WindowTotals::Ledgers LiveEnergy::ledgers() {
  WindowTotals::Ledgers out;
  for (auto& ledger : ledgers_) out.push_back(ledger.get());
  return out;
}

std::optional<WindowTotal> LiveEnergy::total(std::uint32_t name) {
  auto total = totals_.total(name, ledgers());
  for (std::size_t i = 0; total && i < domains_.size(); ++i) {
    const auto& reason = domains_[i].unavailable_reason;
    if (!ledgers_[i] && !reason.empty()) total->energies[i] = fail(Errc::kUnavailable, reason);
    if (for_repeated_.empty() || !total->energies[i]) continue;
    const auto common = repeated_.total(name, i, for_repeated_);
    if (common && replaces(*common, *total->energies[i])) total->energies[i] = *common;
  }
  return total;
}

void LiveEnergy::tidy(HostTime now) {
  if (now < next_tidy_) return;
  next_tidy_ = now + kTidyPeriod;
  HostTime settled = now - 2s;
  for (auto& ledger : ledgers_) {
    if (!ledger || now - ledger->newest() > kSilent) continue;
    const auto until = ledger->timeline().settled_until();
    settled = std::min(settled, until ? *until : HostTime{});
  }
  settled = std::max(settled, now - kLongestPending);
  totals_.settle(settled, ledgers());
  if (!for_repeated_.empty()) repeated_.settle(settled, for_repeated_);
  for (auto& ledger : ledgers_) {
    if (ledger) ledger->tidy(now);
  }
  if (marks_.size() > kMostMarkBins) marks_.clear();
}

}  // namespace jouleprof::analysis
