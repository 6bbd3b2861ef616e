#include "analysis/kernels/regression/power_rows.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>

namespace jouleprof::analysis {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

constexpr double kLeastShare = 1e-7;     // of a row's time, for a term
constexpr std::size_t kUsualTerms = 16;  // of a row, at most

// Busy seconds of every column up to a time, seen through a first-order lag: E - tau * y, with
// tau * dy/dt = busy - y and the time constant tau.
class LaggedActivity {
 public:
  LaggedActivity(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                 std::size_t columns, double time_constant)
      : table_(table),
        column_of_(column_of),
        time_constant_(time_constant),
        busy_(ArrayXd::Zero(static_cast<Index>(columns))),
        lagging_(busy_) {}

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

  void read(ArrayXd& out) const { out = busy_ - time_constant_ * scale_ * lagging_; }

 private:
  void decay(double t) {
    if (t <= now_) return;
    if (time_constant_ > 0) shrink(decayed(t - now_));
    now_ = t;
  }

  // Within the bin.
  void run(double t) {
    if (t <= now_) return;
    const auto& bin = table_.bins[bin_];
    const double length = t - now_;
    const double kept = time_constant_ > 0 ? decayed(length) : 0.0;
    if (time_constant_ > 0) shrink(kept);
    double all = 0;
    const double per_width = 1 / bin.width;
    const double responded = time_constant_ > 0 ? (1 - kept) / scale_ : 0.0;
    const auto add = [&](Index column, double share) {
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

  // What is left of y after `length` seconds. Most lengths are those of a bin, which rounding makes
  // a few different numbers.
  double decayed(double length) {
    for (const Decay& known : known_) {
      if (known.length == length) return known.left;
    }
    Decay& oldest = known_[next_known_++ % known_.size()];
    oldest = {length, std::exp(-length / time_constant_)};
    return oldest.left;
  }

  // lagging_ holds y / scale_, so that a decay of all columns is one multiplication.
  void shrink(double factor) {
    scale_ *= factor;
    if (scale_ > 1e-100) return;
    lagging_ *= scale_;
    scale_ = 1;
  }

  const ActivityTable& table_;
  std::span<const std::uint32_t> column_of_;
  double time_constant_;
  ArrayXd busy_;
  ArrayXd lagging_;
  struct Decay {
    double length = 0;
    double left = 1;
  };
  std::array<Decay, 4> known_;
  std::size_t next_known_ = 0;
  double scale_ = 1;
  double now_ = -1e300;
  std::size_t bin_ = 0;
};

struct Event {
  double at;
  std::uint32_t row;
  bool end;
};

bool is_earlier(const Event& a, const Event& b) { return a.at < b.at; }

// In order of time. Counter rows and sample rows mostly have begins and ends in order already.
std::vector<Event> events_of(std::span<const ObservedPower> observed, const SensorTiming& timing) {
  std::vector<Event> out;
  out.reserve(2 * observed.size());
  const auto add = [&](bool counter, bool end) {
    const auto middle = static_cast<std::ptrdiff_t>(out.size());
    const double offset = counter ? timing.counter_late : timing.samples_late;
    for (std::size_t i = 0; i < observed.size(); ++i) {
      const ObservedPower& s = observed[i];
      if (s.counter != counter) continue;
      out.push_back({(end ? s.end : s.begin) - offset, static_cast<std::uint32_t>(i), end});
    }
    const auto fresh = out.begin() + middle;
    if (!std::is_sorted(fresh, out.end(), is_earlier)) std::sort(fresh, out.end(), is_earlier);
    std::inplace_merge(out.begin(), fresh, out.end(), is_earlier);
  };
  for (const bool counter : {true, false}) {
    for (const bool end : {false, true}) add(counter, end);
  }
  return out;
}

}  // namespace

PowerRows power_rows(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const ObservedPower> observed,
                     const SensorTiming& timing) {
  PowerRows out;
  out.columns = columns;
  out.rows.reserve(observed.size());
  out.terms.reserve(kUsualTerms * observed.size());
  const auto events = events_of(observed, timing);
  LaggedActivity activity(table, column_of, columns, timing.time_constant);
  ArrayXd now;
  // The integrals at the begin of each open row; few rows are open at once.
  struct Open {
    std::uint32_t row;
    ArrayXd at_begin;
  };
  std::vector<Open> open;
  std::vector<ArrayXd> spare;
  std::vector<Index> with_share(columns);
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
    // Most columns have no share: those that may have one are found without a branch or a division.
    const double negligible = 0.5 * kLeastShare * length;
    std::size_t few = 0;
    for (Index k = 0; k < now.size(); ++k) {
      with_share[few] = k;
      const bool any = std::abs(now[k] - at->at_begin[k]) > negligible;
      few += static_cast<std::size_t>(any);
    }
    for (const Index k : std::span(with_share).first(few)) {
      const double share = (now[k] - at->at_begin[k]) / length;
      if (std::abs(share) > kLeastShare) {
        out.terms.push_back({static_cast<std::uint32_t>(k), static_cast<float>(share)});
      }
    }
    spare.push_back(std::move(at->at_begin));
    open.erase(at);
  }
  return out;
}

}  // namespace jouleprof::analysis
