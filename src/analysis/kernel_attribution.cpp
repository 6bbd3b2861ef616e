#include "analysis/kernel_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "analysis/activity_rows.h"
#include "analysis/activity_table.h"
#include "analysis/kernel_model.h"
#include "model/gauge_names.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// NVML's reasons that hold clocks below what the work asks for: software and hardware power caps,
// hardware slowdown, thermal slowdowns, the power brake.
constexpr unsigned long long kHeldDown = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
constexpr double kNoContext = 25;  // watts that a context and its clocks may add to an idle board

std::optional<double> held_down_share(const model::Recording& recording,
                                      const model::Domain& domain, HostTime begin, HostTime end) {
  for (const auto& sensor : recording.sensors) {
    if (sensor.domain != domain.id || sensor.name != model::gauge::kClockEventReasons) continue;
    double held = 0;
    double all = 0;
    std::optional<model::GaugeReading> last;
    for (const auto& r : recording.readings.gauges) {
      if (r.sensor != sensor.id) continue;
      if (last && r.at > begin && last->at < end) {
        const double length = seconds(std::min(r.at, end) - std::max(last->at, begin));
        all += length;
        if ((static_cast<unsigned long long>(last->value) & kHeldDown) != 0) held += length;
      }
      last = r;
    }
    if (all > 0) return held / all;
  }
  return std::nullopt;
}

// The power of a board that has a context but runs nothing. It drifts with temperature by several
// percent, so that what is seen near work, and after much of it, counts most.
class QuietPower {
 public:
  QuietPower(const ActivityTable& table, double memory) : table_(table), memory_(memory) {}

  // In order of their begins.
  void look(const SeenPower& s) {
    const auto& bins = table_.bins;
    while (next_ < bins.size() && bins[next_].begin < s.end) {
      // Busy time of the last seconds, fading.
      const auto& bin = bins[next_];
      double busy = 0;
      for (std::size_t i = bin.first; i < table_.end_of(next_); ++i) busy += table_.entries[i].busy;
      heat_ = heat_ * std::exp(-(bin.begin - last_end_) / kWarm) + busy;
      last_end_ = bin.begin + bin.width;
      ++next_;
    }
    // Nothing may have run since well before it began.
    if (last_end_ > s.begin - memory_) return;
    const double since = s.begin - last_end_;
    const double until = next_ < bins.size() ? bins[next_].begin - s.end : 1e9;
    const double length = s.end - s.begin;
    const double weight = length * std::exp(-std::min(since, until) / kNear) *
                          (0.05 + heat_ * std::exp(-since / kWarm));
    ++looks_;
    weight_ += weight;
    watts_ += weight * s.watts;
    squares_ += weight * s.watts * s.watts;
  }

  // Absent when there was hardly any quiet.
  std::optional<IdleHint> hint() const {
    if (looks_ < kFewest || weight_ <= 0) return std::nullopt;
    const double mean = watts_ / weight_;
    const double spread = std::sqrt(std::max(squares_ / weight_ - mean * mean, 0.0));
    return IdleHint{mean, 0.5 + 0.3 * spread};
  }

 private:
  static constexpr int kFewest = 5;      // readings, each a sample or an increment
  static constexpr double kNear = 0.12;  // seconds from the nearest work
  static constexpr double kWarm = 5;     // seconds that a board takes to cool a good part

  const ActivityTable& table_;
  double memory_;
  std::size_t next_ = 0;
  double last_end_ = -1e9;
  double heat_ = 0;
  int looks_ = 0;
  double weight_ = 0;
  double watts_ = 0;
  double squares_ = 0;
};

class Attribution {
 public:
  Attribution(const model::Recording& recording, const model::Domain& domain,
              EnergyTimeline& timeline, ActivityTable table)
      : recording_(recording), timeline_(timeline), table_(std::move(table)) {
    out_.domain = domain;
  }

  std::optional<model::ActivityProfile> run() {
    // Where the sensors tell of it: the last launches may come after the last reading.
    const auto extent = timeline_.extent();
    if (!extent) return std::nullopt;
    out_.begin = std::max(table_.time.host_of(table_.begin), extent->begin);
    out_.end = std::min(table_.time.host_of(table_.end), extent->end);
    if (out_.end <= out_.begin) return std::nullopt;
    const auto measured = timeline_.energy(out_.begin, out_.end);
    if (!measured) return std::nullopt;
    out_.measured = *measured;

    collect();
    const auto model = KernelModel::fit(table_, seen_, idle_, limit_watts(), timeline_.rise());
    if (!model) {
      explain_nothing();
      return std::move(out_);
    }
    const auto& solution = model->solution();
    out_.idle_power = Power::watts(model->idle_watts());
    out_.idle_error = Power::watts(1.96 * model->idle_sigma());
    out_.explained = solution.explained;
    out_.rows = solution.rows;
    out_.method = method();
    out_.launches = table_.launches;
    out_.dropped = table_.dropped;
    const ActivityRows rows(recording_, table_, *model, gain(), out_.measured);
    out_.by_kernel = rows.kernels();
    out_.by_layer = rows.layers();
    out_.by_range = rows.ranges();
    out_.by_phase = rows.phases();
    balance(*model);
    warn(*model);
    return std::move(out_);
  }

 private:
  double gain() const {
    const auto& sensors = timeline_.sensors();
    return sensors.counter ? sensors.counter->traits.gain_error : sensors.power->traits.gain_error;
  }

  // The highest limit that was in force; 0: not known.
  double limit_watts() const {
    double limit = 0;
    for (const auto& sensor : recording_.sensors) {
      if (sensor.domain != out_.domain.id || sensor.name != model::gauge::kPowerLimit) continue;
      for (const auto& r : recording_.readings.gauges) {
        if (r.sensor == sensor.id) limit = std::max(limit, r.value);
      }
    }
    return limit;
  }

  std::string method() const {
    const bool counter = std::any_of(seen_.begin(), seen_.end(), [](auto& s) { return s.counter; });
    const bool samples =
        std::any_of(seen_.begin(), seen_.end(), [](auto& s) { return !s.counter; });
    return counter && samples ? "regression on the energy counter and power samples"
           : counter          ? "regression on the energy counter"
                              : "regression on power samples";
  }

  // The rows to learn from, and the idle power. What ran outside of the traced time is not known: a
  // program that is run makes its context as it starts, and one that was profiled for a while ran
  // before and after. Only an import, and a process that traced itself while it was attached to,
  // tell of everything, and only pauses as low as any within count.
  void collect() {
    const bool all_told =
        recording_.run.source == "import:csv" || recording_.run.source == "attach";
    const auto& last = table_.bins.back();
    const HostTime begin = table_.time.host_of(table_.bins.front().begin);
    const HostTime end = table_.time.host_of(last.begin + last.width);
    seen_ = timeline_.seen(begin, end, table_.time);
    std::erase_if(seen_, [](const SeenPower& s) { return s.watts < 0 || s.watts > 20e3; });
    scale_samples();
    std::vector<SeenPower> ordered = seen_;
    if (all_told && !seen_.empty()) {
      double lowest = 1e300;
      for (const SeenPower& s : seen_) lowest = std::min(lowest, s.watts);
      for (const auto& [from, to] : {std::pair{begin - 3s, begin}, std::pair{end, end + 3s}}) {
        for (const SeenPower& s : timeline_.seen(from, to, table_.time)) {
          if (s.watts < 1.1 * lowest) ordered.push_back(s);
        }
      }
    }
    std::sort(ordered.begin(), ordered.end(),
              [](const SeenPower& a, const SeenPower& b) { return a.begin < b.begin; });
    QuietPower quiet(table_, 0.02 + 6 * timeline_.rise());
    for (const SeenPower& s : ordered) quiet.look(s);
    if (const auto hint = quiet.hint()) {
      idle_ = *hint;
      return;
    }
    double lowest = 1e300;
    for (const SeenPower& s : seen_) lowest = std::min(lowest, s.watts);
    idle_unseen_ = true;
    for (const auto& span : recording_.idle_spans) {
      const auto energy = timeline_.energy(span.begin, span.end);
      if (!energy || span.end <= span.begin) continue;
      const double idle = (energy->energy / (span.end - span.begin)).watts();
      idle_ = {std::min(idle + kNoContext, std::max(lowest, idle)), kNoContext};
      return;
    }
    idle_ = {0.6 * lowest, 0.3 * lowest + 1};
  }

  // Both sources see the same board; the counter decides where they differ by a factor.
  void scale_samples() {
    const auto counted = timeline_.counter_only(out_.begin, out_.end);
    const auto sampled = timeline_.samples_only(out_.begin, out_.end);
    if (!counted || !sampled || *sampled <= Energy{} || out_.end - out_.begin < 2s) return;
    const double ratio = counted->joules() / sampled->joules();
    if (std::abs(ratio - 1) > 0.1) return;  // something else is wrong; the report says so
    for (SeenPower& s : seen_) {
      if (!s.counter) s.watts *= ratio;
    }
  }

  void explain_nothing() {
    out_.unattributed = out_.measured.energy;
    out_.method = "none";
    out_.warnings.push_back(
        "no sensor of this device tells power over known times, so nothing can be attributed");
  }

  void balance(const KernelModel& model) {
    const Duration span = out_.end - out_.begin;
    out_.idle = *out_.idle_power * span;
    for (const auto& row : out_.by_kernel) {
      if (row.energy) out_.kernels += row.energy->energy;
    }
    out_.gaps = Energy::joules(std::max(model.gap_watts(), 0.0) * table_.gap);
    out_.unattributed = out_.measured.energy - out_.idle - out_.kernels - out_.gaps;
  }

  void warn(const KernelModel& model) {
    auto& w = out_.warnings;
    const auto held = held_down_share(recording_, out_.domain, out_.begin, out_.end);
    if (held && *held > 0.02) {
      w.push_back(fmt::format(
          "power or heat held the clocks down for {:.0f} % of the time: kernels share what the cap "
          "left them, and their energies hold for those clocks only",
          100 * *held));
    }
    if (idle_unseen_) {
      w.push_back(fmt::format(
          "the GPU never paused for as long as it takes to see its idle power; it is taken as "
          "{:.0f} +- {:.0f} W, and kernels' intervals include that",
          model.idle_watts(), 1.96 * model.idle_sigma()));
    }
    if (table_.dropped > 0) {
      w.push_back(
          fmt::format("{} records of launches were dropped: their energy is in other kernels "
                      "or unattributed",
                      table_.dropped));
    }
    if (table_.graph_expanded > 0) {
      w.push_back(
          fmt::format("{} of {} launches of CUDA graphs were spread over their nodes as they "
                      "ran in other launches",
                      table_.graph_expanded, table_.graph_launches));
    }
    if (out_.explained < 0.8 && model.solution().rows > 50) {
      w.push_back(fmt::format(
          "what ran explains only {:.0f} % of how power varied: another program may have used the "
          "GPU, or power hardly varied",
          100 * out_.explained));
    }
    const double left = std::abs(out_.unattributed.joules());
    if (left > 0.03 * out_.measured.energy.joules() + 1) {
      w.push_back(fmt::format("{:.1f} % of the energy is not explained by what ran",
                              100 * out_.unattributed.joules() / out_.measured.energy.joules()));
    }
    for (const auto& problem : table_.problems) w.push_back(problem);
  }

  const model::Recording& recording_;
  EnergyTimeline& timeline_;
  ActivityTable table_;
  std::vector<SeenPower> seen_;
  IdleHint idle_;
  bool idle_unseen_ = false;
  model::ActivityProfile out_;
};

}  // namespace

Result<std::optional<model::ActivityProfile>> attribute_kernels(const model::Recording& recording,
                                                                const model::Domain& domain,
                                                                EnergyTimeline& timeline,
                                                                std::optional<HostTime> from,
                                                                std::optional<HostTime> to) {
  auto table = activity_on(recording, domain, from, to);
  if (!table) return tl::unexpected(table.error());
  if (table->empty()) return std::nullopt;
  return Attribution(recording, domain, timeline, std::move(*table)).run();
}

}  // namespace jouleprof::analysis
