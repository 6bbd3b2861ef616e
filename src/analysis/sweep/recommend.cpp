#include "analysis/sweep/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
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
      : sweep_(sweep), options_(options), model_(sweep), means_(model_.means()) {}

  Result<Recommendation> run() {
    if (auto ok = check(); !ok) return tl::unexpected(ok.error());
    std::mt19937_64 random(20);
    for (unsigned i = 0; model_.has_errors() && i < options_.draws; ++i) {
      drawn_.push_back(model_.draw(random));
    }
    rate();
    const auto least = least_of(means_);
    if (!least) return tl::unexpected(nothing_feasible());
    out_.best = *least;
    out_.ties = {*least};
    mark_pareto_front();
    if (!drawn_.empty()) rate_errors();
    compare_with_found();
    return std::move(out_);
  }

 private:
  using Means = std::vector<SweepSample>;  // by point

  Result<void> check() {
    if (sweep_.points.size() < 2) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("a recommendation needs runs at two settings that can be ranked, this "
                      "sweep has {}{}",
                      sweep_.points.size(),
                      sweep_.next_run.empty()
                          ? ""
                          : fmt::format("; `jouleprof {}` goes on with it", sweep_.next_run)));
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
        return options_.eta * mean.joules + (1 - options_.eta) * sweep_.points.front().setting *
                                                static_cast<double>(sweep_.gpus) * mean.seconds;
      case Objective::kTime:
        return mean.seconds;
      case Objective::kEnergy:
        break;
    }
    return mean.joules;
  }

  bool is_fast_enough(const Means& means, std::size_t i) const {
    return !options_.max_slowdown ||
           means[i].seconds <= (1 + *options_.max_slowdown) * means[out_.reference].seconds;
  }

  bool is_low_enough(const Means& means, std::size_t i) const {
    return !options_.max_watts || means[i].joules / means[i].seconds <= *options_.max_watts;
  }

  bool is_within(const Means& means, std::size_t i) const {
    return is_fast_enough(means, i) && is_low_enough(means, i);
  }

  // The share of draws of which `holds`; of the means alone, 1 or 0.
  template <typename Holds>
  double probability(const Holds& holds) const {
    if (drawn_.empty()) return holds(means_) ? 1 : 0;
    const auto count = std::ranges::count_if(drawn_, holds);
    return static_cast<double>(count) / static_cast<double>(drawn_.size());
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
      rated.within = is_within(means_, i);
      if (drawn_.empty() || (!options_.max_slowdown && !options_.max_watts)) continue;
      rated.probability_within = probability([&](const Means& m) { return is_within(m, i); });
    }
    const auto end = static_cast<std::ptrdiff_t>(means_.size());
    const auto from = static_cast<std::ptrdiff_t>(out_.reference);
    keep_certain(from, end, 1, &Recommender::is_fast_enough);
    keep_certain(from, -1, -1, &Recommender::is_fast_enough);
    keep_certain(end - 1, -1, -1, &Recommender::is_low_enough);
  }

  // From a constraint's safe end on, all points are feasible before the first that may not meet it.
  void keep_certain(std::ptrdiff_t from, std::ptrdiff_t end, std::ptrdiff_t step,
                    bool (Recommender::*meets)(const Means&, std::size_t) const) {
    bool certain = true;
    for (std::ptrdiff_t at = from; at != end; at += step) {
      const auto i = static_cast<std::size_t>(at);
      // Without errors there is nothing to be certain of: each point's means decide.
      if (drawn_.empty()) certain = true;
      certain = certain && probability([&](const Means& means) {
                             return (this->*meets)(means, i);
                           }) >= kConstraintConfidence;
      out_.points[i].feasible = out_.points[i].feasible && certain;
    }
  }

  // Of feasible points; of equal scores the faster.
  std::optional<std::size_t> least_of(const Means& means) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < means.size(); ++i) {
      if (!out_.points[i].feasible) continue;
      const auto key = [&](std::size_t k) { return std::pair(score(means[k]), means[k].seconds); };
      if (!best || key(i) < key(*best)) best = i;
    }
    return best;
  }

  Error nothing_feasible() const {
    std::string text = "no measured setting meets the constraints";
    if (!drawn_.empty()) {
      text += fmt::format(" with a probability of {:g} %", 100 * kConstraintConfidence);
    }
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
      out_.points[i].on_pareto_front = std::ranges::none_of(means_, [&](const SweepSample& other) {
        return other.seconds <= means_[i].seconds && other.joules <= means_[i].joules &&
               (other.seconds < means_[i].seconds || other.joules < means_[i].joules);
      });
    }
  }

  // A figure of each draw.
  template <typename Of>
  std::vector<double> values_of(const Of& of) const {
    std::vector<double> values;
    for (const Means& means : drawn_) values.push_back(of(means));
    return values;
  }

  void rate_errors() {
    std::vector<double> wins(means_.size(), 0);
    for (const Means& means : drawn_) {
      chosen_.push_back(*least_of(means));
      ++wins[chosen_.back()];
    }
    order(wins);
    for (std::size_t i = 0; i < wins.size(); ++i) {
      out_.points[i].probability_of_best = wins[i] / static_cast<double>(drawn_.size());
      if (wins[i] > wins[out_.best]) out_.best = i;
    }
    out_.ties.clear();
    for (std::size_t i = 0; i < means_.size(); ++i) rate_errors(i);
    out_.regret = regret();
  }

  // Points that were measured equally often have equal errors, so that of two of them the one with
  // the lower score is more probably the best. Where draws say otherwise, by chance, both get their
  // mean (isotonic regression, by pooling of neighbours).
  void order(std::vector<double>& wins) const {
    std::map<std::size_t, std::vector<std::size_t>> by_count;
    for (std::size_t i = 0; i < wins.size(); ++i) {
      if (out_.points[i].feasible) by_count[sweep_.points[i].samples.size()].push_back(i);
    }
    for (auto& [count, places] : by_count) {
      std::ranges::sort(places, [&](std::size_t a, std::size_t b) {
        return std::pair(out_.points[a].score, means_[a].seconds) <
               std::pair(out_.points[b].score, means_[b].seconds);
      });
      std::vector<std::pair<double, std::size_t>> pools;  // mean and number
      for (const std::size_t i : places) {
        std::pair pool(wins[i], std::size_t{1});
        while (!pools.empty() && pools.back().first < pool.first) {
          const auto& [mean, size] = pools.back();
          const auto both = static_cast<double>(size + pool.second);
          pool = {
              (mean * static_cast<double>(size) + pool.first * static_cast<double>(pool.second)) /
                  both,
              size + pool.second};
          pools.pop_back();
        }
        pools.push_back(pool);
      }
      auto place = places.begin();
      for (const auto& [mean, size] : pools) {
        for (std::size_t k = 0; k < size; ++k) wins[*place++] = mean;
      }
    }
  }

  // Of a figure of point `i` against point `base`. The recommended point is chosen by its measured
  // score, so that its interval has the errors of that choice, too: in each draw those of the point
  // that the draw would choose (Efron 2014, "Estimation and accuracy after model selection").
  template <typename Of>
  Interval interval_at(std::size_t i, std::size_t base, const Of& of) const {
    Interval interval = interval_of(values_of([&](const Means& m) { return of(m, i); }));
    if (i != out_.best || i == base) return interval;
    std::vector<double> errors;
    for (std::size_t k = 0; k < drawn_.size(); ++k) {
      errors.push_back(of(drawn_[k], chosen_[k]) - of(means_, chosen_[k]));
    }
    const Interval error = interval_of(std::move(errors));
    return {std::min(interval.low, of(means_, i) - error.high),
            std::max(interval.high, of(means_, i) - error.low)};
  }

  void rate_errors(std::size_t i) {
    // For several looks at a growing sweep.
    constexpr double kRulingOut = 0.99;
    RatedPoint& rated = out_.points[i];
    const auto slowdown = [&](const Means& m, std::size_t k) {
      return m[k].seconds / m[out_.reference].seconds - 1;
    };
    const auto saving = [&](const Means& m, std::size_t k) {
      return 1 - m[k].joules / m[out_.reference].joules;
    };
    const auto slowdowns = values_of([&](const Means& m) { return slowdown(m, i); });
    const auto excesses =
        values_of([&](const Means& m) { return score(m[i]) / score(m[out_.best]) - 1; });
    rated.slowdown.interval = interval_at(i, out_.reference, slowdown);
    rated.saving.interval = interval_at(i, out_.reference, saving);
    rated.ruled_out =
        interval_of(excesses, kRulingOut).low > 0 ||
        (options_.max_slowdown && interval_of(slowdowns, kRulingOut).low > *options_.max_slowdown);
    if (rated.feasible && (i == out_.best || interval_of(excesses).low <= 0)) {
      out_.ties.push_back(i);
    }
  }

  void compare_with_found() {
    const auto at = std::ranges::find_if(
        sweep_.points, [&](const auto& p) { return sweep_.found && p.setting == *sweep_.found; });
    if (at == sweep_.points.end()) return;
    const auto found = static_cast<std::size_t>(at - sweep_.points.begin());
    const auto change = [&](auto ratio) {
      Change made{ratio(means_, out_.best), {}};
      if (!drawn_.empty()) made.interval = interval_at(out_.best, found, ratio);
      return made;
    };
    out_.saving_against_found =
        change([&](const Means& m, std::size_t k) { return 1 - m[k].joules / m[found].joules; });
    out_.slowdown_against_found =
        change([&](const Means& m, std::size_t k) { return m[k].seconds / m[found].seconds - 1; });
  }

  // The 97.5 % bound of how much less than the recommended one a setting takes that meets the
  // constraints. A setting that meets them in some draws counts in those.
  double regret() const {
    return interval_of(values_of([&](const Means& means) {
             const double taken = score(means[out_.best]);
             double least = taken;
             for (std::size_t i = 0; i < means.size(); ++i) {
               if (is_within(means, i)) least = std::min(least, score(means[i]));
             }
             return 1 - least / taken;
           }))
        .high;
  }

  const Sweep& sweep_;
  const RecommendOptions& options_;
  const BlockModel model_;
  const Means means_;
  std::vector<Means> drawn_;         // none where no setting was measured twice
  std::vector<std::size_t> chosen_;  // from each
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
