// Normal equations of least squares whose rows have neighbouring factors only.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace jouleprof::analysis {

// Symmetric positive definite normal equations, solved by banded Cholesky decomposition. Most rows
// stay; those of add_near() are replaced from solution to solution, without a copy of the others.
class BandedSystem {
 public:
  static constexpr std::size_t kNear = 3;  // factors of a row that is replaced, at most

  // `n` unknowns; the factors of a row span up to `band` + 1 of them.
  BandedSystem(std::size_t n, std::size_t band);

  // Adds weight * (row . x - value)^2, the row being `factor` from index `first` on.
  void add(std::size_t first, std::span<const double> factor, double value, double weight);

  // Forgets what add_near() added. To be called after the last add().
  void reset_near();

  // As add(), of up to kNear factors, until the next reset_near().
  template <std::size_t Size>
  void add_near(std::size_t first, const std::array<double, Size>& factor, double value,
                double weight) {
    static_assert(Size <= kNear);
    for (std::size_t i = 0; i < Size; ++i) {
      right_[first + i] += weight * factor[i] * value;
      for (std::size_t j = 0; j <= i; ++j) {
        near_[first + j][i - j] += weight * factor[i] * factor[j];
      }
    }
  }

  // The solution; after reset_near(), which the next one needs again.
  std::vector<double> solve();

 private:
  void decompose(std::size_t column);

  // Matrices are stored column by column, from the diagonal down.
  std::size_t n_;
  std::size_t band_;
  std::size_t height_;  // of a column of the factor
  std::vector<double> fixed_, fixed_right_;
  std::vector<std::array<double, kNear>> near_;  // of each column
  std::vector<double> right_;                    // then the solution
  std::vector<double> factor_;
};

}  // namespace jouleprof::analysis
