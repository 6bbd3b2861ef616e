#include "analysis/kernels/regression/power_rows.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <utility>

namespace jouleprof::analysis {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

constexpr double kLeastShare = 1e-7;     // of a row's time, for a term
constexpr std::size_t kUsualTerms = 16;  // of a row, at most

constexpr double kMostPieces = 4;  // of a signature in a bin; more are nearly uniform

// The shares of columns in the parts of one bin, in each of which they are constant.
class BinParts {
 public:
  struct ColumnShare {
    Index column;
    double share;
  };
  struct Interval {
    double begin;
    double end;
    std::size_t first;  // its shares go up to the next part's
  };

  BinParts(const ActivityTable& table, std::span<const std::uint32_t> column_of,
           std::size_t columns, std::optional<std::size_t> order)
      : table_(table), column_of_(column_of), idle_(static_cast<Index>(columns) - 1) {
    if (!order) return;
    std::mt19937_64 random(*order / 2);
    for (std::size_t k = 0; k < table.classes.size(); ++k) {
      const double phase = std::ldexp(static_cast<double>(random()), -64);
      phase_.push_back(*order % 2 == 0 ? phase : 1 - phase);
    }
  }

  void take(std::size_t number) {
    parts_.clear();
    shares_.clear();
    const auto& bin = table_.bins[number];
    const auto entries =
        std::span(table_.entries).subspan(bin.first, table_.end_of(number) - bin.first);
    if (phase_.empty()) {
      parts_.push_back({bin.begin, bin.begin + bin.width, 0});
      const double per_width = 1 / bin.width;
      double all = 0;
      for (const auto& entry : entries) {
        const double share = entry.busy * per_width;
        add(entry.kernel_class, share);
        if (entry.kernel_class < table_.classes.size()) all += share;
      }
      shares_.push_back({idle_, std::max(1 - all, 0.0)});
      return;
    }
    take_pieces(bin, entries);
  }

  std::span<const Interval> parts() const { return parts_; }
  std::span<const ColumnShare> shares(std::size_t part) const {
    const std::size_t end = part + 1 < parts_.size() ? parts_[part + 1].first : shares_.size();
    return std::span(shares_).subspan(parts_[part].first, end - parts_[part].first);
  }

 private:
  struct Piece {
    double place;  // within the bin: only the order matters
    std::uint32_t kernel_class;
    double busy;
    double part;  // of the signature's time in the bin
  };

  // One signature at a time; idle time and signatures of many launches are spread evenly.
  void take_pieces(const ActivityTable::Bin& bin, std::span<const ActivityTable::Entry> entries) {
    pieces_.clear();
    double busy = 0;
    double placed = 0;
    for (const auto& entry : entries) {
      if (entry.kernel_class >= table_.classes.size()) continue;
      busy += entry.busy;
      const double count = pieces_of(entry.kernel_class, entry.busy);
      for (double i = 0; i < count; ++i) {
        pieces_.push_back({(i + phase_[entry.kernel_class]) / count, entry.kernel_class,
                           entry.busy / count, 1 / count});
      }
      if (count > 0) placed += entry.busy;
    }
    std::ranges::sort(pieces_, {}, &Piece::place);
    const auto add_even = [&] {
      for (const auto& entry : entries) {
        if (!is_placed(class_of(entry.kernel_class)))
          add(entry.kernel_class, entry.busy / bin.width);
      }
      shares_.push_back({idle_, std::max(1 - busy / bin.width, 0.0)});
    };
    double at = bin.begin;
    for (const Piece& piece : pieces_) {
      const double width = piece.busy / placed * bin.width;
      if (width <= 0) continue;
      parts_.push_back({at, at + width, shares_.size()});
      at += width;
      for (const auto& entry : entries) {
        if (class_of(entry.kernel_class) != piece.kernel_class) continue;
        add(entry.kernel_class, entry.busy * piece.part / width);
      }
      add_even();
    }
    if (parts_.empty()) {
      parts_.push_back({bin.begin, 0, 0});
      add_even();
    }
    parts_.back().end = bin.begin + bin.width;
  }

  // 0: spread evenly.
  double pieces_of(std::uint32_t kernel_class, double busy) const {
    const double launch = table_.classes[kernel_class].launch();
    const double count = launch > 0 ? std::max(std::round(busy / launch), 1.0) : 1;
    return count > kMostPieces || busy <= 0 ? 0 : count;
  }
  bool is_placed(std::uint32_t kernel_class) const {
    return std::ranges::any_of(pieces_,
                               [&](const Piece& p) { return p.kernel_class == kernel_class; });
  }

  void add(std::uint32_t id, double share) {
    const bool signature = id < table_.classes.size();
    if (!signature && (id >= column_of_.size() || column_of_[id] == model::kNone)) return;
    shares_.push_back({column_of_[id], share});
  }

  // The signature of what an entry numbers.
  std::uint32_t class_of(std::uint32_t id) const {
    const auto classes = static_cast<std::uint32_t>(table_.classes.size());
    const auto variants = static_cast<std::uint32_t>(table_.variants.size());
    if (id < classes) return id;
    return id < classes + variants ? table_.variants[id - classes].kernel_class
                                   : id - classes - variants;
  }

  const ActivityTable& table_;
  std::span<const std::uint32_t> column_of_;
  Index idle_;                 // column
  std::vector<double> phase_;  // by signature
  std::vector<Interval> parts_;
  std::vector<ColumnShare> shares_;
  std::vector<Piece> pieces_;
};

// Busy seconds of every column up to a time, seen through a first-order lag: E - tau * y, with
// tau * dy/dt = busy - y and the time constant tau.
class LaggedActivity {
 public:
  LaggedActivity(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                 std::size_t columns, double time_constant, std::optional<std::size_t> order)
      : table_(table),
        parts_(table, column_of, columns, order),
        time_constant_(time_constant),
        busy_(ArrayXd::Zero(static_cast<Index>(columns))),
        lagging_(busy_) {}

  // `t` must not decrease from call to call.
  void advance(double t) {
    while (bin_ < table_.bins.size()) {
      const auto& bin = table_.bins[bin_];
      if (bin.begin > now_) decay(std::min(t, bin.begin));
      if (t <= bin.begin) return;
      if (taken_ != bin_ + 1) {
        parts_.take(bin_);
        taken_ = bin_ + 1;
        part_ = 0;
      }
      for (; part_ < parts_.parts().size(); ++part_) {
        const double end = parts_.parts()[part_].end;
        run(std::min(t, end));
        if (t < end) return;
      }
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

  // Within the part.
  void run(double t) {
    if (t <= now_) return;
    const double length = t - now_;
    const double kept = time_constant_ > 0 ? decayed(length) : 0.0;
    if (time_constant_ > 0) shrink(kept);
    const double responded = time_constant_ > 0 ? (1 - kept) / scale_ : 0.0;
    for (const auto& [column, share] : parts_.shares(part_)) {
      busy_[column] += share * length;
      lagging_[column] += share * responded;
    }
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
  BinParts parts_;  // of bin taken_ - 1
  std::size_t taken_ = 0;
  std::size_t part_ = 0;
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

// A time over which a sensor took a mean: the whole of a row, or one of those that the counter
// adds.
struct RowWindow {
  double begin;
  double end;
  std::uint32_t row;
};

std::vector<RowWindow> windows_of(std::span<const ObservedPower> observed,
                                  const SensorTiming& timing) {
  std::vector<RowWindow> out;
  out.reserve(observed.size());
  for (std::size_t i = 0; i < observed.size(); ++i) {
    const ObservedPower& s = observed[i];
    const auto row = static_cast<std::uint32_t>(i);
    const double late = s.counter ? timing.counter_late : timing.samples_late;
    const std::size_t before = out.size();
    if (s.counter && timing.counter_every > 0) {
      double at = s.end - late - timing.counter_phase;
      for (; at > s.begin - late - timing.counter_phase + 1e-6; at -= timing.counter_every) {
        out.push_back({at - timing.counter_window, at, row});
      }
    }
    if (out.size() == before) out.push_back({s.begin - late, s.end - late, row});
  }
  return out;
}

struct Event {
  double at;
  std::uint32_t window;
  bool end;
};

bool is_earlier(const Event& a, const Event& b) { return a.at < b.at; }

// In order of time. Counter rows and sample rows mostly have begins and ends in order already.
std::vector<Event> events_of(std::span<const ObservedPower> observed,
                             const std::vector<RowWindow>& windows) {
  std::vector<Event> out;
  out.reserve(2 * windows.size());
  const auto add = [&](bool counter, bool end) {
    const auto middle = static_cast<std::ptrdiff_t>(out.size());
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const RowWindow& w = windows[i];
      if (observed[w.row].counter != counter) continue;
      out.push_back({end ? w.end : w.begin, static_cast<std::uint32_t>(i), end});
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

constexpr double kAlike = 0.1;  // share by which rows of one mix differ
constexpr std::size_t kMostMixes = 64;

bool is_alike(std::span<const PowerRows::Term> a, std::span<const PowerRows::Term> b) {
  auto i = a.begin();
  auto k = b.begin();
  while (i != a.end() || k != b.end()) {
    double differ = 0;
    if (k == b.end() || (i != a.end() && i->column < k->column)) {
      differ = i++->share;
    } else if (i == a.end() || k->column < i->column) {
      differ = k++->share;
    } else {
      differ = i++->share - k++->share;
    }
    if (std::abs(differ) > kAlike) return false;
  }
  return true;
}

}  // namespace

std::optional<std::size_t> mixes_of(const PowerRows& rows) {
  std::vector<std::size_t> first;  // row of each mix
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const bool known = std::ranges::any_of(
        first, [&](std::size_t row) { return is_alike(rows.of(row), rows.of(i)); });
    if (known) continue;
    if (first.size() == kMostMixes) return std::nullopt;
    first.push_back(i);
  }
  return first.size();
}

PowerRows power_rows(const ActivityTable& table, std::span<const std::uint32_t> column_of,
                     std::size_t columns, std::span<const ObservedPower> observed,
                     const SensorTiming& timing, std::optional<std::size_t> order) {
  PowerRows out;
  out.columns = columns;
  out.rows.reserve(observed.size());
  out.terms.reserve(kUsualTerms * observed.size());
  const auto windows = windows_of(observed, timing);
  std::vector<std::uint32_t> left(observed.size());  // windows of a row that are still to end
  for (const RowWindow& w : windows) ++left[w.row];
  const auto events = events_of(observed, windows);
  LaggedActivity activity(table, column_of, columns, timing.time_constant, order);
  ArrayXd now;
  // The integrals at the begin of each open window, or the sum of a row's earlier ones; few are
  // open at once.
  struct Open {
    std::uint32_t window;
    ArrayXd at_begin;
  };
  std::vector<Open> open;
  std::map<std::uint32_t, std::pair<ArrayXd, double>> sums;  // of rows of several windows
  std::vector<ArrayXd> spare;
  std::vector<Index> with_share(columns);
  for (const Event& event : events) {
    activity.advance(event.at);
    activity.read(now);
    if (!event.end) {
      Open fresh{event.window, {}};
      if (!spare.empty()) {
        fresh.at_begin = std::move(spare.back());
        spare.pop_back();
      }
      fresh.at_begin = now;
      open.push_back(std::move(fresh));
      continue;
    }
    const auto at = std::ranges::find(open, event.window, &Open::window);
    if (at == open.end()) continue;  // it ends where it begins
    const RowWindow& window = windows[event.window];
    const ObservedPower& s = observed[window.row];
    double length = window.end - window.begin;
    now -= at->at_begin;
    spare.push_back(std::move(at->at_begin));
    open.erase(at);
    const bool last = --left[window.row] == 0;
    const auto earlier = sums.find(window.row);
    if (earlier != sums.end()) {
      now += earlier->second.first;
      length += earlier->second.second;
      if (last) sums.erase(earlier);
    }
    if (!last) {
      sums.insert_or_assign(window.row, std::pair{now, length});
      continue;
    }
    out.rows.push_back({s.begin, s.end, s.watts, s.counter, out.terms.size()});
    // Most columns have no share: those that may have one are found without a branch or a division.
    const double negligible = 0.5 * kLeastShare * length;
    std::size_t few = 0;
    for (Index k = 0; k < now.size(); ++k) {
      with_share[few] = k;
      const bool any = std::abs(now[k]) > negligible;
      few += static_cast<std::size_t>(any);
    }
    for (const Index k : std::span(with_share).first(few)) {
      const double share = now[k] / length;
      if (std::abs(share) > kLeastShare) {
        out.terms.push_back({static_cast<std::uint32_t>(k), static_cast<float>(share)});
      }
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
