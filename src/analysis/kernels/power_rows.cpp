#include "analysis/kernels/power_rows.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

// Busy seconds of every column up to a time, seen through a first-order lag: E - tau * y, with
// tau * dy/dt = busy - y and the time constant tau.
class LaggedActivity {
 public:
  LaggedActivity(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                 std::size_t columns, double time_constant)
      : table_(table),
        column_of_(column_of),
        time_constant_(time_constant),
        busy_(columns),
        lagging_(columns) {}

  // `t` must not decrease from call to call.
  void advance(double t) {
    while (bin_ < table_.bins.size()) {
      const auto& bin = table_.bins[bin_];
      if (bin.begin > now_) decay(std::min(t, bin.begin));
      if (t <= bin.begin) return;
      const double end = bin.begin + bin.width;
      run(std::min(t, end));
      if (t < end) return;
      ++bin_;
    }
    decay(t);
  }

  void read(std::vector<double>& out) const {
    out.resize(busy_.size());
    for (std::size_t k = 0; k < busy_.size(); ++k) {
      out[k] = busy_[k] - time_constant_ * scale_ * lagging_[k];
    }
  }

 private:
  void decay(double t) {
    if (t <= now_) return;
    if (time_constant_ > 0) shrink(std::exp(-(t - now_) / time_constant_));
    now_ = t;
  }

  // Within the bin.
  void run(double t) {
    if (t <= now_) return;
    const auto& bin = table_.bins[bin_];
    const double length = t - now_;
    const double kept = time_constant_ > 0 ? std::exp(-length / time_constant_) : 0.0;
    if (time_constant_ > 0) shrink(kept);
    double all = 0;
    const double per_width = 1 / bin.width;
    const double responded = time_constant_ > 0 ? (1 - kept) / scale_ : 0.0;
    const auto add = [&](std::size_t column, double share) {
      busy_[column] += share * length;
      lagging_[column] += share * responded;
    };
    const auto first = table_.entries.begin() + static_cast<std::ptrdiff_t>(bin.first);
    const auto last = table_.entries.begin() + static_cast<std::ptrdiff_t>(table_.end_of(bin_));
    for (auto entry = first; entry != last; ++entry) {
      const double share = entry->busy * per_width;
      const std::uint32_t id = entry->kernel_class;
      const bool variant = id >= table_.classes.size();
      if (variant && (id >= column_of_.size() || column_of_[id] == model::kNone)) continue;
      add(column_of_[id], share);
      if (!variant) all += share;
    }
    add(busy_.size() - 1, std::max(1 - all, 0.0));
    now_ = t;
  }

  // lagging_ holds y / scale_, so that a decay of all columns is one multiplication.
  void shrink(double factor) {
    scale_ *= factor;
    if (scale_ > 1e-100) return;
    for (double& y : lagging_) y *= scale_;
    scale_ = 1;
  }

  const ActivityTable& table_;
  std::span<const std::uint32_t> column_of_;
  double time_constant_;
  std::vector<double> busy_;
  std::vector<double> lagging_;
  double scale_ = 1;
  double now_ = -1e300;
  std::size_t bin_ = 0;
};

struct Event {
  double at;
  std::uint32_t row;
  bool end;
};

}  // namespace

PowerRows power_rows(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const ObservedPower> observed,
                     const SensorTiming& timing) {
  PowerRows out;
  out.columns = columns;
  std::vector<Event> events;
  events.reserve(2 * observed.size());
  for (std::size_t i = 0; i < observed.size(); ++i) {
    const double offset = observed[i].counter ? timing.counter_late : timing.samples_late;
    events.push_back({observed[i].begin - offset, static_cast<std::uint32_t>(i), false});
    events.push_back({observed[i].end - offset, static_cast<std::uint32_t>(i), true});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });

  LaggedActivity activity(table, column_of, columns, timing.time_constant);
  std::vector<double> now;
  // The integrals at the begin of each open row; few rows are open at once.
  struct Open {
    std::uint32_t row;
    std::vector<double> at_begin;
  };
  std::vector<Open> open;
  std::vector<std::vector<double>> spare;
  for (const Event& event : events) {
    const ObservedPower& s = observed[event.row];
    activity.advance(event.at);
    activity.read(now);
    if (!event.end) {
      Open fresh{event.row, {}};
      if (!spare.empty()) {
        fresh.at_begin = std::move(spare.back());
        spare.pop_back();
      }
      fresh.at_begin = now;
      open.push_back(std::move(fresh));
      continue;
    }
    const auto at =
        std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.row == event.row; });
    if (at == open.end()) continue;  // it ends where it begins
    out.rows.push_back({s.begin, s.end, s.watts, s.counter, out.terms.size()});
    const double length = s.end - s.begin;
    for (std::size_t k = 0; k < columns; ++k) {
      const double share = (now[k] - at->at_begin[k]) / length;
      if (std::abs(share) > 1e-7) {
        out.terms.push_back({static_cast<std::uint32_t>(k), static_cast<float>(share)});
      }
    }
    spare.push_back(std::move(at->at_begin));
    open.erase(at);
  }
  return out;
}

}  // namespace jouleprof::analysis
