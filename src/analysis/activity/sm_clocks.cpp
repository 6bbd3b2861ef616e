#include "analysis/activity/sm_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/timeline/sensors/error_model.h"
#include "model/device/gauge_names.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

constexpr double kMostApart = 0.03;  // of the clock: 6 to 8 % of the power
constexpr double kHeldLong = 0.1;    // of the program's time
constexpr int kFewest = 5;           // readings
constexpr double kGuess = 0.05;      // of power, where clocks were reduced for kHeldMuch or longer
constexpr double kHeldMuch = 0.2;

// Whether the GPU was at work for most of the bin that `t` lies in.
bool is_busy(const ActivityTable& table, double t) {
  const auto after = std::upper_bound(table.bins.begin(), table.bins.end(), t,
                                      [](double at, const auto& bin) { return at < bin.begin; });
  if (after == table.bins.begin()) return false;
  const auto bin = after - 1;
  if (t >= bin->begin + bin->width) return false;
  const auto index = static_cast<std::size_t>(bin - table.bins.begin());
  double busy = 0;
  for (std::size_t i = bin->first; i < table.end_of(index); ++i) busy += table.entries[i].busy;
  return busy > bin->width / 2;
}

}  // namespace

double SmClocks::Mean::spread() const {
  const double mean = value();
  return std::sqrt(std::max(squares / count - mean * mean, 0.0)) / mean;
}

SmClocks::SmClocks(const model::Recording& recording, const model::Domain& domain,
                   const ActivityTable& table, double held)
    : held_(held) {
  for (const auto& r : gauge_of(recording, domain, model::gauge::kSmClock)) {
    if (!is_busy(table, table.time.seconds_of(r.at))) continue;
    Mean& mean = table.replay_time.holds(r.at) ? replay_ : program_;
    mean.sum += r.value;
    mean.squares += r.value * r.value;
    ++mean.count;
  }
}

double SmClocks::power_variation() const {
  if (program_.count >= kFewest) return kErrors.power_of_clock * program_.spread();
  return kGuess * std::min(held_ / kHeldMuch, 1.0);
}

std::optional<double> SmClocks::program_hertz() const {
  return program_.count > 0 ? std::optional(program_.value()) : std::nullopt;
}

bool SmClocks::replays_differ() const {
  if (program_.count == 0 || replay_.count == 0) return held_ > kHeldLong;
  return std::abs(replay_.value() - program_.value()) > kMostApart * program_.value();
}

std::string SmClocks::why_replays_differ() const {
  if (program_.count > 0 && replay_.count > 0) {
    return fmt::format(
        "the SM clock was {:.0f} MHz there and {:.0f} MHz in the program, and power depends on it",
        replay_.value() / 1e6, program_.value() / 1e6);
  }
  return fmt::format(
      "power or temperature limits reduced the program's clocks for {:.0f} % of the time, and the "
      "clocks are unknown",
      100 * held_);
}

}  // namespace jouleprof::analysis
