// The SM clocks of a GPU while it ran kernels, and their effect on its power.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/timeline/sensors/error_model.h"
#include "base/median.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Logarithm of the ratio of two SM clocks: beyond it nothing that was found at one is used at the
// other.
inline constexpr double kFarClock = 0.25;
// A ratio of times of a kernel without what the ratio of clocks alone explains: between nothing, of
// a kernel that waits for memory, and all of it.
inline double without_clock(double times, double clocks) {
  const double least = std::min(1.0, 1 / clocks);
  const double most = std::max(1.0, 1 / clocks);
  return times < least ? times / least : times > most ? times / most : 1.0;
}

// The active power of a kernel at one clock relative to that at another.
struct PowerByClock {
  double ratio = 1;
  double off = 0;  // of it, relative, at 95 %
};
// `times`, `clocks`: ratios of a launch's time and of the SM clock, at which the kernel draws
// `ratio` times the power. A kernel whose time the clock does not change waits for memory, and its
// power grows least with the clock. Where the clocks hardly differ, times say little, and the
// exponent is nearer to the usual one.
inline PowerByClock power_by_clock(double times, double clocks) {
  const double clock = std::log(clocks);
  const double apart = std::max(std::abs(clock), 1e-6);
  const auto square = [](double x) { return std::pow(std::clamp(x, 0.0, 1.0), 2); };
  const auto exponent = [&](double x) {
    return kErrors.clock_least + kErrors.clock_grows * square(x);
  };
  const double x = -std::log(times) / (clock < 0 ? -apart : apart);
  const double error = kErrors.clock_launch / apart;
  const double sigma = std::hypot(kErrors.clock_sigma + kErrors.clock_sigma_grows * square(x),
                                  (exponent(x + error) - exponent(x - error)) / 2);
  const double by_time = 1 / (sigma * sigma);
  const double usual = std::pow(kErrors.power_of_clock_sigma, -2);
  const double mean = (by_time * exponent(x) + usual * kErrors.power_of_clock) / (by_time + usual);
  return {std::pow(clocks, mean), kErrors.normal95 / std::sqrt(by_time + usual) * std::abs(clock)};
}

// From readings of the SM clock while kernels ran. The power of all kernels together grows with the
// clock to the power of ErrorModel's exponent. `held`: the share of the time in which clocks were
// reduced, used where clocks are unknown.
class SmClocks {
 public:
  SmClocks(const model::Recording& recording, const model::Domain& domain,
           const ActivityTable& table, double held)
      : held_(held) {
    for (const auto& r : gauge_of(recording, domain, model::gauge::kSmClock)) {
      const double at = table.time.seconds_of(r.at);
      if (!works_at(table, at)) continue;
      Mean& mean = table.replay_time.holds(r.at) ? replay_ : program_;
      mean.sum += r.value;
      mean.squares += r.value * r.value;
      ++mean.count;
      if (&mean == &program_) readings_.push_back({at, r.value, work_near(table, at)});
    }
    if (step() > kOften) readings_.clear();
  }

  // Relative standard deviations of all kernels' power due to changing clocks while the program
  // ran, beyond power_ratio(), where power follows the clock.
  struct Variation {
    double random = 0;      // from reading to reading
    double systematic = 0;  // may be alike in all of the time of a kernel
    double all() const { return std::hypot(random, systematic); }
  };
  // With fewer than five readings, a guess from the share of time with reduced clocks.
  Variation power_variation() const {
    if (program_.count < kFewest) return {0, kGuess * std::min(held_ / kHeldMuch, 1.0)};
    const double spread = program_.spread();
    if (readings_.empty()) return {0, kErrors.power_of_clock * spread};
    return {kErrors.power_of_clock * random_hertz() / program_.value(),
            kErrors.power_of_clock_mean * spread};
  }
  // Mean power of a kernel over an interval of the program, in the table's seconds, relative to its
  // power at program_hertz(). 1 where the clock was not read often enough.
  double power_ratio(double begin, double end) const {
    const auto first = std::ranges::lower_bound(readings_, begin - kCourse, {}, &Reading::at);
    double sum = 0;
    int count = 0;
    for (auto r = first; r != readings_.end() && r->at <= end + kCourse; ++r, ++count)
      sum += power_ratio(r->hertz);
    return count > 0 ? sum / count : 1.0;
  }

  // By how much, relative and at 95 %, the power of a kernel signature may differ from that at
  // program_hertz(), because the clock was another while it ran. 0 where the clock was not read
  // often enough: power_variation() holds that.
  double doubt_of(std::uint32_t kernel_class) const {
    if (program_.count < kFewest || readings_.empty()) return 0;
    double sum = 0;  // of its time at each reading
    double squares = 0;
    double power = 0;
    double mean = 0;
    for (const Reading& reading : readings_) {
      double weight = 0;
      if (const auto found = reading.ran.find(kernel_class); found != reading.ran.end())
        weight = found->second;
      const double ratio = power_ratio(reading.hertz);
      sum += weight;
      squares += weight * weight;
      power += weight * ratio;
      mean += ratio;
    }
    const auto count = static_cast<double>(readings_.size());
    const double random = power_variation().random;
    if (sum <= 0) return kErrors.normal95 * random;
    const double differs = power / sum / (mean / count) - 1;
    const double by_chance = random * std::sqrt(std::max(squares / (sum * sum) - 1 / count, 0.0));
    return std::hypot(differs, kErrors.normal95 * by_chance);
  }

  // Whether power_ratio() follows the clock.
  bool knows_course() const { return program_.count >= kFewest && !readings_.empty(); }
  // The mean SM clock while the program ran kernels; absent without readings.
  std::optional<double> program_hertz() const {
    return program_.count > 0 ? std::optional(program_.value()) : std::nullopt;
  }

  // Whether limits reduced the program's clocks for a good part of its time.
  bool held_long() const { return held_ > kHeldLong; }
  // Whether isolated re-runs, all together, ran at other clocks than the program. Where clocks are
  // unknown, that is assumed if the program's were reduced for long.
  bool replays_differ() const {
    if (program_.count == 0 || replay_.count == 0) return held_long();
    return std::abs(replay_.value() - program_.value()) > kMostApart * program_.value();
  }
  // Why re-runs cannot be used, in words, where clocks differ.
  std::string why_replays_differ() const {
    if (program_.count > 0 && replay_.count > 0) {
      return fmt::format(
          "the SM clock was {:.0f} MHz there and {:.0f} MHz in the program, and power depends on "
          "it",
          replay_.value() / 1e6, program_.value() / 1e6);
    }
    return fmt::format(
        "power or temperature limits reduced the program's clocks for {:.0f} % of the time, "
        "and the clocks are unknown",
        100 * held_);
  }

 private:
  static constexpr double kMostApart = 0.03;  // of the clock: 6 to 8 % of the power
  static constexpr double kHeldLong = 0.1;    // of the program's time
  static constexpr int kFewest = 5;           // readings
  static constexpr double kGuess =
      0.05;  // of power, where clocks were reduced for kHeldMuch or longer
  static constexpr double kHeldMuch = 0.2;
  static constexpr double kOften = 0.2;  // seconds from reading to reading
  // Seconds to either side of a reading. The clock that NVML gives stays as it was for 20 ms and
  // longer (H100, 26 Nov: bursts that meet the power limit).
  static constexpr double kSeen = 0.05;
  // Seconds over which readings are averaged to a course: what changes faster is random.
  static constexpr double kCourse = 0.3;

  static std::size_t first_after(const ActivityTable& table, double t) {
    const auto after = std::upper_bound(table.bins.begin(), table.bins.end(), t,
                                        [](double at, const auto& bin) { return at < bin.begin; });
    return static_cast<std::size_t>(after - table.bins.begin());
  }
  static std::span<const ActivityTable::Entry> ran_in(const ActivityTable& table, std::size_t bin) {
    const std::size_t first = table.bins[bin].first;
    return {table.entries.data() + first, table.end_of(bin) - first};
  }
  // Whether the GPU was at work for half of the bin that `t` lies in, or longer.
  static bool works_at(const ActivityTable& table, double t) {
    const std::size_t after = first_after(table, t);
    if (after == 0) return false;
    const auto& bin = table.bins[after - 1];
    if (t >= bin.begin + bin.width) return false;
    double busy = 0;
    for (const auto& entry : ran_in(table, after - 1)) busy += entry.busy;
    return busy > bin.width / 2;
  }
  // Busy seconds by signature of what the clock that was read at `t` may be of.
  static std::map<std::uint32_t, double> work_near(const ActivityTable& table, double t) {
    std::map<std::uint32_t, double> busy;
    const std::size_t from = std::max<std::size_t>(first_after(table, t - kSeen), 1) - 1;
    const std::size_t to = first_after(table, t + kSeen);
    for (std::size_t i = from; i < to; ++i) {
      for (const auto& entry : ran_in(table, i)) busy[entry.kernel_class] += entry.busy;
    }
    return busy;
  }

  struct Mean {
    double sum = 0;
    double squares = 0;
    int count = 0;

    double value() const { return sum / count; }
    // Relative standard deviation.
    double spread() const {
      const double mean = value();
      return std::sqrt(std::max(squares / count - mean * mean, 0.0)) / mean;
    }
  };

  double power_ratio(double hertz) const {
    return std::pow(hertz / program_.value(), kErrors.power_of_clock);
  }
  // The median of the program's readings.
  double step() const {
    std::vector<double> steps;
    for (std::size_t i = 1; i < readings_.size(); ++i)
      steps.push_back(readings_[i].at - readings_[i - 1].at);
    return steps.empty() ? std::numeric_limits<double>::infinity() : upper_median(std::move(steps));
  }
  // The random error of one reading, where it changes from one to the next.
  double random_hertz() const {
    double squares = 0;
    for (std::size_t i = 1; i < readings_.size(); ++i)
      squares += std::pow(readings_[i].hertz - readings_[i - 1].hertz, 2);
    return std::sqrt(squares / 2 / static_cast<double>(readings_.size() - 1));
  }

  double held_;
  Mean program_;
  Mean replay_;
  struct Reading {
    double at;
    double hertz;
    std::map<std::uint32_t, double> ran;  // near it
  };
  std::vector<Reading> readings_;  // of the program, in order; empty: too few for power_ratio()
};

}  // namespace jouleprof::analysis
