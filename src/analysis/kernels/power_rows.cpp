#include "analysis/kernels/power_rows.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

// Busy seconds of every column up to a time, as seen through a first-order lag: E - rise * y with
// rise * dy/dt = busy - y.
class SeenActivity {
 public:
  SeenActivity(const ActivityTable& table, std::span<const std::uint32_t> column_of,
               std::size_t columns, double rise)
      : table_(table), column_of_(column_of), rise_(rise), busy_(columns), lagging_(columns) {}

  // Never back in time.
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
      out[k] = busy_[k] - rise_ * scale_ * lagging_[k];
    }
  }

 private:
  void decay(double t) {
    if (t <= now_) return;
    if (rise_ > 0) shrink(std::exp(-(t - now_) / rise_));
    now_ = t;
  }

  // Within the bin.
  void run(double t) {
    if (t <= now_) return;
    const auto& bin = table_.bins[bin_];
    const double length = t - now_;
    const double kept = rise_ > 0 ? std::exp(-length / rise_) : 0.0;
    if (rise_ > 0) shrink(kept);
    double all = 0;
    const auto add = [&](std::size_t column, double share) {
      busy_[column] += share * length;
      if (rise_ > 0) lagging_[column] += share * (1 - kept) / scale_;
    };
    for (std::size_t i = bin.first; i < table_.end_of(bin_); ++i) {
      const double share = table_.entries[i].busy / bin.width;
      const std::uint32_t id = table_.entries[i].kernel_class;
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
  double rise_;
  std::vector<double> busy_;
  std::vector<double> lagging_;
  double scale_ = 1;
  double now_ = -1e300;
  std::size_t bin_ = 0;
};

struct Look {
  double at;
  std::uint32_t row;
  bool end;
};

}  // namespace

PowerRows power_rows(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const SeenPower> seen,
                     const SensorTiming& timing) {
  PowerRows out;
  out.columns = columns;
  std::vector<Look> looks;
  looks.reserve(2 * seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double late = seen[i].counter ? timing.counter_late : timing.samples_late;
    looks.push_back({seen[i].begin - late, static_cast<std::uint32_t>(i), false});
    looks.push_back({seen[i].end - late, static_cast<std::uint32_t>(i), true});
  }
  std::sort(looks.begin(), looks.end(), [](const Look& a, const Look& b) { return a.at < b.at; });

  SeenActivity activity(table, column_of, columns, timing.rise);
  std::vector<double> now;
  // What stood at the begin of rows that are still open; few are at once.
  struct Open {
    std::uint32_t row;
    std::vector<double> at_begin;
  };
  std::vector<Open> open;
  std::vector<std::vector<double>> spare;
  for (const Look& look : looks) {
    const SeenPower& s = seen[look.row];
    activity.advance(look.at);
    activity.read(now);
    if (!look.end) {
      Open fresh{look.row, {}};
      if (!spare.empty()) {
        fresh.at_begin = std::move(spare.back());
        spare.pop_back();
      }
      fresh.at_begin = now;
      open.push_back(std::move(fresh));
      continue;
    }
    const auto at =
        std::find_if(open.begin(), open.end(), [&](const Open& o) { return o.row == look.row; });
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
