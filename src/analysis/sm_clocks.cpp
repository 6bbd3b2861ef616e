#include "analysis/sm_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/clock_limits.h"
#include "model/gauge_names.h"

namespace jouleprof::analysis {
namespace {

constexpr double kMostApart = 0.03;    // of the clock: 6 to 8 % of the power
constexpr double kHeldLong = 0.1;      // of the program's time
constexpr double kPowerOfClock = 2.2;  // exponent
constexpr int kFewest = 5;             // readings
constexpr double kGuess = 0.05;        // of power, where clocks were held for kHeldMuch or longer
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

struct Mean {
  double sum = 0;
  double squares = 0;
  int count = 0;

  double value() const { return sum / count; }
  double spread() const {  // one sigma, of the value
    const double mean = value();
    return std::sqrt(std::max(squares / count - mean * mean, 0.0)) / mean;
  }
};

struct SmClocks {
  Mean program;
  Mean replay;
};

SmClocks sm_clocks(const model::Recording& recording, const model::Domain& domain,
                   const ActivityTable& table) {
  SmClocks out;
  for (const auto& sensor : recording.sensors) {
    if (sensor.domain != domain.id || sensor.name != model::gauge::kSmClock) continue;
    for (const auto& r : recording.readings.gauges) {
      if (r.sensor != sensor.id || !is_busy(table, table.time.seconds_of(r.at))) continue;
      Mean& mean = table.replay_time.holds(r.at) ? out.replay : out.program;
      mean.sum += r.value;
      mean.squares += r.value * r.value;
      ++mean.count;
    }
  }
  return out;
}

double held_share(const model::Recording& recording, const model::Domain& domain,
                  const ActivityTable& table) {
  return ClockLimits(recording, domain)
      .held_share(table.time.host_of(table.begin), table.time.host_of(table.end))
      .value_or(0);
}

}  // namespace

double power_sway(const model::Recording& recording, const model::Domain& domain,
                  const ActivityTable& table) {
  const Mean clocks = sm_clocks(recording, domain, table).program;
  if (clocks.count >= kFewest) return kPowerOfClock * clocks.spread();
  return kGuess * std::min(held_share(recording, domain, table) / kHeldMuch, 1.0);
}

std::optional<std::string> other_clocks(const model::Recording& recording,
                                        const model::Domain& domain, const ActivityTable& table) {
  if (table.replays.empty()) return std::nullopt;
  const SmClocks clocks = sm_clocks(recording, domain, table);
  if (clocks.program.count > 0 && clocks.replay.count > 0) {
    const double program = clocks.program.value();
    const double replay = clocks.replay.value();
    if (std::abs(replay - program) <= kMostApart * program) return std::nullopt;
    return fmt::format(
        "nothing is learnt from layers run alone: the SM clock was {:.0f} MHz there and {:.0f} MHz "
        "in the program, and power goes with it",
        replay / 1e6, program / 1e6);
  }
  const double held = held_share(recording, domain, table);
  if (held <= kHeldLong) return std::nullopt;
  return fmt::format(
      "nothing is learnt from layers run alone: power or heat held the program's clocks down for "
      "{:.0f} % of the time, and what they were is not known",
      100 * held);
}

}  // namespace jouleprof::analysis
