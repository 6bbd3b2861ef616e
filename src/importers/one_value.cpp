#include "importers/one_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/median.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kMostSources = 16;
constexpr std::size_t kFewestRows = 6;

double median_of_known(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : upper_median(std::move(values));
}

// Rows of the file's order whose stamps do not go back.
struct Piece {
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<Piece> pieces_of(const std::vector<Duration>& stamps) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    if (i == 0 || stamps[i] < stamps[i - 1]) pieces.push_back({i, i});
    pieces.back().last = i;
  }
  return pieces;
}

class Check {
 public:
  explicit Check(const DeviceRows& rows) : rows_(rows), order_(rows.lines.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (rows.stamps.empty()) return;
    note_overlaps();
    if (overlapping_.empty()) return;
    std::ranges::stable_sort(
        order_, [&](std::size_t a, std::size_t b) { return rows.stamps[a] < rows.stamps[b]; });
    std::vector<std::size_t> once;
    for (const std::size_t i : order_) {
      if (once.empty() || !is_repeated(once.back(), i)) once.push_back(i);
    }
    repeated_ = order_.size() - once.size();
    order_ = std::move(once);
  }

  const std::vector<std::size_t>& order() const { return order_; }

  std::optional<Contradiction> find() const {
    if (auto found = of_counters()) return found;
    if (order_.size() < kFewestRows) return of_few_rows();
    if (!overlapping_.empty() && 2 * repeated_ < overlapping_rows_) {
      if (is_one_sensor(2)) return std::nullopt;
      const Piece& piece = overlapping_.front();
      return certain(fmt::format(
          "the times from line {} on go back over a time that has other rows of it already",
          rows_.lines[piece.first]));
    }
    if (const auto sources = loggers(); sources > 1) {
      const std::string why = fmt::format("{} rows come in each period", sources);
      if (!is_one_sensor(sources)) return certain(why);
      if (is_constant()) {
        return Contradiction{
            fmt::format(
                "{}: {}, all with the same values: several loggers of one GPU, or GPUs that "
                "draw the same under one name; if they are several, their energy is "
                "counted once",
                rows_.device, why),
            false};
      }
    }
    if (auto found = of_seconds()) return found;
    return of_levels();
  }

 private:
  Contradiction certain(const std::string& why) const {
    return {fmt::format("the rows of {} contradict each other: {}. They are of several GPUs or "
                        "machines, and as one they would count once; import each one's rows from a "
                        "file of their own; nvidia-smi --query-gpu=timestamp,index,uuid,... "
                        "gives each GPU a name of its own",
                        rows_.device, why),
            true};
  }

  double value(std::size_t column, std::size_t row) const {
    return rows_.columns[column].values[row];
  }

  bool is_repeated(std::size_t a, std::size_t b) const {
    if (rows_.stamps[a] != rows_.stamps[b]) return false;
    for (const auto& column : rows_.columns) {
      const double x = column.values[a], y = column.values[b];
      if (x != y && !(std::isnan(x) && std::isnan(y))) return false;
    }
    return true;
  }

  // Pieces of the file that lie over earlier ones in time.
  void note_overlaps() {
    const auto pieces = pieces_of(rows_.stamps);
    std::map<Duration, Duration> covered;  // from -> to
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const Duration from = rows_.stamps[pieces[p].first], to = rows_.stamps[pieces[p].last];
      Duration common{};
      auto at = covered.upper_bound(to);
      Duration low = from, high = to;
      while (at != covered.begin()) {
        --at;
        if (at->second < from) break;
        common += std::min(at->second, to) - std::max(at->first, from);
        low = std::min(low, at->first);
        high = std::max(high, at->second);
        at = covered.erase(at);
      }
      covered.emplace(low, high);
      if (p == 0 || common <= Duration{}) continue;
      const Duration before = rows_.stamps[pieces[p].first - 1];
      const bool at_header = rows_.begins[pieces[p].first];
      const Duration least = std::min(to - from, before - rows_.stamps[pieces[p - 1].first]);
      // A clock that was set goes back once, by little.
      const bool was_set = !at_header && pieces.size() <= 3 && common <= least / 10;
      if (was_set) continue;
      overlapping_.push_back(pieces[p]);
      overlapping_rows_ += pieces[p].last - pieces[p].first + 1;
    }
  }

  // Of a counter, whatever the stamps: it falls and reaches what it had before, more than once.
  std::optional<Contradiction> of_counters() const {
    for (const auto& column : rows_.columns) {
      if (!column.counts) continue;
      std::size_t falls = 0, steps = 0;
      double last = std::numeric_limits<double>::quiet_NaN();
      double most = -1;
      bool below = false;
      for (const std::size_t i : order_) {
        const double v = column.values[i];
        if (std::isnan(v)) continue;
        if (!std::isnan(last)) ++steps;
        if (v < last) below = true;
        if (below && v >= most) {
          ++falls;
          below = false;
        }
        most = std::max(most, v);
        last = v;
      }
      if (falls >= 2 && falls * 10 >= steps) {
        return certain(fmt::format("its energy counter {} falls and rises again {} times",
                                   column.name, falls));
      }
    }
    return std::nullopt;
  }

  // The same time with two powers; more cannot be seen in a few rows.
  std::optional<Contradiction> of_few_rows() const {
    if (rows_.stamps.empty() || rows_.columns.empty()) return std::nullopt;
    std::size_t pairs = 0, differ = 0;
    for (std::size_t i = 1; i < order_.size(); ++i) {
      if (rows_.stamps[order_[i]] != rows_.stamps[order_[i - 1]]) continue;
      ++pairs;
      const double a = value(0, order_[i - 1]), b = value(0, order_[i]);
      differ += std::abs(a - b) > 0.05 * std::max(std::abs(a), std::abs(b)) ? 1 : 0;
    }
    if (differ == 0 || 2 * differ < pairs || 3 * pairs < order_.size()) return std::nullopt;
    return certain("two rows have one time and different powers");
  }

  std::vector<double> distances() const {
    std::vector<double> all;
    for (std::size_t i = 1; i < order_.size(); ++i) {
      all.push_back(seconds(rows_.stamps[order_[i]] - rows_.stamps[order_[i - 1]]));
    }
    return all;
  }

  // The greatest unit of which all stamps are whole numbers.
  double resolution() const {
    for (const Duration unit :
         {Duration{std::chrono::seconds{1}}, Duration{std::chrono::milliseconds{100}},
          Duration{std::chrono::milliseconds{10}}, Duration{std::chrono::milliseconds{1}}}) {
      const bool whole =
          std::ranges::all_of(rows_.stamps, [&](Duration at) { return at % unit == Duration{}; });
      if (whole) return seconds(unit);
    }
    return 1e-6;
  }

  // The mean distance from the mean, without what is far longer: pauses.
  static double irregularity(std::vector<double> values) {
    const double longest = 20 * mean(values);
    std::erase_if(values, [&](double v) { return v > longest; });
    const double middle = mean(values);
    for (double& v : values) v = std::abs(v - middle);
    return mean(values);
  }

  // Rows with one stamp, which most rows have.
  std::size_t rows_a_stamp() const {
    std::map<std::size_t, std::size_t> sizes;
    std::size_t size = 1;
    for (std::size_t i = 1; i <= order_.size(); ++i) {
      if (i < order_.size() && rows_.stamps[order_[i]] == rows_.stamps[order_[i - 1]]) {
        ++size;
        continue;
      }
      sizes[size] += size;
      size = 1;
    }
    const auto most = std::ranges::max_element(
        sizes, [](const auto& a, const auto& b) { return a.second < b.second; });
    return most->second * 3 >= order_.size() * 2 ? most->first : 1;
  }

  // How many loggers wrote, by the times: each alone is regular, all together are not. One where
  // that is not clear.
  std::size_t loggers() const {
    if (rows_.stamps.empty()) return 1;
    const double fine = resolution();
    const std::size_t at_once = rows_a_stamp();
    if (at_once > 1 && (rows_.one_row_a_second || fine < 0.5)) return at_once;
    const double irregular = irregularity(distances());
    for (std::size_t k = 2; k <= kMostSources && order_.size() >= 3 * k; ++k) {
      std::vector<double> rounds;
      for (std::size_t i = k; i < order_.size(); ++i) {
        rounds.push_back(seconds(rows_.stamps[order_[i]] - rows_.stamps[order_[i - k]]));
      }
      const double period = median_of_known(rounds);
      if (period < 20 * fine || irregular < 0.08 * period / static_cast<double>(k)) continue;
      if (irregularity(std::move(rounds)) <= 0.2 * irregular) return k;
    }
    return 1;
  }

  // Several rows in each second, by stamps in whole seconds: of one fast logger, or of several.
  std::optional<Contradiction> of_seconds() const {
    if (rows_.stamps.empty() || resolution() < 0.5 || rows_.columns.empty()) return std::nullopt;
    const std::size_t k = rows_a_stamp();
    if (k < 2 || order_.size() < 4 * k) return std::nullopt;
    const auto [near, far] = differences(k);
    constexpr std::size_t kSeldom = 4;  // loggers of a few rows a second write fractions
    if (near > 1.2 * far || (k >= kSeldom && near > far / 2)) {
      return certain(fmt::format("{} rows have each time, and are not of one sensor", k));
    }
    return std::nullopt;
  }

  struct Differences {
    double near = 0;  // of successive rows that are nearer than usual
    double far = 0;   // of rows of successive periods
  };
  Differences differences(std::size_t sources) const {
    std::vector<double> near, far;
    const double usual = rows_.stamps.empty() ? 0 : mean(distances());
    for (std::size_t i = sources; i < order_.size(); ++i) {
      const bool is_near = rows_.stamps.empty() ||
                           seconds(rows_.stamps[order_[i]] - rows_.stamps[order_[i - 1]]) <= usual;
      if (is_near) near.push_back(std::abs(value(0, order_[i]) - value(0, order_[i - 1])));
      far.push_back(std::abs(value(0, order_[i]) - value(0, order_[i - sources])));
    }
    return {median_of_known(std::move(near)), median_of_known(std::move(far))};
  }

  // Whether neighbours agree better than rows of successive periods do, as values of one sensor.
  bool is_one_sensor(std::size_t sources) const {
    std::size_t same = 0, pairs = 0;
    for (std::size_t i = sources; i < order_.size(); ++i) {
      bool equal = true;
      for (std::size_t c = 0; c < rows_.columns.size(); ++c) {
        const double a = value(c, order_[i]), b = value(c, order_[i - 1]);
        equal = equal && (a == b || std::isnan(a) || std::isnan(b));
      }
      same += equal ? 1 : 0;
      ++pairs;
    }
    if (same * 10 >= pairs * 9) return !rows_.one_row_a_second;
    if (rows_.columns.empty()) return true;
    const auto [near, far] = differences(sources);
    return far > 0 && near <= far / 2;
  }

  bool is_constant() const {
    return std::ranges::all_of(rows_.columns, [&](const auto& column) {
      return std::ranges::all_of(
          order_, [&](std::size_t i) { return column.values[i] == column.values[order_.front()]; });
    });
  }

  struct Levels {
    std::size_t count = 0;
    double low = 0, high = 0;
  };

  // Whether the column's values repeat with `k` rows, and differ within each k.
  std::optional<Levels> levels_of(const DeviceRows::Column& column, std::size_t k) const {
    std::vector<double> values;
    for (const std::size_t i : order_) {
      if (!std::isnan(column.values[i])) values.push_back(column.values[i]);
    }
    if (values.size() < std::max(4 * k, std::size_t{8})) return std::nullopt;
    std::vector<double> changes, spreads, lows, highs, steps;
    std::vector<double> before;
    for (std::size_t b = 0; b + k <= values.size(); b += k) {
      std::vector<double> block(values.begin() + static_cast<std::ptrdiff_t>(b),
                                values.begin() + static_cast<std::ptrdiff_t>(b + k));
      std::ranges::sort(block);
      double change = 0;
      for (std::size_t j = 0; j < k && !before.empty(); ++j) {
        change = std::max(change, std::abs(block[j] - before[j]));
      }
      if (!before.empty()) changes.push_back(change);
      spreads.push_back(block.back() - block.front());
      lows.push_back(block.front());
      highs.push_back(block.back());
      before = std::move(block);
    }
    const double spread = median_of_known(spreads), change = median_of_known(changes);
    if (spread <= 4 * change || spread <= 0.005 * std::abs(median_of_known(highs)))
      return std::nullopt;
    const double least = std::max(spread / (2 * static_cast<double>(k - 1)), 2 * change);
    std::size_t jumps = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      jumps += std::abs(values[i] - values[i - 1]) >= least ? 1 : 0;
    }
    if (jumps * 10 < (values.size() - 1) * 7) return std::nullopt;
    return Levels{k, median_of_known(lows), median_of_known(highs)};
  }

  std::optional<Contradiction> of_levels() const {
    std::optional<Contradiction> unclear;
    const std::size_t at_once = rows_.stamps.empty() ? 1 : rows_a_stamp();
    // Two boards would have two temperatures, too.
    const bool is_steady =
        std::ranges::any_of(rows_.columns, [](const DeviceRows::Column& c) { return c.slow; });
    const bool says_nothing_else = rows_.stamps.empty() && !is_steady;
    for (std::size_t k = 2; k <= kMostSources; ++k) {
      for (const auto& column : rows_.columns) {
        if (column.counts) continue;
        const auto levels = levels_of(column, k);
        if (!levels) continue;
        const std::string why = fmt::format("{} alternates between {:g} and {:g} from row to row",
                                            column.name, levels->low, levels->high);
        if (column.slow || says_nothing_else || at_once == k) return certain(why);
        if (unclear) continue;
        unclear = Contradiction{
            fmt::format("{}: {}: two GPUs under one name, or a load that changes as fast as the "
                        "rows come; if they are two GPUs, their energy is counted once",
                        rows_.device, why),
            false};
      }
    }
    return unclear;
  }

  const DeviceRows& rows_;
  std::vector<std::size_t> order_;
  std::vector<Piece> overlapping_;
  std::size_t overlapping_rows_ = 0;
  std::size_t repeated_ = 0;
};

}  // namespace

std::optional<Contradiction> find_contradiction(const DeviceRows& rows) {
  return Check(rows).find();
}

Result<std::vector<std::size_t>> rows_of_one_value(const DeviceRows& rows, const std::string& path,
                                                   RecordingBuilder& builder) {
  const Check check(rows);
  const auto found = check.find();
  if (found && found->is_certain) {
    return fail(Errc::kCorrupt, fmt::format("{}: {}", path, found->text));
  }
  if (found) builder.warn(found->text);
  return check.order();
}

}  // namespace jouleprof::importers
