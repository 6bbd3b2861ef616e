// Random mixes of processes on a board, of which the simulation knows who caused each joule.
// Seeds whose lists are rare, whose processes are brief, refused, late, or begin where another
// ends, are among them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analysis/processes/processes.h"
#include "analysis/timeline/simulated_sensors_test.h"
#include "model/device/gauge_names.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::kGpu0;

constexpr double kStep = 0.01;  // seconds
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
};

class Mix {
 public:
  explicit Mix(unsigned seed) : random_(seed) {
    owners_ = 1 + seed % 3;
    length_ = uniform(60, 160);
    period_ = chance(0.3) ? 5 : 0.9;
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
    simulate();
    list();
  }

  std::size_t owners() const { return owners_; }
  double length() const { return length_; }
  double truth(std::size_t owner) const { return truth_[owner]; }
  double total() const { return cumulative_.back(); }
  bool is_notebook(std::size_t owner) const { return truth_[owner] == 0; }
  bool has_brief() const {
    return std::any_of(programs_.begin(), programs_.end(),
                       [this](const auto& p) { return p.end - p.start < 4 * period_ + 2; });
  }
  // Whether no other owner's process was on the board.
  bool is_alone(std::size_t owner) const {
    return std::all_of(programs_.begin(), programs_.end(),
                       [&](const auto& p) { return p.owner == owner; });
  }
  DomainSplit split(std::size_t owner) const {
    model::Recording recording = recording_;
    for (std::size_t i = 0; i < programs_.size(); ++i)
      recording.processes[i].in_tree = programs_[i].owner == owner;
    DomainEnergy energy;
    energy.domain = recording.domains[0];
    energy.active = Energy::joules(total());
    energy.part = [this](HostTime a, HostTime b) { return Energy::joules(up_to(b) - up_to(a)); };
    return ProcessSplitter(recording, at(0), at(length_)).split(energy);
  }

 private:
  double uniform(double a, double b) { return std::uniform_real_distribution(a, b)(random_); }
  bool chance(double p) { return uniform(0, 1) < p; }

  void add(std::size_t owner, double start, double end, double watts, double duty) {
    Program p{owner, start, end, 0, 0, watts, {}, false};
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
    busy_.assign(1, 0.0);
    std::vector<double> duties(programs_.size());
    for (std::size_t s = 0; s < steps; ++s) {
      double demand = 0;
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        demand += duties[i] = duty_of(programs_[i], (static_cast<double>(s) + 0.5) * kStep);
      }
      double joules = 0;
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        const double share = duties[i] / std::max(demand, 1.0);
        shares_[i][s + 1] = shares_[i][s] + share * kStep;
        truth_[programs_[i].owner] += share * programs_[i].watts * kStep;
        joules += share * programs_[i].watts * kStep;
      }
      cumulative_.push_back(cumulative_.back() + joules);
      busy_.push_back(busy_.back() + std::min(demand, 1.0) * kStep);
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
    for (double t = 0.5; t < length_; t += 0.9) {
      const double use = (interpolate(busy_, t) - interpolate(busy_, t - 1)) / std::min(t, 1.0);
      recording_.readings.gauges.push_back({kUtilisation, at(t), std::round(100 * use) / 100});
    }
    std::vector<double> listed(programs_.size(), -1);  // since
    double asked = 0;
    bool asked_alone = false;
    for (double t = 0.3; t < length_; t += period_ * uniform(0.95, 1.1)) {
      std::vector<std::size_t> here;
      for (std::size_t i = 0; i < programs_.size(); ++i) {
        const bool is_here = programs_[i].context_begin <= t && t < programs_[i].context_end;
        if (is_here && listed[i] < 0) listed[i] = t;
        if (!is_here) listed[i] = -1;
        if (is_here) here.push_back(i);
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
        if (asks && listed[i] <= asked && !programs_[i].refused) {
          const double use =
              (interpolate(shares_[i], t - late) - interpolate(shares_[i], asked - late)) /
              (t - asked);
          r.compute_utilisation = std::round(100 * use) / 100;
        }
        recording_.process_readings.gpu_processes.push_back(r);
      }
      if (asks || is_new || here.empty()) asked = t;
    }
  }

  std::mt19937 random_;
  std::size_t owners_ = 0;
  double length_ = 0;
  double period_ = 0.9;  // of the lists
  std::vector<Program> programs_;
  std::vector<std::vector<double>> shares_;  // of the board's time, added up, by program
  std::vector<double> cumulative_;           // joules
  std::vector<double> busy_;                 // seconds
  std::vector<double> truth_;
  model::Recording recording_;
};

double own(const DomainSplit& split) {
  double sum = split.within_command.joules();
  for (const Energy share : split.shares) sum += share.joules();
  return sum;
}

TEST(Owners, EachOwnersEnergyIsTrueOrInsideItsInterval) {
  int checked = 0;
  double excess = 0;  // widths of the intervals
  double absolute = 0;
  double sum = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const Mix mix(seed);
    for (std::size_t owner = 0; owner < mix.owners(); ++owner) {
      SCOPED_TRACE(fmt::format("seed {}, owner {} of {}", seed, owner, mix.owners()));
      const auto split = mix.split(owner);
      Energy parts = split.within_command + split.others + split.unattributed;
      for (const Energy share : split.shares) parts += share;
      EXPECT_EQ(parts, Energy::joules(mix.total()));
      const double truth = mix.truth(owner);
      const double tolerance = 0.02 * truth + 0.005 * mix.total() + 1;
      ASSERT_TRUE(split.command_bounds);
      // What lives between two lists is not seen, and its energy is of whom the lists name.
      if (!mix.is_notebook(owner) || !mix.has_brief()) {
        EXPECT_GE(truth, split.command_bounds->low.joules() - tolerance);
      }
      EXPECT_LE(truth, split.command_bounds->high.joules() + tolerance);
      if (mix.is_alone(owner)) {
        EXPECT_NEAR(own(split), truth, tolerance);
      }
      excess += (split.command_bounds->high - split.command_bounds->low).joules();
      absolute += std::abs(own(split) - truth);
      sum += truth;
      ++checked;
    }
  }
  EXPECT_GT(checked, 400);
  // Intervals hold what cannot be known, and not everything.
  RecordProperty("error", fmt::format("{:.4f}", absolute / sum));
  RecordProperty("width", fmt::format("{:.4f}", excess / sum));
  fmt::print("mean error {:.2f} %, mean width {:.1f} %\n", 100 * absolute / sum,
             100 * excess / sum);
  EXPECT_LT(absolute, 0.10 * sum);
  EXPECT_LT(excess, 1.2 * sum);
}

}  // namespace
}  // namespace jouleprof::analysis
