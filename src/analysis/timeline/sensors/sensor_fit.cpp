#include "analysis/timeline/sensors/sensor_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "analysis/timeline/sensors/observed_sensor.h"
#include "base/median.h"

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kLeastSpans = 8;
constexpr std::size_t kLeastReadings = 50;
constexpr double kLeastStepWatts = 20;
constexpr double kLeastRSquared = 0.8;
constexpr double kShortestWindow = 0.001;
constexpr double kLongestWindow = 3.0;
constexpr double kMostWindow = 2.5;  // longer ones are the limit of the search
constexpr double kLongestLag = 0.3;
constexpr double kFinest = 2e-5;  // seconds: the last step of the search
// A time constant is reported if it reduces the sum of squared residuals by this part.
constexpr double kLeastGain = 0.3;
constexpr std::size_t kBlocks = 10;  // of the jackknife

struct Point {
  double at, watts;
};

// In seconds. The centre of a reading's response lies `centre` before its timestamp. It is
// determined far better than lag and window, so the search uses it as a coordinate.
struct Shape {
  double window, centre, time_constant;

  double lag() const { return centre - window / 2 - time_constant; }
  bool allowed() const {
    return window >= kShortestWindow && window <= kLongestWindow && time_constant >= 0 &&
           lag() >= -1e-12 && lag() <= kLongestLag;
  }
};

// The response to a load of 1 while busy, with a time constant (0: immediate).
class Response {
 public:
  Response(std::span<const BusySpan> busy, TimeBase time, double time_constant)
      : time_constant_(time_constant) {
    double on = 0;
    const auto add = [&](double at, double next) {
      if (!knots_.empty()) {
        const Knot& last = knots_.back();
        knots_.push_back({at, last.busy + on * (at - last.at), level_after(last, at), next});
      } else {
        knots_.push_back({at, 0, 0, next});
      }
      on = next;
    };
    for (const auto& span : busy) {
      add(time.seconds_of(span.begin), 1);
      add(time.seconds_of(span.end), 0);
    }
  }

  // The integral of the response u up to t. Since tau x u' = busy - u, it is that of `busy` minus
  // tau x u.
  // `hint` is where the search for t begins; it follows calls with increasing t.
  double integral(double t, std::size_t& hint) const {
    if (t <= knots_.front().at) return 0;
    while (hint + 1 < knots_.size() && knots_[hint + 1].at <= t) ++hint;
    const Knot& k = knots_[hint];
    return k.busy + k.on * (t - k.at) - time_constant_ * level_after(k, t);
  }

 private:
  struct Knot {
    double at, busy, level, on;  // time, busy seconds before, response, load after
  };
  double level_after(const Knot& k, double t) const {
    return time_constant_ > 0 ? k.on + (k.level - k.on) * std::exp((k.at - t) / time_constant_)
                              : k.on;
  }

  double time_constant_;
  std::vector<Knot> knots_;
};

struct Line {
  double idle = 0, step = 0;
  double left = 0;   // squared residuals
  double total = 0;  // squares around the mean
};

class Problem {
 public:
  Problem(std::span<const BusySpan> busy, std::vector<Point> points, TimeBase time)
      : busy_(busy), points_(std::move(points)), time_(time), plain_(busy, time, 0) {}

  // The best idle and step for all points except those of block `left_out`.
  Line fit(const Shape& shape, std::optional<std::size_t> left_out = {}) const {
    if (shape.time_constant <= 0) return fit_to(plain_, shape, left_out);
    return fit_to(Response(busy_, time_, shape.time_constant), shape, left_out);
  }

  // The shape near `start` with the least residuals. `steps`: the first ones in window, centre and
  // time constant.
  Shape search(Shape start, std::array<double, 3> steps,
               std::optional<std::size_t> left_out = {}) const {
    double least = fit(start, left_out).left;
    while (std::max({steps[0], steps[1], steps[2]}) > kFinest) {
      Shape best = start;
      for (int move = 0; move < 27; ++move) {
        const int w = move % 3 - 1;
        const int c = move / 3 % 3 - 1;
        const int r = move / 9 - 1;
        if (r != 0 && steps[2] <= 0) continue;
        const Shape trial{start.window + w * steps[0], start.centre + c * steps[1],
                          start.time_constant + r * steps[2]};
        if (!trial.allowed()) continue;
        const double left = fit(trial, left_out).left;
        if (left < least) {
          least = left;
          best = trial;
        }
      }
      const bool moved = best.window != start.window || best.centre != start.centre ||
                         best.time_constant != start.time_constant;
      start = best;
      if (!moved) {
        for (double& step : steps) step /= 2;
      }
    }
    return start;
  }

  Shape search_everywhere() const {
    Shape best{};
    double least = INFINITY;
    for (double window = 0.004; window <= kLongestWindow; window *= 1.3) {
      const double step = std::max(0.005, window / 8);
      for (double lag = 0; lag <= kLongestLag; lag += step) {
        const Shape trial{window, lag + window / 2, 0};
        const double left = fit(trial).left;
        if (left >= least) continue;
        least = left;
        best = trial;
      }
    }
    return search(best, {best.window / 8, std::max(0.0025, best.window / 16), 0});
  }

 private:
  Line fit_to(const Response& response, const Shape& shape,
              std::optional<std::size_t> left_out) const {
    std::size_t from = 0;
    std::size_t to = 0;
    double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, sum_yy = 0;
    const double reference = points_.front().watts;
    const double lag = std::max(shape.lag(), 0.0);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (left_out && i * kBlocks / points_.size() == *left_out) continue;
      const double end = points_[i].at - lag;
      const double x =
          (response.integral(end, to) - response.integral(end - shape.window, from)) / shape.window;
      const double y = points_[i].watts - reference;
      n += 1;
      sum_x += x;
      sum_y += y;
      sum_xx += x * x;
      sum_xy += x * y;
      sum_yy += y * y;
    }
    const double xx = sum_xx - sum_x * sum_x / n;
    const double xy = sum_xy - sum_x * sum_y / n;
    Line line;
    line.total = sum_yy - sum_y * sum_y / n;
    line.step = xx > 1e-9 * n ? xy / xx : 0;
    line.idle = reference + (sum_y - line.step * sum_x) / n;
    line.left = line.total - line.step * xy;
    return line;
  }

  std::span<const BusySpan> busy_;
  std::vector<Point> points_;
  TimeBase time_;
  Response plain_;
};

void mend(std::vector<Point>& points) {
  std::vector<double> times;
  for (const Point& p : points) times.push_back(p.at);
  if (times.size() < 2) return;
  const double period = seconds(median_interval(times).value);
  for (std::size_t i = 2; i < times.size(); ++i) {
    mend_late_stamps(std::span(times).first(i), times[i], period);
  }
  for (std::size_t i = 0; i < points.size(); ++i) points[i].at = times[i];
}

std::vector<Point> new_values(std::span<const model::PowerReading> readings, Stamps stamps,
                              TimeBase time) {
  std::vector<Point> points;
  for (const auto& r : readings) points.push_back({time.seconds_of(r.at), r.power.watts()});
  std::ranges::stable_sort(points, {}, &Point::at);
  if (points.empty()) return points;
  if (stamps == Stamps::kOfSensor) {
    mend(points);
    return points;
  }
  std::vector<Point> changes;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].watts == points[i - 1].watts) continue;
    // The update was between the two polls.
    changes.push_back({0.5 * (points[i - 1].at + points[i].at), points[i].watts});
  }
  return changes;
}

bool in_order(std::span<const BusySpan> busy) {
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (busy[i].end <= busy[i].begin) return false;
    if (i > 0 && busy[i].begin < busy[i - 1].end) return false;
  }
  return true;
}

// Half of the 95 % intervals of window and lag: block jackknife (Kuensch 1989).
std::array<double, 2> jackknife(const Problem& problem, const Shape& best) {
  std::array<double, 3> squares{};
  const auto square = [](double x) { return x * x; };
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const Shape other = problem.search(best, {best.window / 32, best.window / 64, 0}, block);
    squares[0] += square(other.window - best.window);
    squares[1] += square(other.lag() - best.lag());
    squares[2] += square(other.centre - best.centre);
  }
  // Student's t with nine degrees of freedom.
  const double scale = 2.26 * std::sqrt(double(kBlocks - 1) / double(kBlocks));
  // A lag at its bound of 0 does not vary; its error is at least that of the centre.
  return {scale * std::sqrt(squares[0]), scale * std::sqrt(std::max(squares[1], squares[2]))};
}

constexpr std::size_t kLeastUpdates = 10;

std::vector<double> intervals_of(const std::vector<double>& times) {
  std::vector<double> intervals;
  for (std::size_t i = 1; i < times.size(); ++i) intervals.push_back(times[i] - times[i - 1]);
  return intervals;
}

// The period of times on a lattice with independent errors, by linear regression on their lattice
// index; absent where they lie on none.
std::optional<FittedDuration> lattice_period(const std::vector<double>& times) {
  const double interval = upper_median(intervals_of(times));
  if (!(interval > 0)) return std::nullopt;
  const double n = static_cast<double>(times.size());
  double sum_k = 0, sum_t = 0, sum_kk = 0, sum_kt = 0, sum_tt = 0, k = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (i > 0) k += std::round((times[i] - times[i - 1]) / interval);
    const double t = times[i] - times.front();
    sum_k += k;
    sum_t += t;
    sum_kk += k * k;
    sum_kt += k * t;
    sum_tt += t * t;
  }
  const double kk = sum_kk - sum_k * sum_k / n;
  const double kt = sum_kt - sum_k * sum_t / n;
  if (!(kk > 0)) return std::nullopt;
  const double period = kt / kk;
  const double variance = std::max(sum_tt - sum_t * sum_t / n - period * kt, 0.0) / (n - 2);
  if (std::sqrt(variance) > interval / 4) return std::nullopt;
  return FittedDuration::of(period, 1.96 * std::sqrt(variance / kk));
}

}  // namespace

Result<SensorFit> fit_power_sensor(std::span<const BusySpan> busy,
                                   std::span<const model::PowerReading> readings, Stamps stamps) {
  if (busy.size() < kLeastSpans || !in_order(busy)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} busy spans; at least {} are needed, in order and disjoint",
                            busy.size(), kLeastSpans));
  }
  const TimeBase time{busy.front().begin};
  std::vector<Point> points = new_values(readings, stamps, time);
  if (points.size() < kLeastReadings) {
    return fail(Errc::kUnavailable,
                fmt::format("the sensor gave {} new values during the load; at least {} are needed",
                            points.size(), kLeastReadings));
  }
  SensorFit fit;
  std::vector<double> times;
  for (const auto& p : points) times.push_back(p.at);
  fit.refresh = median_interval(times);

  const Problem problem(busy, std::move(points), time);
  const Shape best = problem.search_everywhere();
  const Line line = problem.fit(best);
  fit.r_squared = line.total > 0 ? 1 - line.left / line.total : 0;
  if (line.step < kLeastStepWatts) {
    return fail(Errc::kUnavailable,
                fmt::format("the load changed the sensor's power by {:.1f} W; at least {:g} W are "
                            "needed",
                            line.step, kLeastStepWatts));
  }
  if (fit.r_squared < kLeastRSquared || best.window > kMostWindow) {
    return fail(
        Errc::kUnavailable,
        fmt::format("the load explains only {:.0f} % of the variance of the readings: other "
                    "work ran on the device, or its sensor does not report mean power",
                    100 * fit.r_squared));
  }
  const auto [window_error, lag_error] = jackknife(problem, best);
  fit.window = FittedDuration::of(best.window, window_error);
  fit.lag = FittedDuration::of(std::max(best.lag(), 0.0), lag_error);
  fit.idle = Power::watts(line.idle);
  fit.step = Power::watts(line.step);

  const Shape start{best.window / 2, best.centre, std::min(best.window / 4, best.centre / 4)};
  const Shape lagged =
      problem.search(start, {start.window / 2, start.window / 4, start.window / 4});
  if (lagged.time_constant > kFinest && problem.fit(lagged).left < (1 - kLeastGain) * line.left) {
    fit.first_order = {duration_of(lagged.time_constant), duration_of(lagged.window),
                       duration_of(std::max(lagged.lag(), 0.0))};
  }
  return fit;
}

FittedDuration median_interval(const std::vector<double>& times) {
  std::vector<double> intervals = intervals_of(times);
  const double middle = upper_median(intervals);
  for (double& interval : intervals) interval = std::abs(interval - middle);
  // The median's standard error from the median absolute deviation, for a normal distribution.
  const double sigma = 1.48 * upper_median(intervals);
  return FittedDuration::of(middle,
                            1.96 * 1.25 * sigma / std::sqrt(static_cast<double>(intervals.size())));
}

Result<FittedDuration> fit_counter_refresh(std::span<const model::CounterReading> reads) {
  struct Update {
    double first, last;  // the reads before and after it
    double span() const { return last - first; }
  };
  std::vector<Update> updates;
  const TimeBase time{reads.empty() ? HostTime{} : reads.front().before};
  for (std::size_t i = 1; i < reads.size(); ++i) {
    if (reads[i].total == reads[i - 1].total) continue;
    updates.push_back({time.seconds_of(reads[i - 1].before), time.seconds_of(reads[i].after)});
  }
  if (updates.size() < kLeastUpdates) {
    return fail(
        Errc::kUnavailable,
        fmt::format(
            "the energy counter changed {} times in {} reads; at least {} changes are needed",
            updates.size(), reads.size(), kLeastUpdates));
  }
  if (3 * updates.size() > reads.size()) {
    return fail(
        Errc::kUnavailable,
        fmt::format(
            "{} of {} reads of the energy counter returned a new value: it is updated too fast "
            "to determine its period",
            updates.size(), reads.size()));
  }
  // A slow read leaves the time of the update uncertain.
  std::vector<double> spans;
  for (const Update& u : updates) spans.push_back(u.span());
  const double usual = upper_median(spans);
  std::vector<double> times;
  for (const Update& u : updates) {
    if (u.span() <= 1.5 * usual) times.push_back(0.5 * (u.first + u.last));
  }
  const auto period = lattice_period(times);
  if (!period) {
    return fail(Errc::kUnavailable, "the energy counter is not updated at a fixed period");
  }
  return *period;
}

}  // namespace jouleprof::analysis
