// Random mixes of processes on a board, of which the simulation knows who caused each joule.
// Seeds whose lists are rare, whose processes are brief, refused, late, or begin where another
// ends, are among them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "analysis/processes/processes.h"
#include "analysis/timeline/simulated_sensors_test.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::kGpu0;

constexpr double kStep = 0.01;    // seconds
constexpr double kOften = 1;      // lists of a service, which lists at each tick, too
constexpr double kAnswer = 0.05;  // seconds from a tick to its list
constexpr model::SensorId kUtilisation{7};
constexpr model::SensorId kCount{8};

struct Work {
  double begin = 0;
  double end = 0;
  double duty = 1;
};

struct Program {
  std::size_t owner = 0;
  double start = 0, end = 0;                  // of the process
  double context_begin = 0, context_end = 0;  // on the board
  double watts = 0;                           // while it has the board
  std::vector<Work> work;
  bool refused = false;  // the driver reports more than 100 %
  bool is_zero = false;  // the driver reports 0 %, whatever it does
  std::size_t part = 0;  // of a divided board
  double joules = 0;
  bool is_listed = false;
};

// How MIG divides a board: not at all; with the driver's counters of each instance; without; with
// instances whose size is unknown, too.
enum class Divided { kNot, kWithActivity, kBySize, kOfUnknownSize };

class Mix {
 public:
  // `period`: of the lists; 0: either often or rarely.
  explicit Mix(unsigned seed, Divided divided = Divided::kNot, double period = 0)
      : random_(seed), divided_(divided) {
    if (divided_ != Divided::kNot) {
      sizes_ = seed % 3 == 0   ? std::vector{3u, 2u, 1u}
               : seed % 3 == 1 ? std::vector{4u, 3u}
                               : std::vector{1u, 1u, 2u, 3u};
    }
    owners_ = 1 + seed % 3;
    length_ = uniform(60, 160);
    period_ = chance(0.3) ? 5 : 0.9;
    if (period > 0) period_ = period;
    // With other owners on the board, what lives between two lists is not seen.
    const double shortest = owners_ > 1 ? 4 * period_ + 2 : 0.2;
    const bool same_watts = seed % 4 != 0;
    const double watts = uniform(100, 500);
    for (std::size_t owner = 0; owner < owners_; ++owner) {
      double t = uniform(0, 8);
      const double life = std::exp(uniform(std::log(shortest), std::log(120.0)));
      while (t < length_ - 1) {
        const double until = std::min(t + life * uniform(1, 1.5), length_);
        add(owner, t, until, same_watts ? watts : uniform(0.6, 1.6) * watts, uniform(0.3, 1));
        // Back to back, with a pause, or with an overlap: a child outlives its parent.
        t = until + (chance(0.5) ? 0 : uniform(-0.3 * life, 6));
        if (t <= programs_.back().start) t = until;
      }
    }
    if (chance(0.5)) add(owners_++, uniform(0, 10), length_, watts, 0);  // a notebook
    if (chance(0.2))
      programs_[static_cast<std::size_t>(uniform(0, 0.99) * static_cast<double>(programs_.size()))]
          .refused = true;
    if (chance(0.2))
      programs_[static_cast<std::size_t>(uniform(0, 0.99) * static_cast<double>(programs_.size()))]
          .is_zero = true;
    simulate();
    list();
  }

  std::size_t owners() const { return owners_; }
  double length() const { return length_; }
  double truth(std::size_t owner) const { return truth_[owner]; }
  double total() const { return cumulative_.back(); }
  // What processes of others used that no list names: it is of whom the lists name.
  double unlisted_of_others(std::size_t owner) const {
    double sum = 0;
    for (const auto& p : programs_) sum += p.owner != owner && !p.is_listed ? p.joules : 0;
    return sum;
  }
  // Of the owner's own, with those that a list named too late for its tick.
  double unlisted_of(std::size_t owner) const {
    double sum = 0;
    for (const auto& p : programs_)
      sum += p.owner == owner && p.end - p.context_begin < kOften ? p.joules : 0;
    return sum;
  }
  // Whether no other owner's process was on the board.
  bool is_alone(std::size_t owner) const {
    return std::all_of(programs_.begin(), programs_.end(),
                       [&](const auto& p) { return p.owner == owner; });
  }
  DomainSplit split(std::size_t owner) const {
    return split_part(recorded_for(owner), at(0), at(length_));
  }
  // As a service does it: tick by tick, each with what is known by then.
  DomainSplit split_live(std::size_t owner, double tick) const {
    const auto whole = recorded_for(owner);
    DomainSplit sum;
    sum.shares.resize(programs_.size());
    sum.command_bounds.emplace();
    for (double t = 0; t < length_; t += tick) {
      const HostTime end = at(std::min(t + tick, length_));
      const auto part = split_part(known_by(whole, end + duration_of(2 * kAnswer)), at(t), end);
      const Energy parts = sum_of(part);
      for (std::size_t i = 0; i < part.shares.size(); ++i) sum.shares[i] += part.shares[i];
      sum.within_command += part.within_command;
      sum.others += part.others;
      sum.unattributed += part.unattributed;
      if (part.command_bounds) {
        sum.command_bounds->low += part.command_bounds->low;
        sum.command_bounds->high += part.command_bounds->high;
      } else {
        sum.command_bounds->high += parts;
      }
    }
    sum.unattributed += Energy::joules(total()) - sum_of(sum);  // rounded
    return sum;
  }
  static Energy sum_of(const DomainSplit& split) {
    return std::accumulate(split.shares.begin(), split.shares.end(),
                           split.within_command + split.others + split.unattributed);
  }

 private:
  model::Recording recorded_for(std::size_t owner) const {
    model::Recording recording = recording_;
    for (std::size_t i = 0; i < programs_.size(); ++i)
      recording.processes[i].in_tree = programs_[i].owner == owner;
    return recording;
  }
  static model::Recording known_by(model::Recording recording, HostTime t) {
    const auto is_later = [t](const auto& reading) { return reading.at > t; };
    std::erase_if(recording.readings.gauges, is_later);
    std::erase_if(recording.process_readings.processes, is_later);
    std::erase_if(recording.process_readings.gpu_processes, is_later);
    for (auto& process : recording.processes) {
      if (process.end > t) process.end.reset();
    }
    return recording;
  }
  DomainSplit split_part(const model::Recording& recording, HostTime begin, HostTime end) const {
    DomainEnergy energy;
    energy.domain = recording.domains[0];
    energy.part = [this](HostTime a, HostTime b) { return Energy::joules(up_to(b) - up_to(a)); };
    energy.active = energy.part(begin, end);
    return ProcessSplitter(recording, begin, end).split(energy);
  }

  double uniform(double a, double b) { return std::uniform_real_distribution(a, b)(random_); }
  bool chance(double p) { return uniform(0, 1) < p; }

  void add(std::size_t owner, double start, double end, double watts, double duty) {
    Program p{owner, start, end, 0, 0, watts, {}, false, false, 0, 0, false};
    if (!sizes_.empty())
      p.part = static_cast<std::size_t>(uniform(0, 0.999) * static_cast<double>(sizes_.size()));
    p.context_begin = start + uniform(0.05, 0.3) * (end - start);
    p.context_end = end;
    double t = p.context_begin + 0.1 * (end - p.context_begin);
    while (duty > 0 && t < end) {
      const double until = std::min(end, t + uniform(0.5, 20));
      p.work.push_back({t, until, duty});
      t = until + (chance(0.3) ? uniform(0, 5) : 0);
    }
    programs_.push_back(std::move(p));
  }

  double duty_of(const Program& p, double t) const {
    for (const auto& w : p.work) {
      if (t >= w.begin && t < w.end) return w.duty;
    }
    return 0;
  }

  void simulate() {
    const auto steps = static_cast<std::size_t>(length_ / kStep);
    truth_.assign(owners_, 0);
    shares_.assign(programs_.size(), std::vector<double>(steps + 1, 0.0));
    cumulative_.assign(1, 0.0);
    busy_.assign(std::max<std::size_t>(sizes_.size(), 1), {0.0});
    const double whole = std::accumulate(sizes_.begin(), sizes_.end(), 0.0);
    std::vector<double> duties(programs_.size());
    for (std::size_t s = 0; s < steps; ++s) {
      std::vector<double> demand(busy_.size());
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        duties[i] = duty_of(programs_[i], (static_cast<double>(s) + 0.5) * kStep);
        demand[programs_[i].part] += duties[i];
      }
      double joules = 0;
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        auto& p = programs_[i];
        const double share = duties[i] / std::max(demand[p.part], 1.0);
        shares_[i][s + 1] = shares_[i][s] + share * kStep;
        const double used = share * p.watts * (sizes_.empty() ? 1 : sizes_[p.part] / whole) * kStep;
        truth_[p.owner] += used;
        p.joules += used;
        joules += used;
      }
      cumulative_.push_back(cumulative_.back() + joules);
      for (std::size_t b = 0; b < busy_.size(); ++b)
        busy_[b].push_back(busy_[b].back() + std::min(demand[b], 1.0) * kStep);
    }
  }

  static double interpolate(const std::vector<double>& values, double t) {
    const double x = std::clamp(t / kStep, 0.0, static_cast<double>(values.size() - 1));
    const auto i = std::min(static_cast<std::size_t>(x), values.size() - 2);
    return values[i] + (values[i + 1] - values[i]) * (x - static_cast<double>(i));
  }
  double up_to(HostTime t) const { return interpolate(cumulative_, seconds(t - at(0))); }

  // What the driver and the kernel say.
  void list() {
    recording_.domains.push_back({kGpu0, model::DomainKind::kGpu, "gpu0", "", "", {}, true, ""});
    model::Sensor gauge;
    gauge.domain = kGpu0;
    gauge.kind = model::SensorKind::kGauge;
    gauge.id = kUtilisation;
    gauge.name = model::gauge::kGpuUtilisation;
    recording_.sensors.push_back(gauge);
    gauge.id = kCount;
    gauge.name = model::gauge::kProcessCount;
    recording_.sensors.push_back(gauge);
    for (std::size_t p = 0; p < sizes_.size(); ++p) {
      const auto id = static_cast<std::uint32_t>(p);
      const bool is_named = divided_ != Divided::kOfUnknownSize || p != 0;
      recording_.domains.push_back({model::DomainId{10 + id}, model::DomainKind::kGpu,
                                    fmt::format("gpu0:mig{}", p),
                                    is_named ? fmt::format("MIG {}g.10gb", sizes_[p]) : "MIG",
                                    fmt::format("MIG-{}", p), kGpu0, true, "no sensor"});
      gauge.domain = recording_.domains.back().id;
      gauge.id = model::SensorId{20 + id};
      gauge.name = model::gauge::kSmActivity;
      recording_.sensors.push_back(gauge);
    }
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      const auto& p = programs_[i];
      model::Process process;
      process.id = model::ProcessId{static_cast<std::uint32_t>(i)};
      process.pid = static_cast<pid_t>(100 + i % 7);  // pids are given out again
      process.start = at(p.start);
      process.end = at(p.end + uniform(0, 1));  // noticed late
      recording_.processes.push_back(process);
      for (double t = p.start; t <= p.end; t += 1) {
        recording_.process_readings.processes.push_back(
            {process.id, at(t), duration_of(interpolate(shares_[i], t) * 0.5), {}, {}, {}, {}});
      }
    }
    for (double t = 0.5; sizes_.empty() && t < length_; t += 0.9) {
      const double use =
          (interpolate(busy_[0], t) - interpolate(busy_[0], t - 1)) / std::min(t, 1.0);
      recording_.readings.gauges.push_back({kUtilisation, at(t), std::round(100 * use) / 100});
    }
    std::vector<double> listed(programs_.size(), -1);  // since
    double asked = 0;
    bool asked_alone = false;
    double before = -1;
    const bool is_service = period_ == kOften;
    for (double t = is_service ? kAnswer : 0.3; t < length_;
         t += is_service ? period_ : period_ * uniform(0.95, 1.1)) {
      if (divided_ == Divided::kWithActivity && before > 0) {
        for (std::size_t p = 0; p < sizes_.size(); ++p) {
          const double mean =
              (interpolate(busy_[p], t) - interpolate(busy_[p], before)) / (t - before);
          recording_.readings.gauges.push_back(
              {model::SensorId{20 + static_cast<std::uint32_t>(p)}, at(t), mean});
        }
      }
      before = t;
      std::vector<std::size_t> here;
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        const bool is_here = programs_[i].context_begin <= t && t < programs_[i].context_end;
        if (is_here && listed[i] < 0) listed[i] = t;
        if (!is_here) listed[i] = -1;
        if (is_here) here.push_back(i);
        programs_[i].is_listed |= is_here;
      }
      recording_.readings.gauges.push_back({kCount, at(t), static_cast<double>(here.size())});
      const bool is_alone = here.size() == 1;
      const bool is_new = is_alone && listed[here.front()] > asked;
      const bool asks = !here.empty() && !is_new && t - asked >= (is_alone && asked_alone ? 30 : 3);
      if (asks || is_new) asked_alone = asks && is_alone;
      const double late = uniform(0, 0.3);
      for (const std::size_t i : here) {
        model::GpuProcessReading r{
            model::ProcessId{static_cast<std::uint32_t>(i)}, kGpu0, at(t), {}, {}};
        if (!sizes_.empty()) {
          r.domain = model::DomainId{10 + static_cast<std::uint32_t>(programs_[i].part)};
        } else if (asks && listed[i] <= asked && !programs_[i].refused) {
          const double use =
              (interpolate(shares_[i], t - late) - interpolate(shares_[i], asked - late)) /
              (t - asked);
          r.compute_utilisation = programs_[i].is_zero ? 0 : std::round(100 * use) / 100;
        }
        recording_.process_readings.gpu_processes.push_back(r);
      }
      if (asks || is_new || here.empty()) asked = t;
    }
  }

  std::mt19937 random_;
  Divided divided_;
  std::vector<unsigned> sizes_;  // of its parts
  std::size_t owners_ = 0;
  double length_ = 0;
  double period_ = 0.9;  // of the lists
  std::vector<Program> programs_;
  std::vector<std::vector<double>> shares_;  // of the board's time, added up, by program
  std::vector<double> cumulative_;           // joules
  std::vector<std::vector<double>> busy_;    // seconds, of each part
  std::vector<double> truth_;
  model::Recording recording_;
};

double own(const DomainSplit& split) {
  double sum = split.within_command.joules();
  for (const Energy share : split.shares) sum += share.joules();
  return sum;
}

struct Sums {
  int checked = 0;
  double unattributed = 0;
  double width = 0;  // of the intervals
  double error = 0;
  double truth = 0;
};

// Of each owner: the energy is within 2 % of the truth, or the truth is within the stated interval.
// What is unattributed is absent. An owner that is alone has the truth.
void check(const Mix& mix, Sums& sums, double tick = 0) {
  for (std::size_t owner = 0; owner < mix.owners(); ++owner) {
    SCOPED_TRACE(fmt::format("owner {} of {}", owner, mix.owners()));
    const auto split = tick > 0 ? mix.split_live(owner, tick) : mix.split(owner);
    EXPECT_EQ(Mix::sum_of(split), Energy::joules(mix.total()));
    const double truth = mix.truth(owner);
    ASSERT_TRUE(split.command_bounds);
    const double low = split.command_bounds->low.joules();
    const double high = split.command_bounds->high.joules();
    const bool is_near = std::abs(own(split) - truth) <= 0.02 * truth;
    const double ends = 1e-3 * truth + 1e-3;  // the end of a process is noticed late
    const bool is_inside =
        low - mix.unlisted_of_others(owner) <= truth + ends && truth <= high + ends;
    if (mix.is_alone(owner) && tick > 0) {
      // What no list named by then stays unattributed.
      EXPECT_LE(own(split), truth + ends);
      EXPECT_GE(own(split) + mix.unlisted_of(owner) + 0.02 * truth, truth);
    } else if (mix.is_alone(owner)) {
      EXPECT_TRUE(is_near) << own(split) << " of " << truth << " J";
    } else {
      EXPECT_TRUE(is_near || is_inside) << own(split) << " of " << truth << " J, in [" << low
                                        << ", " << high << "] of " << mix.total();
    }
    sums.unattributed += split.unattributed.joules();
    sums.width += high - low;
    sums.error += std::abs(own(split) - truth);
    sums.truth += truth;
    ++sums.checked;
  }
}

TEST(Owners, EachOwnersEnergyIsTrueOrInsideItsInterval) {
  Sums sums;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    check(Mix(seed), sums);
  }
  EXPECT_GT(sums.checked, 400);
  // Intervals hold what cannot be known, and not everything.
  fmt::print("mean error {:.2f} %, mean width {:.1f} %\n", 100 * sums.error / sums.truth,
             100 * sums.width / sums.truth);
  EXPECT_LT(sums.error, 0.10 * sums.truth);
  EXPECT_LT(sums.width, 1.2 * sums.truth);
}

TEST(Owners, TickByTickToo) {
  for (const double tick : {1.0, 5.0}) {
    Sums sums;
    for (unsigned seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(fmt::format("every {} s, seed {}", tick, seed));
      check(Mix(seed, Divided::kNot, kOften), sums, tick);
    }
    fmt::print("every {} s: mean error {:.2f} %, mean width {:.1f} %, unattributed {:.1f} %\n",
               tick, 100 * sums.error / sums.truth, 100 * sums.width / sums.truth,
               100 * sums.unattributed / sums.truth);
    EXPECT_LT(sums.unattributed, 0.15 * sums.truth);
  }
}

TEST(Owners, OfABoardThatMigDividesToo) {
  for (const auto divided : {Divided::kWithActivity, Divided::kBySize, Divided::kOfUnknownSize}) {
    Sums sums;
    for (unsigned seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(fmt::format("way {}, seed {}", static_cast<int>(divided), seed));
      check(Mix(seed, divided), sums);
    }
    fmt::print("way {}: mean error {:.2f} %, mean width {:.1f} %\n", static_cast<int>(divided),
               100 * sums.error / sums.truth, 100 * sums.width / sums.truth);
    if (divided != Divided::kWithActivity) continue;
    EXPECT_LT(sums.error, 0.35 * sums.truth);
    EXPECT_LT(sums.width, 1.6 * sums.truth);
  }
}

}  // namespace
}  // namespace jouleprof::analysis
