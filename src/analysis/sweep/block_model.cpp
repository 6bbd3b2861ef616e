#include "analysis/sweep/block_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace jouleprof::analysis {
namespace {

// Fewer are not worth what the blocks' effects take from them.
constexpr std::size_t kFewestDegreesInBlocks = 4;
// Of one degree of freedom, draws may be far out; their exponentials must stay finite.
constexpr double kGreatestShift = 30;

// With one block: settings alone.
struct Layout {
  Eigen::MatrixXd design;  // settings, then blocks but the last in effect coding
  Eigen::MatrixXd values;  // log of time and energy
};

bool is_complete(const Sweep& sweep, std::size_t blocks) {
  if (blocks == 1) return true;
  std::map<std::optional<unsigned>, std::size_t> first;
  for (const auto& point : sweep.points) {
    std::map<std::optional<unsigned>, std::size_t> counts;
    for (const auto& sample : point.samples) ++counts[sample.block];
    if (first.empty()) first = counts;
    if (counts != first || counts.size() != blocks) return false;
  }
  return true;
}

Layout layout_of(const Sweep& sweep, const std::set<unsigned>& blocks, std::size_t rows) {
  const auto last = static_cast<Eigen::Index>(blocks.size() - 1);
  const auto offset = static_cast<Eigen::Index>(sweep.points.size());
  Layout layout{Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(rows), offset + last),
                Eigen::MatrixXd(static_cast<Eigen::Index>(rows), 2)};
  Eigen::Index row = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    for (const auto& sample : sweep.points[i].samples) {
      layout.design(row, static_cast<Eigen::Index>(i)) = 1;
      const auto block =
          last == 0 ? 0 : std::distance(blocks.begin(), blocks.find(sample.block.value_or(0)));
      if (block < last) {
        layout.design(row, offset + block) = 1;
      } else {
        layout.design.row(row).tail(last).setConstant(-1);
      }
      layout.values(row, 0) = std::log(sample.seconds);
      layout.values(row, 1) = std::log(sample.joules);
      ++row;
    }
  }
  return layout;
}

}  // namespace

BlockModel::BlockModel(const Sweep& sweep) {
  if (fit(sweep, true, kFewestDegreesInBlocks) || fit(sweep, false, 1)) return;
  for (const auto& point : sweep.points) {
    means_.push_back({point.mean_seconds(), point.mean_joules(), {}});
  }
}

bool BlockModel::fit(const Sweep& sweep, bool in_blocks, std::size_t fewest_degrees) {
  std::set<unsigned> blocks;
  std::size_t rows = 0;
  for (const auto& point : sweep.points) {
    for (const auto& sample : point.samples) {
      if (in_blocks && !sample.block) return false;
      blocks.insert(in_blocks ? *sample.block : 0);
      ++rows;
    }
  }
  if (blocks.empty() || rows < sweep.points.size() + blocks.size() - 1 + fewest_degrees) {
    return false;
  }
  const Layout layout = layout_of(sweep, blocks, rows);
  const Eigen::MatrixXd& design = layout.design;
  const Eigen::MatrixXd normal = design.transpose() * design;
  const Eigen::LDLT<Eigen::MatrixXd> solver(normal);
  // Blocks without a common setting cannot be compared.
  if (solver.info() != Eigen::Success || solver.vectorD().minCoeff() < 1e-9) return false;
  const Eigen::MatrixXd estimate = solver.solve(design.transpose() * layout.values);
  const Eigen::MatrixXd residual = layout.values - design * estimate;

  degrees_ = static_cast<std::size_t>(design.rows() - design.cols());
  const auto settings = static_cast<Eigen::Index>(sweep.points.size());
  // Where each block has each setting equally often, its samples' mean is in an average block.
  const bool complete = is_complete(sweep, blocks.size());
  for (Eigen::Index i = 0; i < settings; ++i) {
    const auto& point = sweep.points[static_cast<std::size_t>(i)];
    means_.push_back(complete
                         ? SweepSample{point.mean_seconds(), point.mean_joules(), {}}
                         : SweepSample{std::exp(estimate(i, 0)), std::exp(estimate(i, 1)), {}});
  }
  const Eigen::Matrix2d noise = residual.transpose() * residual / static_cast<double>(degrees_);
  time_ = std::sqrt(noise(0, 0));
  slope_ = time_ > 0 ? noise(0, 1) / time_ : 0;
  energy_ = std::sqrt(std::max(0.0, noise(1, 1) - slope_ * slope_));

  const Eigen::MatrixXd inverse =
      solver.solve(Eigen::MatrixXd::Identity(design.cols(), design.cols()));
  const Eigen::MatrixXd factor = inverse.topLeftCorner(settings, settings).llt().matrixL();
  for (Eigen::Index i = 0; i < settings; ++i) {
    auto& row = factor_.emplace_back();
    for (Eigen::Index k = 0; k <= i; ++k) row.push_back(factor(i, k));
  }
  return true;
}

std::vector<SweepSample> BlockModel::draw(std::mt19937_64& random) const {
  std::normal_distribution<double> normal;
  std::chi_squared_distribution<double> chi_squared(static_cast<double>(degrees_));
  const double widening = std::sqrt(static_cast<double>(degrees_) / chi_squared(random));
  std::vector<double> time(means_.size());
  std::vector<double> energy(means_.size());
  for (std::size_t i = 0; i < means_.size(); ++i) {
    const double first = normal(random);
    time[i] = time_ * first;
    energy[i] = slope_ * first + energy_ * normal(random);
  }
  std::vector<SweepSample> drawn;
  for (std::size_t i = 0; i < means_.size(); ++i) {
    double time_shift = 0;
    double energy_shift = 0;
    for (std::size_t k = 0; k <= i; ++k) {
      time_shift += factor_[i][k] * time[k];
      energy_shift += factor_[i][k] * energy[k];
    }
    const auto factor = [&](double shift) {
      return std::exp(std::clamp(widening * shift, -kGreatestShift, kGreatestShift));
    };
    drawn.push_back(
        {means_[i].seconds * factor(time_shift), means_[i].joules * factor(energy_shift), {}});
  }
  return drawn;
}

Interval interval_of(std::vector<double> values, double coverage) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at((1 - coverage) / 2), at((1 + coverage) / 2)};
}

}  // namespace jouleprof::analysis
