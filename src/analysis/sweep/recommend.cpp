#include "analysis/sweep/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <utility>

namespace jouleprof::analysis {
namespace {

constexpr std::array<std::pair<std::string_view, Objective>, 5> kObjectives{
    {{"energy", Objective::kEnergy},
     {"edp", Objective::kEdp},
     {"ed2p", Objective::kEd2p},
     {"cost", Objective::kCost},
     {"time", Objective::kTime}}};

Interval percentiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.025), at(0.975)};
}

// The quantile of Student's t for 97.5 %, by degrees of freedom; beyond the table, its last.
double student_t(std::size_t degrees) {
  constexpr std::array kQuantiles{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                  2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                  2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  return kQuantiles[std::min(degrees, kQuantiles.size()) - 1];
}

// A percentile bootstrap of few samples is too narrow: by sqrt(n / (n - 1)) of the resampled
// variance, and by the normal quantile in place of Student's (Efron and Tibshirani 1993).
Interval widened(const Interval& interval, double center, std::size_t samples) {
  const auto n = static_cast<double>(samples);
  const double factor = std::sqrt(n / (n - 1)) * student_t(samples - 1) / 1.96;
  return {center - factor * std::max(center - interval.low, 0.0),
          center + factor * std::max(interval.high - center, 0.0)};
}

class Recommender {
 public:
  Recommender(const Sweep& sweep, const RecommendOptions& options)
      : sweep_(sweep), options_(options) {}

  Result<Recommendation> run() {
    if (auto ok = check(); !ok) return tl::unexpected(ok.error());
    rate();
    const auto least = least_of(means_);
    if (!least) return tl::unexpected(nothing_feasible());
    out_.best = *least;
    out_.ties = {*least};
    mark_pareto_front();
    const bool repeated = std::all_of(sweep_.points.begin(), sweep_.points.end(),
                                      [](const auto& p) { return p.samples.size() > 1; });
    if (repeated) bootstrap();
    return std::move(out_);
  }

 private:
  using Means = std::vector<SweepSample>;  // by point

  Result<void> check() {
    if (sweep_.points.size() < 2) {
      return fail(Errc::kInvalidArgument,
                  "a recommendation needs at least two settings; this sweep has fewer");
    }
    if (options_.eta < 0 || options_.eta > 1) {
      return fail(Errc::kInvalidArgument, "eta must be from 0 to 1");
    }
    if (options_.objective == Objective::kCost && !sweep_.knob.ends_with("_watts")) {
      return fail(Errc::kInvalidArgument,
                  "the objective cost needs a sweep of power limits; use energy, edp or ed2p");
    }
    if (!options_.reference) return {};
    for (std::size_t i = 0; i < sweep_.points.size(); ++i) {
      if (sweep_.points[i].setting == *options_.reference) {
        out_.reference = i;
        return {};
      }
    }
    return fail(Errc::kInvalidArgument,
                fmt::format("the sweep has no measurement at {:g}; choose one of its settings as "
                            "the reference",
                            *options_.reference));
  }

  double score(const SweepSample& mean) const {
    switch (options_.objective) {
      case Objective::kEdp:
        return mean.joules * mean.seconds;
      case Objective::kEd2p:
        return mean.joules * mean.seconds * mean.seconds;
      case Objective::kCost:
        return options_.eta * mean.joules +
               (1 - options_.eta) * sweep_.points.front().setting * mean.seconds;
      case Objective::kTime:
        return mean.seconds;
      case Objective::kEnergy:
        break;
    }
    return mean.joules;
  }

  bool is_feasible(const SweepSample& mean, const SweepSample& reference) const {
    if (options_.max_slowdown && mean.seconds > (1 + *options_.max_slowdown) * reference.seconds) {
      return false;
    }
    return !options_.max_watts || mean.joules / mean.seconds <= *options_.max_watts;
  }

  void rate() {
    for (const auto& point : sweep_.points) {
      means_.push_back({point.mean_seconds(), point.mean_joules()});
    }
    const SweepSample& reference = means_[out_.reference];
    for (std::size_t i = 0; i < means_.size(); ++i) {
      RatedPoint& rated = out_.points.emplace_back();
      rated.point = &sweep_.points[i];
      rated.slowdown.ratio = means_[i].seconds / reference.seconds - 1;
      rated.saving.ratio = 1 - means_[i].joules / reference.joules;
      rated.score = score(means_[i]);
      rated.feasible = is_feasible(means_[i], reference);
    }
  }

  // Of equal scores the faster.
  std::optional<std::size_t> least_of(const Means& means) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < means.size(); ++i) {
      if (!is_feasible(means[i], means[out_.reference])) continue;
      const auto key = [&](std::size_t k) { return std::pair(score(means[k]), means[k].seconds); };
      if (!best || key(i) < key(*best)) best = i;
    }
    return best;
  }

  Error nothing_feasible() const {
    std::string text = "no measured setting meets the constraints";
    if (options_.max_slowdown) {
      text += fmt::format("; --max-slowdown {:g}%", 100 * *options_.max_slowdown);
    }
    if (options_.max_watts) {
      double least = means_.front().joules / means_.front().seconds;
      for (const auto& mean : means_) least = std::min(least, mean.joules / mean.seconds);
      text += fmt::format("; --max-power {:g}, and the least mean power is {:.4g} W",
                          *options_.max_watts, least);
    }
    return {Errc::kUnavailable, text + ". Relax them, or measure more settings"};
  }

  void mark_pareto_front() {
    for (std::size_t i = 0; i < means_.size(); ++i) {
      out_.points[i].on_pareto_front =
          std::none_of(means_.begin(), means_.end(), [&](const SweepSample& other) {
            return other.seconds <= means_[i].seconds && other.joules <= means_[i].joules &&
                   (other.seconds < means_[i].seconds || other.joules < means_[i].joules);
          });
    }
  }

  void bootstrap() {
    const std::size_t n = means_.size();
    std::mt19937_64 random(20);
    std::vector<std::vector<double>> slowdowns(n), savings(n), excesses(n);
    std::vector<unsigned> wins(n, 0);
    const std::size_t least = out_.best;
    for (unsigned draw = 0; draw < options_.draws; ++draw) {
      Means means;
      for (const auto& point : sweep_.points) means.push_back(resampled(point, random));
      const SweepSample& reference = means[out_.reference];
      for (std::size_t i = 0; i < n; ++i) {
        slowdowns[i].push_back(means[i].seconds / reference.seconds - 1);
        savings[i].push_back(1 - means[i].joules / reference.joules);
        excesses[i].push_back(score(means[i]) / score(means[least]) - 1);
      }
      if (const auto best = least_of(means)) ++wins[*best];
    }
    out_.ties.clear();
    std::size_t fewest = sweep_.points.front().samples.size();
    for (const auto& point : sweep_.points) fewest = std::min(fewest, point.samples.size());
    for (std::size_t i = 0; i < n; ++i) {
      RatedPoint& rated = out_.points[i];
      rated.slowdown.interval =
          widened(percentiles(std::move(slowdowns[i])), rated.slowdown.ratio, fewest);
      rated.saving.interval =
          widened(percentiles(std::move(savings[i])), rated.saving.ratio, fewest);
      rated.probability_of_best = static_cast<double>(wins[i]) / options_.draws;
      const double excess = rated.score / out_.points[least].score - 1;
      const bool as_good =
          i == least || widened(percentiles(std::move(excesses[i])), excess, fewest).low <= 0;
      if (!rated.feasible || !as_good) continue;
      out_.ties.push_back(i);
      if (means_[i].seconds < means_[out_.best].seconds) out_.best = i;
    }
  }

  static SweepSample resampled(const SweepPoint& point, std::mt19937_64& random) {
    const std::size_t n = point.samples.size();
    std::uniform_int_distribution<std::size_t> any(0, n - 1);
    SweepSample mean;
    for (std::size_t i = 0; i < n; ++i) {
      const SweepSample& sample = point.samples[any(random)];
      mean.seconds += sample.seconds / static_cast<double>(n);
      mean.joules += sample.joules / static_cast<double>(n);
    }
    return mean;
  }

  const Sweep& sweep_;
  const RecommendOptions& options_;
  Recommendation out_;
  Means means_;
};

}  // namespace

std::optional<Objective> parse_objective(std::string_view word) {
  for (const auto& [name, objective] : kObjectives) {
    if (name == word) return objective;
  }
  return std::nullopt;
}

std::string_view to_string(Objective objective) {
  return kObjectives[static_cast<std::size_t>(objective)].first;
}

Result<Recommendation> recommend(const Sweep& sweep, const RecommendOptions& options) {
  return Recommender(sweep, options).run();
}

}  // namespace jouleprof::analysis
