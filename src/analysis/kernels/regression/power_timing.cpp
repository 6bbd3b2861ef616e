#include "analysis/kernels/regression/power_timing.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/kernels/regression/row_errors.h"
#include "analysis/timeline/sensors/error_model.h"
#include "base/median.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kMostColumns = 40;
constexpr std::size_t kFewestRows = 100;
constexpr double kLongest = 120;  // seconds of the recording
constexpr double kClear = 20;     // likelihood ratio statistic: significant

// What a ridge regression (Hoerl and Kennard 1970) needs of some rows.
struct Moments {
  MatrixXd normal;
  VectorXd right;
  double squares = 0;
  double count = 0;

  Moments() = default;
  // Powers count from `base` watts.
  Moments(const PowerRows& rows, double base) {
    const auto n = static_cast<Index>(rows.columns + 1);
    normal = MatrixXd::Zero(n, n);
    right = VectorXd::Zero(n);
    count = static_cast<double>(rows.rows.size());
    std::vector<Factor> row;
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      row.assign(1, {0, 1.0});
      for (const auto& term : rows.of(i)) {
        row.push_back({1 + static_cast<Index>(term.column), term.share});
      }
      const double watts = rows.rows[i].watts - base;
      add_outer_product(row, 1, normal);
      add_row(row, watts, right);
      squares += watts * watts;
    }
    normal = MatrixXd(normal.selfadjointView<Eigen::Lower>());
  }
  bool any() const { return count > 0; }
  // The mean squared residual.
  double left(const VectorXd& watts) const {
    const double sum = squares - 2 * watts.dot(right) + watts.dot(normal * watts);
    return std::max(sum / count, 1e-12);
  }
};

VectorXd ridge(const MatrixXd& normal, const VectorXd& right, double variance) {
  MatrixXd sum = normal;
  sum.diagonal().array() += variance / (kErrors.any_watts * kErrors.any_watts);
  return sum.ldlt().solve(right);
}

double left_alone(const Moments& of) { return of.left(ridge(of.normal, of.right, 25)); }

constexpr double kSteady = 0.02;   // relative variation of power with the clocks
constexpr double kPoor = 0.5;      // explained by the best offset nearby: looks far, too
constexpr double kSampled = 0.02;  // seconds between such samples, where there is no buffer ...
constexpr double kSampleWindow = 4e-3;  // ... and of one

double log_prior(double offset, double sigma) {
  const double near = std::exp(-0.5 * std::pow(offset / sigma, 2)) / (sigma * 2.507);
  const double far = std::abs(offset) <= kErrors.farthest ? 1 / (2 * kErrors.farthest) : 1e-9;
  return std::log((1 - kErrors.far_share) * near + kErrors.far_share * far);
}

// A distribution over points of a line.
class Density {
 public:
  // In order; log densities need no common constant.
  Density(std::vector<double> at, const std::vector<double>& log_density) : at_(std::move(at)) {
    const double most = *std::ranges::max_element(log_density);
    double sum = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      const double left = at_[i > 0 ? i - 1 : i];
      const double right = at_[std::min(i + 1, at_.size() - 1)];
      const double width = at_.size() > 1 ? (right - left) / 2 : 1;
      sum += width * std::exp(log_density[i] - most);
      upto_.push_back(sum);
    }
    for (double& u : upto_) u /= sum;
  }
  // With a spread of at least `least`, of a normal distribution around `middle` then.
  double quantile(double u, double middle, double least) const {
    if (spread() >= least) return quantile(u);
    return middle + least * std::log(u / (1 - u)) / 1.702;
  }
  double quantile(double u) const {
    const auto next = std::ranges::lower_bound(upto_, u);
    const auto i = std::min(static_cast<std::size_t>(next - upto_.begin()), at_.size() - 1);
    if (i == 0) return at_[0];
    const double part = (u - upto_[i - 1]) / std::max(upto_[i] - upto_[i - 1], 1e-12);
    return at_[i - 1] + (at_[i] - at_[i - 1]) * part;
  }
  double spread() const { return (quantile(0.84) - quantile(0.16)) / 2; }

 private:
  std::vector<double> at_;
  std::vector<double> upto_;
};

// The rows of one recording under different timings.
class Timings {
 public:
  Timings(const ActivityTable& table, std::span<const std::uint32_t> column_of, std::size_t columns,
          std::span<const ObservedPower> observed)
      : table_(table), column_of_(column_of), columns_(columns) {
    for (const ObservedPower& s : observed) {
      const double begin = table.bins.front().begin;
      if (s.begin < begin - 1 || s.end > begin + kLongest) continue;
      (s.counter ? counter_ : samples_).push_back(s);
    }
    for (auto* kind : {&counter_, &samples_}) {
      if (kind->size() < kFewestRows) kind->clear();
      for (const ObservedPower& s : *kind) base_ += s.watts;
    }
    base_ /= std::max(static_cast<double>(counter_.size() + samples_.size()), 1.0);
  }

  void fit_offsets(SensorTiming& timing) {
    sampled_ = {};
    independent_ = {independent(counter_, timing), independent(samples_, timing)};
    timing.samples_late =
        best_offset(samples_, timing.time_constant, kErrors.samples_late, samples_found_);
    if (!samples_.empty()) sampled_ = moments(samples_, timing);
    timing.counter_late =
        best_offset(counter_, timing.time_constant, kErrors.counter_late, counter_found_);
  }

  // The maximum of the Gaussian profile likelihood (variances profiled out) by a parabola through
  // the best of a grid and its neighbours; its sigma from the curvature. Keeps the fitted offsets.
  void fit_time_constant(SensorTiming& timing, bool steady) const {
    const double known = timing.time_constant;
    timing.time_constant_sigma = kErrors.time_constant * known;
    if (!steady || (counter_.empty() && samples_.empty())) return;
    const auto deviance = [&](double time_constant) {
      SensorTiming other = timing;
      other.time_constant = time_constant;
      double sum = 0;
      for (const auto* kind : {&counter_, &samples_}) {
        if (!kind->empty()) sum += static_cast<double>(kind->size()) * std::log(left(*kind, other));
      }
      return sum;
    };
    const double step = 0.1 * known;
    std::vector<double> found;
    for (int i = -4; i <= 4; ++i) found.push_back(deviance(known + i * step));
    const auto least = static_cast<std::size_t>(
        std::min_element(found.begin() + 1, found.end() - 1) - found.begin());
    const double before = found[least - 1];
    const double after = found[least + 1];
    const double bend = before - 2 * found[least] + after;
    // A minimum at the end of the range, or a flat one, does not determine it.
    if (found[least] > std::min(before, after) || bend < kClear * 0.5) return;
    timing.time_constant =
        known + step * (static_cast<double>(least) - 4 + (before - after) / (2 * bend));
    timing.time_constant_sigma =
        std::max(kErrors.least_time_constant, 2 * step * std::sqrt(2 / bend));
  }

  // Whether the counter adds up samples, and at which phase.
  void fit_counter(SensorTiming& timing) {
    integrates_ = 1;
    if (counter_.empty()) return;
    SensorTiming adds = timing;
    adds.counter_every = kSampled;
    adds.counter_window = kSampleWindow;
    if (samples_.size() > 1) {
      std::tie(adds.counter_every, adds.counter_window) = usual_sample();
    }
    std::vector<double> lengths;
    for (const ObservedPower& s : counter_) lengths.push_back(s.end - s.begin);
    const double update = upper_median(lengths);
    if (adds.counter_every > 0.6 * update || adds.counter_window > 0.7 * adds.counter_every) return;
    const double integral = likelihood(counter_, timing);
    std::map<double, double> found;  // log likelihood by phase
    const auto weigh = [&](double phase) {
      if (found.count(phase) > 0) return;
      adds.counter_phase = phase;
      found[phase] = likelihood(counter_, adds);
    };
    constexpr int kPhases = 10;
    for (int i = 0; i < kPhases; ++i) weigh(adds.counter_every * i / kPhases);
    const auto best = [&] {
      return std::ranges::max_element(found, [](auto& a, auto& b) { return a.second < b.second; });
    };
    const double first = best()->first;
    for (const double part : {-0.25, 0.25, -0.5, 0.5}) {
      const double phase = first + part * adds.counter_every / kPhases;
      if (phase >= 0) weigh(phase);
    }
    std::vector<double> at, log_density;
    double sum = 0;
    const double top = std::max(integral, best()->second);
    for (const auto& [phase, value] : found) {
      at.push_back(phase);
      log_density.push_back(value);
    }
    for (int i = 0; i < kPhases; ++i) {
      sum += std::exp(found[adds.counter_every * i / kPhases] - top) / kPhases;
    }
    const double peak = std::exp(best()->second - top) / (2 * kPhases);
    sum = kErrors.adds_up * std::max(sum, peak);
    integrates_ = (1 - kErrors.adds_up) * std::exp(integral - top);
    integrates_ /= integrates_ + sum;
    phases_.emplace(at, log_density);
    adds_ = adds;
    adds_.counter_phase = best()->first;
    if (integrates_ >= 0.5) return;
    timing.counter_every = adds_.counter_every;
    timing.counter_window = adds_.counter_window;
    timing.counter_phase = adds_.counter_phase;
  }

  // Of independent quantiles, in orders that have nothing in common.
  std::vector<SensorTiming> others(const SensorTiming& best) const {
    const auto samples = offsets(samples_found_, kErrors.samples_late);
    const auto counter = offsets(counter_found_, kErrors.counter_late);
    const bool sure_counter =
        std::max(integrates_, 1 - integrates_) > kErrors.certain_counter &&
        (integrates_ > 0.5 || !phases_ || phases_->spread() < 2 * kErrors.certain_offset);
    const double least = is_locked(best.time_constant) ? kErrors.locked_late : 0.0;
    const auto is_sure = [&](const std::optional<Density>& d) {
      return !d || std::max(d->spread(), least) < kErrors.certain_offset;
    };
    if (is_sure(samples) && is_sure(counter) && sure_counter) return {};
    std::vector<SensorTiming> out;
    for (std::size_t i = 0; i < kTimings; ++i) {
      const auto u = [i](std::size_t step, double shift) {
        return (static_cast<double>(i * step % kTimings) + shift) / kTimings;
      };
      SensorTiming other = best;
      if (samples) other.samples_late = samples->quantile(u(1, 0.5), best.samples_late, least);
      if (counter) other.counter_late = counter->quantile(u(5, 0.5), best.counter_late, least);
      const bool integrates = u(7, 0.5) < integrates_;
      if (integrates) other.counter_every = 0;
      if (!integrates && phases_) {
        other.counter_every = adds_.counter_every;
        other.counter_window = adds_.counter_window;
        other.counter_phase = phases_->quantile(u(11, 0.5));
      }
      // A time constant is late, too: not both.
      const double way = i % 2 == 0 ? 1 : -1;
      other.time_constant = std::max(best.time_constant + way * best.time_constant_sigma, 0.0);
      out.push_back(other);
    }
    return out;
  }

 private:
  Moments moments(std::span<const ObservedPower> observed, const SensorTiming& timing) const {
    return Moments(power_rows(table_, column_of_, columns_, observed, timing), base_);
  }
  double left(std::span<const ObservedPower> observed, const SensorTiming& timing) const {
    return left_alone(moments(observed, timing));
  }

  // How many rows there are that err on their own.
  double independent(std::span<const ObservedPower> observed, const SensorTiming& timing) const {
    const double most = static_cast<double>(observed.size()) / kErrors.persistence;
    const auto mixes = mixes_of(power_rows(table_, column_of_, columns_, observed, timing));
    return mixes ? std::min(most, static_cast<double>(*mixes)) : most;
  }

  // Log, up to a constant. The counter's is of both kinds by the same watts: alone, half a period
  // of a loop would pass for an offset.
  double likelihood(std::span<const ObservedPower> observed, const SensorTiming& timing) const {
    const Moments own = moments(observed, timing);
    const double alone = left_alone(own);
    const double worth = independent_[observed.data() == counter_.data() ? 0 : 1];
    if (!sampled_.any()) return -0.5 * worth * std::log(alone);
    const double one = 1 / alone;
    const double other = 1 / left_alone(sampled_);
    const VectorXd watts = ridge(one * own.normal + other * sampled_.normal,
                                 one * own.right + other * sampled_.right, 1);
    return -0.5 *
           (worth * std::log(own.left(watts)) + independent_[1] * std::log(sampled_.left(watts)));
  }

  using ByOffset = std::map<double, double>;  // log likelihood

  double best_offset(std::span<const ObservedPower> observed, double time_constant, double sigma,
                     ByOffset& found) const {
    found.clear();
    if (observed.empty()) return 0;
    const auto timing_of = [&](double late) { return SensorTiming{time_constant, late, late, 0}; };
    const auto weigh = [&](double late) {
      const double at = std::round(late / kStep) * kStep;
      if (found.count(at) == 0) found[at] = likelihood(observed, timing_of(at));
    };
    const auto best = [&] {
      const auto value = [sigma](const auto& f) { return f.second + log_prior(f.first, sigma); };
      return std::ranges::max_element(found, [&](auto& a, auto& b) { return value(a) < value(b); })
          ->first;
    };
    for (double late = -0.012; late <= 0.020 + 1e-9; late += 0.002) weigh(late);
    double variance = 0;
    double mean = 0;
    for (const auto& s : observed) mean += s.watts / static_cast<double>(observed.size());
    for (const auto& s : observed) variance += std::pow(s.watts - mean, 2);
    variance /= static_cast<double>(observed.size());
    if (left(observed, timing_of(best())) > (1 - kPoor) * variance) {
      for (double late = -kErrors.farthest; late <= kErrors.farthest + 1e-9; late += 0.004)
        weigh(late);
      const double far = best();
      for (const double more : {-2e-3, 2e-3}) weigh(far + more);
    }
    // A loop has several maxima, which a coarse grid may rank wrongly.
    std::vector<std::pair<double, double>> peaks;
    for (auto f = found.begin(); f != found.end(); ++f) {
      const bool above_last = f == found.begin() || std::prev(f)->second <= f->second;
      const bool above_next = std::next(f) == found.end() || std::next(f)->second <= f->second;
      if (above_last && above_next)
        peaks.emplace_back(-f->second - log_prior(f->first, sigma), f->first);
    }
    std::ranges::sort(peaks);
    peaks.resize(std::min<std::size_t>(peaks.size(), 3));
    for (const auto& [unlikely, at] : peaks) {
      weigh(at - 1e-3);
      weigh(at + 1e-3);
    }
    for (const double more : {1e-3, kStep}) {
      const double near = best();
      weigh(near - more);
      weigh(near + more);
    }
    return best();
  }

  static std::optional<Density> offsets(const ByOffset& found, double sigma) {
    if (found.empty()) return std::nullopt;
    std::vector<double> at, log_density;
    for (const auto& [late, value] : found) {
      at.push_back(late);
      log_density.push_back(value + log_prior(late, sigma));
    }
    return Density(std::move(at), log_density);
  }

  // Whether samples see one phase, or few, of a load that repeats: whatever its powers, which are
  // not known yet.
  bool is_locked(double time_constant) const {
    if (samples_.size() < 2) return false;
    SamplingSensor sensor{kSampled, kSampleWindow, time_constant};
    std::tie(sensor.every, sensor.window) = usual_sample();
    return sampling_lock(
               table_, [&](const auto& entry) { return any_joules(table_, entry); }, sensor)
        .has_value();
  }

  // Seconds from one sample to the next, and of one.
  std::pair<double, double> usual_sample() const {
    std::vector<double> apart, lengths;
    for (std::size_t i = 1; i < samples_.size(); ++i) {
      apart.push_back(samples_[i].end - samples_[i - 1].end);
      lengths.push_back(samples_[i].end - samples_[i].begin);
    }
    return {upper_median(apart), upper_median(lengths)};
  }

  static constexpr double kStep = 0.5e-3;  // seconds

  const ActivityTable& table_;
  std::span<const std::uint32_t> column_of_;
  std::size_t columns_;
  std::vector<ObservedPower> counter_;
  std::vector<ObservedPower> samples_;
  double base_ = 0;                      // watts
  Moments sampled_;                      // the samples, at their offset
  std::array<double, 2> independent_{};  // of counter_, of samples_
  ByOffset counter_found_;
  ByOffset samples_found_;
  double integrates_ = 1;          // probability
  SensorTiming adds_;              // where it does not
  std::optional<Density> phases_;  // then
};

// The signatures with most busy time have a column each.
class Columns {
 public:
  explicit Columns(const ActivityTable& table) : column_of_(table.classes.size()) {
    std::vector<std::uint32_t> order(table.classes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      return table.classes[a].whole_busy > table.classes[b].whole_busy;
    });
    own_ = std::min(order.size(), kMostColumns);
    for (std::size_t i = 0; i < order.size(); ++i) {
      column_of_[order[i]] = static_cast<std::uint32_t>(std::min(i, own_));
    }
  }
  std::span<const std::uint32_t> of_classes() const { return column_of_; }
  std::size_t count() const { return own_ + 2; }  // the other signatures, idle between launches

 private:
  std::vector<std::uint32_t> column_of_;
  std::size_t own_ = 0;
};

}  // namespace

double any_joules(const ActivityTable& table, const ActivityTable::Entry& entry) {
  return entry.kernel_class < table.classes.size()
             ? entry.busy * (1 + 0.618 * static_cast<double>(entry.kernel_class % 7))
             : 0.0;
}

std::optional<SamplingLock> sampling_lock(
    const ActivityTable& table, const std::function<double(const ActivityTable::Entry&)>& joules,
    const SamplingSensor& sensor) {
  constexpr double kFinest = 2e-3;
  constexpr std::size_t kMostSteps = 600'000;
  const double step = table.bins.empty() ? 0.0 : table.bins.front().width;
  if (step <= 0 || step > kFinest || sensor.window >= kErrors.locked_seen * sensor.every)
    return std::nullopt;
  std::vector<double> power;
  for (std::size_t i = 0; i < table.bins.size(); ++i) {
    const double at = table.bins[i].begin;
    if (at < table.begin || at >= table.end) continue;
    double sum = 0;
    for (std::size_t e = table.bins[i].first; e < table.end_of(i); ++e) {
      sum += joules(table.entries[e]);
    }
    const auto place = static_cast<std::size_t>(std::lround((at - table.begin) / step));
    if (place >= kMostSteps) break;
    power.resize(std::max(power.size(), place + 1));
    power[place] += sum / step;
  }
  if (power.empty()) return std::nullopt;
  const double error = sampling_error(power, step, sensor);
  const double period = error > kErrors.least_locked_kernels ? period_of(power, step) : 0.0;
  if (period <= 0) return std::nullopt;
  return SamplingLock{period, error};
}

PlausibleTiming fit_timing(const ActivityTable& table, std::span<const ObservedPower> observed,
                           double time_constant, double clock_variation) {
  PlausibleTiming out;
  SensorTiming& best = out.best;
  best.time_constant = time_constant;
  if (table.empty()) return out;
  const Columns columns(table);
  Timings timings(table, columns.of_classes(), columns.count(), observed);
  timings.fit_offsets(best);
  if (time_constant > 0) {
    timings.fit_time_constant(best, clock_variation < kSteady);
    if (best.time_constant != time_constant) timings.fit_offsets(best);
  }
  timings.fit_counter(best);
  out.others = timings.others(best);
  return out;
}

SensorTiming fit_time_constant(const ActivityTable& table, std::span<const ObservedPower> observed,
                               double time_constant, double clock_variation) {
  SensorTiming out{time_constant, 0, 0, 0};
  if (table.empty() || time_constant <= 0) return out;
  const Columns columns(table);
  Timings(table, columns.of_classes(), columns.count(), observed)
      .fit_time_constant(out, clock_variation < kSteady);
  return out;
}

}  // namespace jouleprof::analysis
