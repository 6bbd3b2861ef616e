#include "analysis/kernels/remembered_kernels.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "analysis/activity/sm_clocks.h"
#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using model::RememberedKernel;

constexpr double kLaunchApart = 0.07;  // of the time of a launch: as between variants

// What a run found, at this run's clock.
struct Scaled {
  double watts;
  double error;  // half of its 95 % interval
  RealTime observed;
};

// Absent where the clocks are too far apart, one is unknown, or a launch took another time than
// clocks explain.
std::optional<Scaled> scaled(const RememberedKernel& r, double launch,
                             std::optional<double> hertz) {
  if (hertz.has_value() != r.sm_clock_hertz.has_value()) return std::nullopt;
  const double clock = hertz ? *hertz / *r.sm_clock_hertz : 1;
  if (!(std::abs(std::log(clock)) <= kFarClock)) return std::nullopt;
  const double times = launch / seconds(r.launch);
  const double longer = without_clock(times, clock);
  if (longer * (1 + kLaunchApart) < 1 || longer > 1 + kLaunchApart) return std::nullopt;
  const PowerByClock power = power_by_clock(times, clock);
  const double watts = r.power.watts() * power.ratio;
  return Scaled{watts, watts * std::hypot(r.error.watts() / r.power.watts(), power.off),
                r.observed};
}

using Found = std::vector<Scaled>;

// The mean of several runs, and the spread that one more run may have around it.
KnownKernel combined(const Found& found) {
  double plain = 0;
  for (const Scaled& r : found) plain += r.watts;
  plain /= static_cast<double>(found.size());
  double squares = kErrors.prior_runs * std::pow(kErrors.between_runs * plain, 2);
  for (const Scaled& r : found) squares += std::pow(r.watts - plain, 2);
  const double runs = static_cast<double>(found.size());
  const double between = std::max(squares / (kErrors.prior_runs + runs - 1),
                                  std::pow(kErrors.least_between_runs * plain, 2));
  KnownKernel known;
  known.runs = found.size();
  known.first = known.last = found.front().observed;
  double weights = 0;
  double least = found.front().error;
  for (const Scaled& r : found) {
    const double weight = 1 / (std::pow(r.error / kErrors.normal95, 2) + between);
    weights += weight;
    least = std::min(least, r.error);
    known.watts += weight * r.watts;
    known.first = std::min(known.first, r.observed);
    known.last = std::max(known.last, r.observed);
  }
  known.watts /= weights;
  // Runs of one program err alike: their errors do not average out.
  known.sigma = std::hypot(std::sqrt(between), least / kErrors.normal95);
  return known;
}

// Of `known` minus what `own` says, with the errors of both.
struct Differences {
  VectorXd value;
  MatrixXd covariance;

  Differences(const PowerSolution& own, std::span<const KnownPower> known, double model_error)
      : value(static_cast<Index>(known.size())) {
    MatrixXd factors = MatrixXd::Zero(own.watts.size(), value.size());
    for (Index j = 0; j < value.size(); ++j) {
      for (const std::size_t column : known[static_cast<std::size_t>(j)].columns) {
        factors(static_cast<Index>(column), j) = 1;
      }
    }
    // Both errors of the regression: to keep a wrong memory is better than to reject a right one
    // because of an error of the model.
    covariance = factors.transpose() * (own.covariance + own.robust) * factors;
    for (Index j = 0; j < value.size(); ++j) {
      const KnownPower& k = known[static_cast<std::size_t>(j)];
      value[j] = k.watts - factors.col(j).dot(own.watts);
      covariance(j, j) += std::pow(k.sigma, 2) + std::pow(model_error * k.watts, 2);
      for (Index i = 0; i < value.size(); ++i) {
        covariance(i, j) += std::pow(kErrors.known_together, 2) *
                            known[static_cast<std::size_t>(i)].watts * k.watts;
      }
    }
  }
};

}  // namespace

std::vector<KnownKernel> known_kernels(std::span<const RememberedKernel> remembered,
                                       const std::string& board, const ActivityTable& table,
                                       std::optional<double> sm_clock_hertz) {
  std::multimap<std::string_view, const RememberedKernel*> by_name;
  for (const auto& r : remembered) {
    const bool usable = r.board == board && r.power > Power{} && r.launch > Duration{};
    if (usable) by_name.emplace(r.kernel.name, &r);
  }
  std::vector<KnownKernel> out;
  if (board.empty() || by_name.empty()) return out;
  const auto add = [&](std::uint32_t k, std::uint32_t variant, double launch) {
    const auto& key = table.classes[k].key;
    Found found;
    const auto [first, last] = by_name.equal_range(key.name);
    for (auto at = first; at != last; ++at) {
      if (at->second->kernel != key) continue;
      if (const auto one = scaled(*at->second, launch, sm_clock_hertz)) found.push_back(*one);
    }
    if (found.empty()) return;
    out.push_back(combined(found));
    out.back().kernel_class = k;
    out.back().variant = variant;
  };
  std::vector<bool> has_variants(table.classes.size());
  for (const auto& v : table.variants) has_variants[v.kernel_class] = true;
  for (std::uint32_t k = 0; k < table.classes.size(); ++k) {
    if (!has_variants[k]) add(k, model::kNone, table.classes[k].launch());
  }
  for (std::uint32_t v = 0; v < table.variants.size(); ++v) {
    add(table.variants[v].kernel_class, v, table.variants[v].launch);
  }
  return out;
}

std::vector<RememberedKernel> resolved_kernels(const std::string& board, const ActivityTable& table,
                                               const KernelModel& model,
                                               std::optional<double> sm_clock_hertz) {
  std::vector<RememberedKernel> out;
  for (std::uint32_t k = 0; k < table.classes.size(); ++k) {
    const auto& c = table.classes[k];
    if (model.is_pooled(k)) continue;
    for (auto use : model.all_of(k)) {
      const double launch =
          use.variant == model::kNone ? c.launch() : table.variants[use.variant].launch;
      use.overlapped = 0;
      const auto own = model.own_energy_of({&use, 1});
      if (use.busy <= 0 || launch <= 0 || own.joules <= 0) continue;
      const double half_width = kErrors.normal95 * own.sigma;
      if (half_width > std::max(kErrors.resolved * own.joules, kErrors.resolved_watts * use.busy))
        continue;
      out.push_back({board,
                     c.key,
                     duration_of(launch),
                     Power::watts(own.joules / use.busy),
                     Power::watts(kErrors.normal95 * own.sigma / use.busy),
                     sm_clock_hertz,
                     {}});
    }
  }
  return out;
}

std::vector<std::size_t> contradicted(const PowerSolution& own, std::span<const KnownPower> known,
                                      double model_error) {
  const Differences all(own, known, model_error);
  std::vector<Index> open;
  for (Index j = 0; j < all.value.size(); ++j) open.push_back(j);
  std::vector<std::size_t> out;
  while (!open.empty()) {
    const MatrixXd inverse = Eigen::LDLT<MatrixXd>(all.covariance(open, open))
                                 .solve(MatrixXd::Identity(static_cast<Index>(open.size()),
                                                           static_cast<Index>(open.size())));
    // The squared distance of each from what all others predict: by so much its removal lowers the
    // sum of squares.
    const VectorXd residual = inverse * all.value(open);
    const VectorXd squares = residual.array().square() / inverse.diagonal().array();
    const double worst = squares.maxCoeff();
    if (worst <= kErrors.contradicts * kErrors.contradicts) break;
    const double least =
        std::max(worst - kErrors.nearly_as_well, kErrors.suspected * kErrors.suspected);
    std::vector<Index> left;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (squares[static_cast<Index>(i)] < least) {
        left.push_back(open[i]);
      } else {
        out.push_back(static_cast<std::size_t>(open[i]));
      }
    }
    open = std::move(left);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace jouleprof::analysis
