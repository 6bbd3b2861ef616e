#include "analysis/repeated/repeated_windows.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/kernels/regression/power_regression.h"
#include "analysis/kernels/regression/power_rows.h"
#include "analysis/kernels/regression/power_timing.h"
#include "analysis/kernels/regression/row_errors.h"
#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/sensors/observed_sensor.h"
#include "analysis/timeline/timeline.h"
#include "base/median.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFewest = 20;  // windows of a name
constexpr Duration kFineCounter = 2ms;
// Ends of the intervals after a window and before the next one, in seconds: fine next to windows,
// up to a counter's period.
constexpr std::array kAround{0.004, 0.010, 0.018, 0.030, 0.060, 0.120};
constexpr double kMargin = 1;          // seconds before the first window and after the last
constexpr double kShortest = 1e-7;     // seconds: a shorter stay is not worth a bin
constexpr std::size_t kMostSets = 38;  // of names; others share one more state
constexpr std::uint32_t kOutside = 0;
constexpr std::uint32_t kAfter =
    0;  // variants of it: so many after a window's end, then before a begin
constexpr std::uint32_t kBefore = kAfter + kAround.size();
// The same within a stay: from its begin, and to its end.
constexpr std::array kWithin{0.002, 0.005, 0.008, 0.012, 0.016, 0.020, 0.028, 0.040, 0.060, 0.120};
constexpr std::uint32_t kShaped = 8;  // states; the rarer ones have one power
constexpr std::uint32_t kOfStates = kBefore + kAround.size();

// A stay: which names were open, as a sorted list of numbers.
struct Stay {
  double begin = 0;
  double end = 0;
  std::uint32_t set = 0;  // index into the sets; 0: none was open
};

class Stays {
 public:
  Stays(std::span<const model::Window> windows, const std::unordered_set<std::string_view>& names,
        const TimeBase& time) {
    struct Edge {
      double at;
      std::uint32_t name;
      int change;
    };
    std::vector<Edge> edges;
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (const auto& w : windows) {
      if (!names.contains(w.name) || w.end <= w.begin) continue;
      const auto number =
          numbers.try_emplace(w.name, static_cast<std::uint32_t>(numbers.size())).first->second;
      edges.push_back({time.seconds_of(w.begin), number, 1});
      edges.push_back({time.seconds_of(w.end), number, -1});
    }
    std::ranges::sort(edges, {}, &Edge::at);
    std::map<std::uint32_t, int> open;
    double since = edges.empty() ? 0 : edges.front().at;
    for (const Edge& edge : edges) {
      if (edge.at > since + kShortest) {
        add(since, edge.at, set_of(open));
        since = edge.at;
      }
      int& count = open[edge.name];
      count += edge.change;
      if (count == 0) open.erase(edge.name);
    }
  }

  const std::vector<Stay>& all() const { return stays_; }
  std::size_t sets() const { return sets_.size() + 1; }

 private:
  // By number; 0 is the empty set.
  std::uint32_t set_of(const std::map<std::uint32_t, int>& open) {
    if (open.empty()) return 0;
    std::vector<std::uint32_t> key;
    for (const auto& [name, count] : open) key.push_back(name);
    return sets_.try_emplace(std::move(key), static_cast<std::uint32_t>(sets_.size() + 1))
        .first->second;
  }
  void add(double begin, double end, std::uint32_t set) {
    if (!stays_.empty() && stays_.back().set == set) {
      stays_.back().end = end;
    } else {
      stays_.push_back({begin, end, set});
    }
  }

  std::map<std::vector<std::uint32_t>, std::uint32_t> sets_;
  std::vector<Stay> stays_;
};

class Builder {
 public:
  explicit Builder(TimeBase time) { out_.table.time = time; }

  WindowStates build(const Stays& stays) {
    number_states(stays);
    const double first = out_.first = stays.all().front().begin;
    const double last = out_.last = stays.all().back().end;
    add(first - kMargin, first - kAround.back(), kOutside);
    add_before(first - kAround.back(), first);
    for (const Stay& stay : stays.all()) {
      stay.set == 0 ? add_gap(stay.begin, stay.end)
                    : add_stay(stay.begin, stay.end, state_[stay.set]);
    }
    add_after(last, last + kAround.back());
    add(last + kAround.back(), last + kMargin, kOutside);
    auto& table = out_.table;
    table.begin = table.bins.front().begin;
    table.end = table.bins.back().begin + table.bins.back().width;
    return std::move(out_);
  }

 private:
  // The sets with most time have a state each.
  void number_states(const Stays& stays) {
    std::vector<double> time(stays.sets(), 0.0);
    for (const Stay& stay : stays.all()) time[stay.set] += stay.end - stay.begin;
    std::vector<std::uint32_t> order(stays.sets() - 1);
    std::iota(order.begin(), order.end(), 1U);
    std::ranges::stable_sort(order,
                             [&](std::uint32_t a, std::uint32_t b) { return time[a] > time[b]; });
    state_.assign(stays.sets(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      state_[order[i]] = static_cast<std::uint32_t>(1 + std::min(i, kMostSets));
    }
    out_.table.classes.resize(1 + std::min(order.size(), kMostSets + 1));
    out_.table.variants.resize(kOfStates, {kOutside, 0});
    const auto states = static_cast<std::uint32_t>(out_.table.classes.size() - 1);
    for (std::uint32_t k = 1; k <= std::min(states, kShaped); ++k) {
      out_.table.variants.insert(out_.table.variants.end(), 2 * kWithin.size(), {k, 0});
    }
  }

  void add_stay(double begin, double end, std::uint32_t state) {
    if (state > kShaped) return add(begin, end, state);
    constexpr auto kParts = static_cast<std::uint32_t>(kWithin.size());
    const std::uint32_t first = kOfStates + 2 * kParts * (state - 1);
    std::array<double, kParts + 1> ends{};  // from either end
    for (std::uint32_t i = 0; i < kParts; ++i) {
      ends[i + 1] = std::min(kWithin[i], (end - begin) / 2);
      add(begin + ends[i], begin + ends[i + 1], state, first + i);
    }
    add(begin + ends.back(), end - ends.back(), state);
    for (std::uint32_t i = kParts; i-- > 0;) {
      add(end - ends[i + 1], end - ends[i], state, first + kParts + i);
    }
  }

  void add_gap(double begin, double end) {
    const double half = std::min(kAround.back(), (end - begin) / 2);
    add_after(begin, begin + half);
    add(begin + half, end - half, kOutside);
    add_before(end - half, end);
  }
  void add_after(double begin, double end) {
    double from = begin;
    for (std::uint32_t i = 0; i < kAround.size(); ++i) {
      const double to = std::min(begin + kAround[i], end);
      add(from, to, kOutside, kAfter + i);
      from = to;
    }
  }
  void add_before(double begin, double end) {
    double from = begin;
    for (auto i = static_cast<std::uint32_t>(kAround.size()); i-- > 0;) {
      const double to = i > 0 ? std::max(end - kAround[i - 1], begin) : end;
      add(from, to, kOutside, kBefore + i);
      from = to;
    }
  }

  void add(double begin, double end, std::uint32_t state, std::uint32_t variant = model::kNone) {
    if (end - begin <= kShortest) return;
    auto& table = out_.table;
    const double width = end - begin;
    table.bins.push_back({begin, width, table.entries.size()});
    table.entries.push_back({state, static_cast<float>(width)});
    if (variant != model::kNone) {
      const auto number = static_cast<std::uint32_t>(table.classes.size()) + variant;
      table.entries.push_back({number, static_cast<float>(width)});
      table.variants[variant].busy += width;
    }
    table.classes[state].busy += width;
    table.classes[state].whole_busy += width;
    table.busy += width;
    table.whole_busy += width;
  }

  WindowStates out_;
  std::vector<std::uint32_t> state_;  // by set
};

constexpr int kDriftRounds = 3;
constexpr std::size_t kMostRows = 90'000;  // observations: half an hour

}  // namespace

std::unordered_set<std::string_view> short_window_names(std::span<const model::Window> windows) {
  struct Sum {
    Duration length{};
    std::size_t count = 0;
  };
  std::unordered_map<std::string_view, Sum> sums;
  for (const auto& w : windows) {
    Sum& sum = sums[w.name];
    sum.length += w.end - w.begin;
    ++sum.count;
  }
  std::unordered_set<std::string_view> names;
  for (const auto& [name, sum] : sums) {
    const bool is_short = sum.length < kLongestRepeated * static_cast<std::int64_t>(sum.count);
    if (is_short && sum.count >= kFewest && sum.length > Duration{}) names.insert(name);
  }
  return names;
}

void WindowStates::add_time(double begin, double end, std::vector<double>& by_entry) const {
  const auto& bins = table.bins;
  auto at = std::ranges::upper_bound(bins, begin, {}, &ActivityTable::Bin::begin);
  if (at != bins.begin()) --at;
  for (; at != bins.end() && at->begin < end; ++at) {
    const double length = std::min(end, at->begin + at->width) - std::max(begin, at->begin);
    if (length <= 0) continue;
    const auto bin = static_cast<std::size_t>(at - bins.begin());
    for (std::size_t i = at->first; i < table.end_of(bin); ++i) {
      by_entry[table.entries[i].kernel_class] += length;
    }
  }
}

WindowStates window_states(std::span<const model::Window> windows,
                           const std::unordered_set<std::string_view>& names) {
  HostTime first = HostTime::max();
  for (const auto& w : windows) {
    if (names.contains(w.name)) first = std::min(first, w.begin);
  }
  if (first == HostTime::max()) return {};
  const TimeBase time{first};
  const Stays stays(windows, names, time);
  if (stays.all().empty()) return {};
  return Builder(time).build(stays);
}

// The power of each state of short windows, by regression.
struct StatePowers {
  PowerSolution solution;  // `watts`: a base, then what each entry of the states adds to it
  // What is added to these watts if power next to windows is that elsewhere.
  Eigen::VectorXd near_shift;
  // What is added to them already because samples' times jitter.
  Eigen::VectorXd attenuation;
  // What is added to them if all reads of a counter are later by its renewal's standard deviation.
  Eigen::VectorXd late_shift;
  // By so much what runs next to a window's ends may be counted to it, or it to that: power within
  // each of them differs in times that an observation does not show.
  double unseen_seconds = 0;
};

// How the power of all states changes over a recording, as with temperature and clocks.
// Observed over modelled energy of each second, interpolated between the seconds' middles.
class PowerDrift {
 public:
  PowerDrift() = default;  // none
  // `watts`: of state_powers().
  PowerDrift(const WindowStates& states, const Eigen::VectorXd& watts, EnergyTimeline& timeline);

  // 1: no drift. `t`: in seconds of the states' time.
  double ratio(double t) const;
  // The standard deviation of the ratios.
  double variation() const;

 private:
  double begin_ = 0;
  std::vector<double> ratios_;
};

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::array kNearWindows{0.03, 0.1, 0.3, 1.0, 3.0};  // of the mean power
constexpr std::array kWithinWindows{0.2, 0.4, 0.8};           // as well
constexpr double kNextTo = 0.002;                             // seconds next to a window
constexpr double kNoneNear = 0.001;
constexpr double kJitter = 0.3e-3;    // seconds: of the stamps of a driver's buffer, H100 and H200
constexpr int kTerms = 8;             // of a series
constexpr double kPriorWatts = 1000;  // wide: sensors show little of a short window's power
constexpr double kMostWatts = 20e3;   // no board draws more
constexpr std::size_t kFewestRows = 100;

double mean_watts(const PowerRows& rows) {
  double joules = 0;
  double length = 0;
  for (const auto& row : rows.rows) {
    joules += row.watts * (row.end - row.begin);
    length += row.end - row.begin;
  }
  return joules / length;
}

// Standard deviations of power: next to windows from that elsewhere, and within a window from its
// mean.
struct Spread {
  double near = 0;
  double within = 0;
};

std::vector<PowerPrior> priors_of(const PowerRows& rows, const ActivityTable& table,
                                  const Spread& spread) {
  double lowest = 1e300;
  for (const auto& row : rows.rows) lowest = std::min(lowest, row.watts);
  const double base = 0.5 * lowest;  // each state has its own power above it
  const double mean = mean_watts(rows);
  std::vector<PowerPrior> priors{{base, 0, base, base}};
  for (std::size_t k = 0; k < table.classes.size(); ++k) {
    priors.push_back({mean - base, kPriorWatts, -base, kMostWatts});
  }
  for (std::size_t v = 0; v < table.variants.size(); ++v) {
    const double sigma = v < kOfStates ? spread.near : spread.within;
    priors.push_back({0, sigma, -kMostWatts, kMostWatts});
  }
  priors.push_back({0, 1e-3, 0, 0});  // idle between launches: bins are full
  return priors;
}

// The logarithm of the evidence of Gaussian priors, up to a constant.
class Evidence {
 public:
  // `solution`: gives the variances of rows.
  Evidence(const PowerRows& rows, const PowerSolution& solution) {
    const auto n = static_cast<Index>(rows.columns + 1);
    information_ = MatrixXd::Zero(n, n);
    right_ = VectorXd::Zero(n);
    VectorXd factors(n);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      factors.setZero();
      factors[0] = 1;
      for (const auto& term : rows.of(i)) factors[1 + term.column] = term.share;
      const double sigma = rows.rows[i].counter ? solution.counter_sigma : solution.sample_sigma;
      const double weight = 1 / (sigma * sigma);
      information_.selfadjointView<Eigen::Lower>().rankUpdate(factors, weight);
      right_ += weight * rows.rows[i].watts * factors;
    }
    information_ = MatrixXd(information_.selfadjointView<Eigen::Lower>());
  }

  double of(const std::vector<PowerPrior>& priors) const {
    MatrixXd posterior = information_;
    VectorXd right = right_;
    double out = 0;
    for (std::size_t k = 0; k < priors.size(); ++k) {
      const double sigma = std::max(priors[k].sigma, 1e-3);
      const double weight = 1 / (sigma * sigma);
      const auto at = static_cast<Index>(k);
      posterior(at, at) += weight;
      right[at] += weight * priors[k].mean;
      out -= std::log(sigma) + 0.5 * weight * priors[k].mean * priors[k].mean;
    }
    const Eigen::LDLT<MatrixXd> factor(posterior);
    out -= 0.5 * factor.vectorD().array().log().sum();
    return out + 0.5 * right.dot(factor.solve(right));
  }

 private:
  MatrixXd information_;
  VectorXd right_;
};

// The one with the greatest Bayesian evidence (MacKay 1992).
Spread best_spread(const PowerRows& rows, const ActivityTable& table) {
  const double mean = mean_watts(rows);
  Spread best{kNearWindows.back() * mean, kWithinWindows.back() * mean};
  const Evidence evidence(rows, solve_power(rows, priors_of(rows, table, best)));
  double most = -std::numeric_limits<double>::infinity();
  for (const double near : kNearWindows) {
    for (const double within : kWithinWindows) {
      const Spread spread{near * mean, within * mean};
      const double found = evidence.of(priors_of(rows, table, spread));
      if (found <= most) continue;
      most = found;
      best = spread;
    }
  }
  return best;
}

// Adds sign x (a - b) to `to`, in order of the columns.
void add_difference(std::span<const PowerRows::Term> a, std::span<const PowerRows::Term> b,
                    float sign, std::vector<PowerRows::Term>& to) {
  while (!a.empty() || !b.empty()) {
    const bool of_a = !a.empty() && (b.empty() || a.front().column <= b.front().column);
    const bool of_b = !b.empty() && (a.empty() || b.front().column <= a.front().column);
    const auto column = of_a ? a.front().column : b.front().column;
    to.push_back({column, sign * ((of_a ? a.front().share : 0) - (of_b ? b.front().share : 0))});
    if (of_a) a = a.subspan(1);
    if (of_b) b = b.subspan(1);
  }
}

// What a jitter of the samples' times takes from the differences of the watts: the times of states
// that a row sees err, so that a regression finds the states too alike (Fuller 1987, section 1.1).
// The error's part of the normal equations is taken back as a series. `later`: the rows if all
// observations were later by the jitter's standard deviation.
VectorXd attenuation(const PowerSolution& solution, const PowerRows& rows, const PowerRows& later) {
  PowerRows error;
  error.columns = rows.columns;
  std::size_t k = 0;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    PowerRow row = rows.rows[i];
    row.watts = 0;
    row.first = error.terms.size();
    error.rows.push_back(row);
    while (k < later.rows.size() && later.rows[k].end < row.end) ++k;
    if (row.counter || k == later.rows.size() || later.rows[k].end != row.end) continue;
    // Each sample errs by itself, so that neighbours are of random signs.
    const float sign = std::popcount(i * 0x9E3779B97F4A7C15U) % 2 == 0 ? 1.0F : -1.0F;
    add_difference(later.of(k), rows.of(i), sign, error.terms);
  }
  RowErrors errors(error);
  errors.set_noise(solution.noise);
  errors.set_watts(VectorXd::Zero(solution.watts.size()));
  MatrixXd squares = MatrixXd::Zero(solution.watts.size(), solution.watts.size());
  // Idle's factor, the first, has no error.
  errors.whitened([](std::size_t) { return 0.0; },
                  [&](std::size_t, SparseRow row, double, double weight) {
                    add_outer_product(row.subspan(1), weight, squares);
                  });
  VectorXd out = VectorXd::Zero(solution.watts.size());
  VectorXd term = solution.watts;
  for (int i = 0; i < kTerms; ++i) {
    term = solution.covariance * (squares.selfadjointView<Eigen::Lower>() * term);
    out += term;
  }
  return out;
}

// `time_constant`: of the sensors; it is fitted near that value, unless power drifts by 2 % and
// more
// (`drift`, relative standard deviation). Absent with fewer than 100 observations.
std::optional<StatePowers> state_powers(const WindowStates& states,
                                        std::span<const ObservedPower> observed,
                                        double time_constant, double drift) {
  std::vector<std::uint32_t> column_of(states.entries());
  std::iota(column_of.begin(), column_of.end(), 0U);
  const std::size_t columns = column_of.size() + 1;
  // Power that rises within windows passes for a longer time constant.
  SensorTiming timing = fit_time_constant(states.table, observed, time_constant, drift);
  timing.time_constant_sigma =
      std::max(timing.time_constant_sigma, std::abs(timing.time_constant - time_constant));
  const PowerRows rows = power_rows(states.table, column_of, columns, observed, timing);
  if (rows.rows.size() < kFewestRows) return std::nullopt;
  SensorTiming other = timing;
  other.time_constant += other.time_constant_sigma;
  const PowerRows others = power_rows(states.table, column_of, columns, observed, other);
  const double none = kNoneNear * mean_watts(rows);
  const Spread spread = best_spread(rows, states.table);
  const auto none_near = solve_power(rows, priors_of(rows, states.table, {none, spread.within}));
  const auto priors = priors_of(rows, states.table, spread);
  StatePowers out{solve_power(rows, priors, &others), {}, {}, {}, 0};
  out.near_shift = none_near.watts - out.solution.watts;
  other = timing;
  other.counter_late += kJitter;
  other.samples_late += kJitter;
  const PowerRows later = power_rows(states.table, column_of, columns, observed, other);
  out.attenuation = out.late_shift = VectorXd::Zero(out.solution.watts.size());
  const bool counted = std::ranges::all_of(rows.rows, &PowerRow::counter);
  if (counted) {
    // Samples have a response of which the time constant is known; of a counter alone, whose reads
    // may keep step with its renewals, nothing else says how late they are.
    out.late_shift = solve_power(later, priors).watts - out.solution.watts;
  } else {
    out.attenuation = attenuation(out.solution, rows, later);
    out.solution.watts += out.attenuation;
  }
  std::vector<double> lengths;
  for (const auto& row : rows.rows) {
    if (counted || !row.counter) lengths.push_back(row.end - row.begin);
  }
  out.unseen_seconds = kErrors.repeated_ends * median(std::move(lengths));
  return out;
}

// The joules of times in each entry, with the watts of state_powers().
double modelled_joules(const WindowStates& states, const std::vector<double>& times,
                       const VectorXd& watts) {
  double joules = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const double own = watts[static_cast<Index>(k) + 1];
    joules += times[k] * (k < states.table.classes.size() ? watts[0] + own : own);
  }
  return joules;
}

constexpr double kBlock = 1;  // seconds, of PowerDrift

}  // namespace

PowerDrift::PowerDrift(const WindowStates& states, const Eigen::VectorXd& watts,
                       EnergyTimeline& timeline)
    : begin_(states.first) {
  const auto& table = states.table;
  for (double t = states.first; t < states.last; t += kBlock) {
    const double end = std::min(t + kBlock, states.last);
    const auto energy = timeline.energy(table.time.host_of(t), table.time.host_of(end));
    std::vector<double> times(states.entries(), 0.0);
    states.add_time(t, end, times);
    const double modelled = modelled_joules(states, times, watts);
    if (end < t + kBlock / 2 && !ratios_.empty()) break;
    ratios_.push_back(energy && modelled > 0 ? energy->energy.joules() / modelled : 1.0);
  }
}

double PowerDrift::ratio(double t) const {
  if (ratios_.empty()) return 1;
  const double at = (t - begin_) / kBlock - 0.5;
  const double left = std::clamp(std::floor(at), 0.0, static_cast<double>(ratios_.size() - 1));
  const double part = std::clamp(at - left, 0.0, 1.0);
  const auto i = static_cast<std::size_t>(left);
  return (1 - part) * ratios_[i] + part * ratios_[std::min(i + 1, ratios_.size() - 1)];
}

double PowerDrift::variation() const {
  double mean = 0;
  double squares = 0;
  for (const double ratio : ratios_) {
    mean += ratio / static_cast<double>(ratios_.size());
    squares += ratio * ratio / static_cast<double>(ratios_.size());
  }
  return std::sqrt(std::max(squares - mean * mean, 0.0));
}

struct RepeatedWindows::State {
  std::unordered_set<std::string_view> names;
  WindowStates states;
  StatePowers powers;
  PowerDrift drift;
  model::ScaleError scale;
  std::string sensor;
  model::Provenance provenance{};

  // Each round removes the drift that the last one shows.
  bool solve(EnergyTimeline& timeline, const std::vector<ObservedPower>& observed) {
    for (int round = 0; round < kDriftRounds; ++round) {
      auto steady = observed;
      for (ObservedPower& s : steady) s.watts /= drift.ratio((s.begin + s.end) / 2);
      auto found = state_powers(states, steady, timeline.time_constant(), drift.variation());
      if (!found) return false;
      powers = std::move(*found);
      drift = PowerDrift(states, powers.solution.watts, timeline);
      // Less is what windows differ by: its rounds would take the rows' noise for drift.
      if (drift.variation() < kErrors.repeated_drift) {
        drift = {};
        return true;
      }
    }
    return true;
  }
};

RepeatedWindows::RepeatedWindows(std::unique_ptr<State> state) : state_(std::move(state)) {}
RepeatedWindows::RepeatedWindows(RepeatedWindows&&) noexcept = default;
RepeatedWindows& RepeatedWindows::operator=(RepeatedWindows&&) noexcept = default;
RepeatedWindows::~RepeatedWindows() = default;

bool RepeatedWindows::is_possible(const TimelineSensors& sensors) {
  if (sensors.power) return sensors.power->kind == model::SensorKind::kPowerRing;
  return sensors.counter && sensors.counter->traits.refresh &&
         *sensors.counter->traits.refresh <= kFineCounter;
}

std::optional<RepeatedWindows> RepeatedWindows::fit(std::span<const model::Window> windows,
                                                    EnergyTimeline& timeline,
                                                    const std::optional<RecordedSpan>& within) {
  if (!is_possible(timeline.sensors())) return std::nullopt;
  auto state = std::make_unique<State>();
  state->names = short_window_names(windows);
  if (state->names.empty()) return std::nullopt;
  state->states = window_states(windows, state->names);
  const ActivityTable& table = state->states.table;
  if (table.empty()) return std::nullopt;
  HostTime from = table.time.host_of(table.begin);
  HostTime to = table.time.host_of(table.end);
  if (within) {
    from = std::max(from, within->begin);
    to = std::min(to, within->end);
  }
  auto observed = timeline.observations(from, to, table.time);
  std::erase_if(observed,
                [](const ObservedPower& s) { return s.watts < 0 || s.watts > kMostWatts; });
  if (observed.size() > kMostRows || !state->solve(timeline, observed)) return std::nullopt;
  state->scale = timeline.sensor_scale();
  state->sensor = timeline.sensor_name();
  state->provenance = timeline.provenance();
  return RepeatedWindows(std::move(state));
}

std::optional<model::Measurement> RepeatedWindows::sum(
    std::span<const model::Window* const> windows) const {
  const State& s = *state_;
  if (windows.empty() || !s.names.contains(windows.front()->name)) return std::nullopt;
  const PowerSolution& solution = s.powers.solution;
  const ActivityTable& table = s.states.table;
  VectorXd factor = VectorXd::Zero(solution.watts.size());
  std::vector<double> times(s.states.entries());
  const auto find_times = [&](double begin, double end) {
    std::ranges::fill(times, 0.0);
    s.states.add_time(begin, end, times);
  };
  const auto watts_of_others = [&](double begin, double end) {
    find_times(begin, end);
    times[kOutside] = 0;
    std::fill_n(times.begin() + static_cast<std::ptrdiff_t>(table.classes.size()), kOfStates, 0.0);
    return modelled_joules(s.states, times, solution.watts) / (end - begin);
  };
  double neighbours = 0;  // watts next to the ends
  for (const model::Window* w : windows) {
    const double begin = table.time.seconds_of(w->begin);
    const double end = table.time.seconds_of(w->end);
    find_times(begin, end);
    const double ratio = s.drift.ratio((begin + end) / 2);
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (k < table.classes.size()) factor[0] += ratio * times[k];
      factor[static_cast<Index>(k) + 1] += ratio * times[k];
    }
    neighbours += watts_of_others(begin - kNextTo, begin) + watts_of_others(end, end + kNextTo);
  }
  const double joules = factor.dot(solution.watts);
  const double ends = s.powers.unseen_seconds * neighbours;
  const double model = std::hypot(
      kErrors.repeated_model * joules, factor.dot(s.powers.near_shift),
      std::hypot(0.5 * factor.dot(s.powers.attenuation), factor.dot(s.powers.late_shift)));
  const double sigma = std::hypot(std::sqrt(solution.variance(factor)),
                                  factor.dot(solution.alternative_shift), std::hypot(model, ends));
  if (joules <= 0 || kErrors.normal95 * sigma > kErrors.widest_repeated * joules)
    return std::nullopt;
  model::Measurement m;
  m.energy = Energy::joules(joules);
  m.repeatability = Energy::joules(kErrors.normal95 * sigma);
  m.error = Energy::joules(std::hypot(kErrors.normal95 * sigma, s.scale.gain_half() * joules));
  m.provenance = s.provenance;
  m.sensor = s.sensor;
  m.shift = s.scale.gain_shift();
  m.method = "regression on the windows' edges";
  return m;
}

}  // namespace jouleprof::analysis
