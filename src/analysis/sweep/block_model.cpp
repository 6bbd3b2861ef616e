#include "analysis/sweep/block_model.h"

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kFewestDegrees = 4;

struct Layout {
  Eigen::MatrixXd design;  // settings, then blocks but the last in effect coding
  Eigen::MatrixXd values;  // log of time and energy
};

std::optional<Layout> layout_of(const Sweep& sweep) {
  std::set<unsigned> blocks;
  std::size_t rows = 0;
  for (const auto& point : sweep.points) {
    for (const auto& sample : point.samples) {
      if (!sample.block) return std::nullopt;
      blocks.insert(*sample.block);
      ++rows;
    }
  }
  const std::size_t settings = sweep.points.size();
  if (blocks.empty() || rows < settings + blocks.size() - 1 + kFewestDegrees) return std::nullopt;
  const auto last = static_cast<Eigen::Index>(blocks.size() - 1);
  const auto offset = static_cast<Eigen::Index>(settings);
  Layout layout{Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(rows), offset + last),
                Eigen::MatrixXd(static_cast<Eigen::Index>(rows), 2)};
  Eigen::Index row = 0;
  for (std::size_t i = 0; i < settings; ++i) {
    for (const auto& sample : sweep.points[i].samples) {
      layout.design(row, static_cast<Eigen::Index>(i)) = 1;
      const auto block = std::distance(blocks.begin(), blocks.find(*sample.block));
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

std::optional<BlockModel> BlockModel::fit(const Sweep& sweep) {
  const auto layout = layout_of(sweep);
  if (!layout) return std::nullopt;
  const Eigen::MatrixXd& design = layout->design;
  const Eigen::MatrixXd normal = design.transpose() * design;
  const Eigen::LDLT<Eigen::MatrixXd> solver(normal);
  // Blocks without a common setting cannot be compared.
  if (solver.info() != Eigen::Success || solver.vectorD().minCoeff() < 1e-9) return std::nullopt;
  const Eigen::MatrixXd estimate = solver.solve(design.transpose() * layout->values);
  const Eigen::MatrixXd residual = layout->values - design * estimate;

  BlockModel model;
  model.degrees_ = static_cast<std::size_t>(design.rows() - design.cols());
  const auto settings = static_cast<Eigen::Index>(sweep.points.size());
  for (Eigen::Index i = 0; i < settings; ++i) {
    model.means_.push_back({std::exp(estimate(i, 0)), std::exp(estimate(i, 1)), {}});
  }
  const Eigen::Matrix2d noise =
      residual.transpose() * residual / static_cast<double>(model.degrees_);
  model.time_ = std::sqrt(noise(0, 0));
  model.slope_ = model.time_ > 0 ? noise(0, 1) / model.time_ : 0;
  model.energy_ = std::sqrt(std::max(0.0, noise(1, 1) - model.slope_ * model.slope_));

  const Eigen::MatrixXd inverse =
      solver.solve(Eigen::MatrixXd::Identity(design.cols(), design.cols()));
  const Eigen::MatrixXd factor = inverse.topLeftCorner(settings, settings).llt().matrixL();
  for (Eigen::Index i = 0; i < settings; ++i) {
    auto& row = model.factor_.emplace_back();
    for (Eigen::Index k = 0; k <= i; ++k) row.push_back(factor(i, k));
  }
  return model;
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
    drawn.push_back({means_[i].seconds * std::exp(widening * time_shift),
                     means_[i].joules * std::exp(widening * energy_shift),
                     {}});
  }
  return drawn;
}

}  // namespace jouleprof::analysis
