#include "analysis/sweep/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

class Recommender {
 public:
  Recommender(const Sweep& sweep, const RecommendOptions& options)
      : sweep_(sweep), options_(options), draws_(sweep), means_(draws_.means()) {}

  Result<Recommendation> run() {
    if (auto ok = check(); !ok) return tl::unexpected(ok.error());
    rate();
    const auto least = least_of(means_);
    if (!least) return tl::unexpected(nothing_feasible());
    out_.best = *least;
    out_.ties = {*least};
    mark_pareto_front();
    std::vector<Means> drawn;
    if (draws_.has_errors()) drawn = rate_errors();
    compare_with_found(drawn);
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
    const SweepSample& reference = means_[out_.reference];
    for (std::size_t i = 0; i < means_.size(); ++i) {
      RatedPoint& rated = out_.points.emplace_back();
      rated.point = &sweep_.points[i];
      rated.mean = means_[i];
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

  std::vector<Means> rate_errors() {
    const std::size_t n = means_.size();
    std::mt19937_64 random(20);
    std::vector<std::vector<double>> slowdowns(n), savings(n), excesses(n);
    std::vector<Means> drawn;
    std::vector<unsigned> wins(n, 0);
    const std::size_t least = out_.best;
    for (unsigned draw = 0; draw < options_.draws; ++draw) {
      const Means& means = drawn.emplace_back(draws_.draw(random));
      const SweepSample& reference = means[out_.reference];
      for (std::size_t i = 0; i < n; ++i) {
        slowdowns[i].push_back(means[i].seconds / reference.seconds - 1);
        savings[i].push_back(1 - means[i].joules / reference.joules);
        excesses[i].push_back(score(means[i]) / score(means[least]) - 1);
      }
      if (const auto best = least_of(means)) ++wins[*best];
    }
    out_.ties.clear();
    for (std::size_t i = 0; i < n; ++i) {
      RatedPoint& rated = out_.points[i];
      const double excess = rated.score / out_.points[least].score - 1;
      rated.excess = Change{excess, draws_.interval(excesses[i], excess)};
      rated.ruled_out = is_ruled_out(i, excesses[i], slowdowns[i]);
      rated.slowdown.interval = draws_.interval(std::move(slowdowns[i]), rated.slowdown.ratio);
      rated.saving.interval = draws_.interval(std::move(savings[i]), rated.saving.ratio);
      rated.probability_of_best = static_cast<double>(wins[i]) / options_.draws;
      const bool as_good = i == least || rated.excess->interval->low <= 0;
      if (!rated.feasible || !as_good) continue;
      out_.ties.push_back(i);
      if (means_[i].seconds < means_[out_.best].seconds) out_.best = i;
    }
    out_.regret = regret(drawn);
    return drawn;
  }

  // By an interval wide enough for several looks at a growing sweep.
  bool is_ruled_out(std::size_t i, const std::vector<double>& excesses,
                    const std::vector<double>& slowdowns) const {
    constexpr double kCoverage = 0.99;
    const RatedPoint& rated = out_.points[i];
    const double excess = rated.excess->ratio;
    if (rated.feasible && draws_.interval(excesses, excess, kCoverage).low > 0) return true;
    return options_.max_slowdown &&
           draws_.interval(slowdowns, rated.slowdown.ratio, kCoverage).low > *options_.max_slowdown;
  }

  void compare_with_found(const std::vector<Means>& drawn) {
    const auto at = std::find_if(sweep_.points.begin(), sweep_.points.end(), [&](const auto& p) {
      return sweep_.found && p.setting == *sweep_.found;
    });
    if (at == sweep_.points.end()) return;
    const auto found = static_cast<std::size_t>(at - sweep_.points.begin());
    const auto change = [&](auto ratio) {
      Change made{ratio(means_), {}};
      std::vector<double> ratios;
      for (const Means& means : drawn) ratios.push_back(ratio(means));
      if (!drawn.empty()) made.interval = draws_.interval(std::move(ratios), made.ratio);
      return made;
    };
    out_.saving_against_found =
        change([&](const Means& m) { return 1 - m[out_.best].joules / m[found].joules; });
    out_.slowdown_against_found =
        change([&](const Means& m) { return m[out_.best].seconds / m[found].seconds - 1; });
  }

  // The 97.5 % bound of how much better than the recommended one a feasible setting can be.
  double regret(const std::vector<Means>& drawn) const {
    std::vector<double> regrets;
    for (const Means& means : drawn) {
      double least = score(means[out_.best]);
      for (std::size_t i = 0; i < means.size(); ++i) {
        if (out_.points[i].feasible) least = std::min(least, score(means[i]));
      }
      regrets.push_back(score(means[out_.best]) / least - 1);
    }
    return std::max(0.0, draws_.interval(std::move(regrets), 0).high);
  }

  const Sweep& sweep_;
  const RecommendOptions& options_;
  const MeanDraws draws_;
  const Means means_;
  Recommendation out_;
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
