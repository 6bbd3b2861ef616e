#include "analysis/timeline/sensors/unit_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

constexpr double kUnitSeconds = 2;
constexpr double kUnitWatts = 5;
constexpr double kUnitAgreed = 0.3;
// Another unit explains a difference where it leaves no more than counters and power sensors of one
// board differ by.
constexpr double kUnitFits = 0.15;
constexpr double kUnitApart = 5;    // times: units that are not taken for one another by noise
constexpr double kUnitAlike = 0.2;  // of the energy: halves of a counter of another unit
constexpr double kUnitNoise = 0.5;  // of the energy, of a comparison that shows which unit fits
constexpr double kUnitClear = 0.5;  // of a difference: noise that does not explain it
constexpr std::size_t kUnitReadings = 8192;

struct CounterUnit {
  double joules;
  const char* name;
};
constexpr std::array kCounterUnits{CounterUnit{1e-6, "1 uJ"}, CounterUnit{15.3e-6, "15.3 uJ"},
                                   CounterUnit{1.0 / 65536, "2^-16 J"}, CounterUnit{1e-3, "1 mJ"}};

struct UnitCandidate {
  double factor = 1;
  const char* stated = "";
  const char* real = "";
};

bool unit_agrees(double ratio) { return std::abs(ratio - 1) <= kUnitAgreed; }

// The pair of units whose ratio brings the counter closest to the power.
std::optional<UnitCandidate> unit_candidate_for(double ratio) {
  std::optional<UnitCandidate> best;
  double least = 0;
  for (const CounterUnit& stated : kCounterUnits) {
    for (const CounterUnit& real : kCounterUnits) {
      const double factor = real.joules / stated.joules;
      if (std::abs(std::log(factor)) < std::log(kUnitApart)) continue;
      if (std::abs(ratio * factor - 1) > kUnitFits) continue;
      const double apart = std::abs(std::log(ratio * factor));
      if (best && apart >= least) continue;
      best = {factor, stated.name, real.name};
      least = apart;
    }
  }
  return best;
}

}  // namespace

void UnitCheck::see(const model::CounterReading& reading) {
  if (verdict_.state != UnitVerdict::State::kUnverified) return;
  if (readings_.size() >= kUnitReadings) {
    readings_.erase(readings_.begin(), readings_.begin() + kUnitReadings / 2);
  }
  readings_.push_back(reading);
}

// A counter's value changed between the read before and the read that showed it, and at most a
// period before the latter. Those since it last fell: it restarted or wrapped.
std::vector<UnitCheck::Update> UnitCheck::updates(TimeBase time,
                                                  const model::Sensor& counter) const {
  const double refresh = counter.traits.refresh ? seconds(*counter.traits.refresh) : INFINITY;
  std::vector<Update> out;
  for (std::size_t i = 1; i < readings_.size(); ++i) {
    const auto& before = readings_[i - 1];
    const auto& now = readings_[i];
    if (now.total == before.total) continue;
    if (now.total < before.total) {
      out.clear();
      continue;
    }
    const double to = time.seconds_of(now.after);
    const double from =
        std::max(time.seconds_of(before.before), time.seconds_of(now.before) - refresh);
    out.push_back({0.5 * (from + to), 0.5 * (to - from), now.total.joules()});
  }
  return out;
}

const UnitVerdict& UnitCheck::judge(
    const PowerShape& shape, TimeBase time, const model::Sensor& counter,
    const std::function<UnseenEnergy(double from, double to)>& unseen) {
  if (verdict_.state != UnitVerdict::State::kUnverified) return verdict_;
  if (shape.samples().size() < 3 || shape.is_frozen()) return verdict_;
  auto edges = updates(time, counter);
  const auto& samples = shape.samples();
  std::erase_if(edges, [&](const Update& e) {
    return e.at < samples.front().begin || e.at > samples.back().end;
  });
  if (edges.size() < 3) return verdict_;
  struct Compared {
    double counted = 0;
    double sampled = 0;
    double noise = 0;
    UnseenEnergy unseen;
    double ratio() const { return counted / sampled; }
  };
  // By which the samples may be late.
  double late = shape.window() > 0 ? shape.window() : shape.spacing();
  const model::Sensor& power = shape.sensor();
  if (power.kind == model::SensorKind::kPowerAverage && !power.traits.window) {
    late = kErrors.unknown_window;
  }
  const auto compare = [&](const Update& from, const Update& to) {
    Compared c;
    c.counted = to.joules - from.joules;
    // The shape has corrected power, and the readings are as they were read.
    c.sampled = shape.integral(from.at, to.at) / counter.traits.correction;
    c.unseen = unseen(from.at, to.at);
    c.noise = (from.half + to.half) * shape.highest_watts() +
              std::max(2 * std::sqrt(shape.missed_variance(from.at, to.at)), c.unseen.locked);
    for (const Update* end : {&from, &to}) {
      const double reach = std::max(late, 2 * shape.spacing());
      c.noise += late * shape.variation(end->at - reach, end->at + reach).range;
    }
    return c;
  };
  const Update& first = edges.front();
  const Update& last = edges.back();
  const double length = last.at - first.at;
  if (length < kUnitSeconds || shape.missing_seconds(first.at, last.at) > 0) return verdict_;
  const Compared all = compare(first, last);
  if (all.sampled < kUnitWatts * length || all.counted <= 0) return verdict_;
  verdict_.ratio = all.ratio();
  verdict_.seconds = length;
  const auto decide = [&](UnitVerdict::State state, std::string reason) -> const UnitVerdict& {
    verdict_.state = state;
    verdict_.reason = std::move(reason);
    return verdict_;
  };
  const std::string seen =
      fmt::format("{:.4g} J were counted and {:.4g} J integrated from power in {:.1f} s",
                  all.counted, all.sampled, length);
  if (unit_agrees(verdict_.ratio)) {
    return decide(UnitVerdict::State::kAgrees, fmt::format("its unit is verified: {}", seen));
  }
  const double apart = std::abs(all.counted - all.sampled);
  const double bound = all.counted > all.sampled ? all.unseen.more : all.unseen.less;
  if (all.noise > kUnitClear * (apart - bound)) return verdict_;
  const double half = shape.integral(first.at, last.at) / 2;
  const auto middle = std::find_if(edges.begin() + 1, edges.end() - 1, [&](const Update& e) {
    return shape.integral(first.at, e.at) >= half;
  });
  for (const Compared& part : {compare(first, *middle), compare(*middle, last)}) {
    const double expected = part.counted / verdict_.ratio;
    if (std::abs(expected - part.sampled) > kUnitAlike * part.sampled + part.noise) return verdict_;
  }
  const auto found = unit_candidate_for(verdict_.ratio);
  if (found && all.noise <= kUnitNoise * all.sampled) {
    verdict_.factor = found->factor;
    return decide(UnitVerdict::State::kRescaled,
                  fmt::format("{} counts in units of {} instead of {}: {}; its readings are "
                              "multiplied by {:.5g}",
                              counter.name, found->real, found->stated, seen, found->factor));
  }
  return decide(
      UnitVerdict::State::kRefused,
      fmt::format("{} is not used: {}, and no known unit explains that", counter.name, seen));
}

std::string unit_text(const UnitVerdict& verdict) {
  if (verdict.state != UnitVerdict::State::kUnverified) return verdict.reason;
  if (verdict.seconds <= 0) {
    return "its unit is not verified: it needs 2 s of power of at least 5 W, and updates meanwhile";
  }
  return fmt::format(
      "its unit is not verified: it counted {:.2f} times what power integrates to in {:.1f} s, and "
      "the readings do not show why",
      verdict.ratio, verdict.seconds);
}

}  // namespace jouleprof::analysis
