#include "analysis/kernels/memory_check.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kApart = 2.5;       // sigma
constexpr double kSuspected = 2;     // sigma: the least of another explanation
constexpr double kNearlyAsWell = 4;  // difference in squared sigmas: twice the log-likelihood

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
    }
  }
};

}  // namespace

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
    if (worst <= kApart * kApart) break;
    const double least = std::max(worst - kNearlyAsWell, kSuspected * kSuspected);
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
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace jouleprof::analysis
