#include "analysis/timeline/banded_system.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kRows = 8;  // of a column that are computed at once
using Rows = Eigen::Array<double, kRows, 1>;

}  // namespace

BandedSystem::BandedSystem(std::size_t n, std::size_t band)
    : n_(n),
      band_(std::max(band, kNear - 1)),
      height_(band_ + kRows),
      fixed_(n * (band_ + 1), 0.0),
      fixed_right_(n, 0.0),
      near_(n),
      right_(n + height_, 0.0),
      factor_(n * height_, 0.0) {}

void BandedSystem::add(std::size_t first, std::span<const double> factor, double value,
                       double weight) {
  for (std::size_t i = 0; i < factor.size(); ++i) {
    if (factor[i] == 0) continue;
    fixed_right_[first + i] += weight * factor[i] * value;
    for (std::size_t j = 0; j <= i; ++j) {
      fixed_[(first + j) * (band_ + 1) + i - j] += weight * factor[i] * factor[j];
    }
  }
}

void BandedSystem::reset_near() {
  for (std::size_t j = 0; j < n_; ++j) {
    std::copy_n(fixed_.begin() + static_cast<std::ptrdiff_t>(j * (band_ + 1)), kNear,
                near_[j].begin());
  }
  std::copy(fixed_right_.begin(), fixed_right_.end(), right_.begin());
}

std::vector<double> BandedSystem::solve() {
  for (std::size_t j = 0; j < n_; ++j) {
    decompose(j);
    const double* const column = &factor_[j * height_];
    const double x = right_[j] /= column[0];
    for (std::size_t i = 1; i <= band_; ++i) right_[j + i] -= column[i] * x;
  }
  std::fill(right_.begin() + static_cast<std::ptrdiff_t>(n_), right_.end(), 0.0);
  for (std::size_t j = n_; j-- > 0;) {
    const double* const column = &factor_[j * height_];
    double x = right_[j];
    for (std::size_t i = band_; i > 0; --i) x -= column[i] * right_[j + i];
    right_[j] = x / column[0];
  }
  return {right_.begin(), right_.begin() + static_cast<std::ptrdiff_t>(n_)};
}

// Column j of the factor, from the columns before. Below the band, columns hold zeros, so that
// each block of rows takes whole blocks of them.
void BandedSystem::decompose(std::size_t j) {
  double* const column = &factor_[j * height_];
  std::copy_n(near_[j].begin(), kNear, column);
  std::copy_n(fixed_.begin() + static_cast<std::ptrdiff_t>(j * (band_ + 1) + kNear),
              band_ + 1 - kNear, column + kNear);
  double pivot = 0;
  for (std::size_t first = 0; first <= band_; first += kRows) {
    Eigen::Map<Rows> target(column + first);
    Rows rows = target;
    const std::size_t row = j + first;
    for (std::size_t k = row > band_ ? row - band_ : 0; k < j; ++k) {
      const double* const before = &factor_[k * height_];
      rows -= Eigen::Map<const Rows>(before + (row - k)) * before[j - k];
    }
    if (first == 0) pivot = std::sqrt(std::max(rows[0], 1e-12));
    rows /= pivot;
    target = rows;
  }
  column[0] = pivot;
  std::fill(column + band_ + 1, column + height_, 0.0);
}

}  // namespace jouleprof::analysis
