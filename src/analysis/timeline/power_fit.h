// Energy over time with a finer resolution than the samples: from overlapping means over windows,
// and the energy counter at its updates.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace jouleprof::analysis {

// Symmetric positive definite normal equations of least squares whose rows have neighbouring
// factors only, solved by banded Cholesky decomposition. Most rows stay; those of add_near() are
// replaced from solution to solution, without a copy of the others.
class BandedSystem {
 public:
  static constexpr std::size_t kNear = 3;  // factors of a row that is replaced, at most

  // `n` unknowns; the factors of a row span up to `band` + 1 of them.
  BandedSystem(std::size_t n, std::size_t band);

  // Adds weight * (row . x - value)^2, the row being `factor` from index `first` on.
  void add(std::size_t first, std::span<const double> factor, double value, double weight);

  // Forgets what add_near() added. To be called after the last add().
  void reset_near();

  // Like add(), for up to kNear factors, until the next reset_near().
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

// All times in seconds, energies in joules.
struct FitProblem {
  // The mean observed power over [begin, end] was `watts`, with standard error `sigma`.
  struct Mean {
    double begin, end, watts, sigma;
  };
  // The energy since the reference was `joules` at `at`, with standard error `sigma`. `seen`: not
  // corrected for the sensor's lag.
  struct Point {
    double at, joules, sigma;
    bool seen = false;
  };
  // The time constant of the sensors' first-order lag; 0: none.
  double time_constant = 0;
  std::vector<double> knots;       // increasing, at least three
  std::vector<Mean> means;         // each within the knots
  std::vector<Point> points;       // each within the knots
  std::vector<double> usual_jump;  // per knot: plausible change of power there, watts; may be empty
  double floor_watts = 0;          // power is never below
  double noise_watts = 1;          // smaller changes of power are noise
  int rounds = 6;                  // of reweighting
};

// The energy at each knot, never decreasing; power is constant between knots.
//
// Sensor response: observed power is y with tau * dy/dt = P - y, tau being the time constant. The
// observed energy up to t is E(t) - tau * y(t): linear in E at the knots of the last 6 time
// constants; before them power is taken as constant.
//
// Regularised least squares over E at the knots. Rows are the means, the points, and the changes of
// power: a change D at a knot costs log(D^2 + noise^2), minimised by iteratively reweighted least
// squares (Chartrand and Yin 2008, p = 0). The penalty keeps steps sharp and smooths noise. The
// normal equations are banded (Cholesky): time is linear in the number of knots.
std::vector<double> fit_energy(const FitProblem& problem);

}  // namespace jouleprof::analysis
