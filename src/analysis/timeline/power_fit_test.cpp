#include "analysis/timeline/power_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

// The row's factors differ, so that a wrong place of one changes the solution.
std::vector<double> factors(std::size_t size, std::size_t seed) {
  std::vector<double> out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(std::sin(1.0 + 2.3 * double(seed + 7 * i)));
  return out;
}

double product(const std::vector<double>& row, const std::vector<double>& x, std::size_t first) {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) sum += row[i] * x[first + i];
  return sum;
}

// Rows that one solution satisfies exactly have it as their least squares.
TEST(BandedSystem, FindsTheSolutionOfConsistentRows) {
  for (const std::size_t band : {1U, 2U, 7U, 8U, 9U, 19U}) {
    constexpr std::size_t kUnknowns = 40;
    std::vector<double> x;
    for (std::size_t i = 0; i < kUnknowns; ++i) x.push_back(100 + 10 * std::cos(double(i)));
    BandedSystem system(kUnknowns, band);
    for (std::size_t first = 0; first + band < kUnknowns; ++first) {
      const auto row = factors(band + 1, first);
      system.add(first, row, product(row, x, first), 2.0);
    }
    for (int round = 0; round < 2; ++round) {
      system.reset_near();
      for (std::size_t i = 0; i + 1 < kUnknowns; ++i) {
        system.add_near(i, std::array{-1.0, 0.5}, -x[i] + 0.5 * x[i + 1], 1.0 + round);
      }
      system.add_near(kUnknowns - 1, std::array{1.0}, x.back(), 3.0);
      const auto found = system.solve();
      ASSERT_EQ(found.size(), x.size());
      for (std::size_t i = 0; i < kUnknowns; ++i) EXPECT_NEAR(found[i], x[i], 1e-8) << band;
    }
  }
}

TEST(BandedSystem, ForgetsTheRowsOfTheSolutionBefore) {
  BandedSystem system(4, 2);
  for (std::size_t i = 0; i < 4; ++i) system.add(i, std::array{1.0}, 1.0, 1.0);
  for (const double value : {5.0, 9.0}) {
    system.reset_near();
    system.add_near(1, std::array{1.0}, value, 1.0);
    const auto found = system.solve();
    EXPECT_NEAR(found[0], 1, 1e-12);
    EXPECT_NEAR(found[1], 0.5 * (1 + value), 1e-12);
  }
}

// Samples of 25 ms every 20 ms of `joules` over one second, on knots 5 ms apart.
template <typename Joules>
FitProblem sampled(Joules joules) {
  FitProblem p;
  for (int k = 0; k <= 200; ++k) p.knots.push_back(0.005 * k);
  for (int i = 0; i < 48; ++i) {
    const double begin = 0.003 + 0.02 * i;
    const double end = begin + 0.025;
    p.means.push_back({begin, end, (joules(end) - joules(begin)) / 0.025, 1.0});
  }
  return p;
}

TEST(PowerFit, ConstantPowerComesBackExactly) {
  const auto p = sampled([](double t) { return 250 * t; });
  const auto joules = fit_energy(p);
  for (std::size_t k = 1; k < joules.size(); ++k) {
    EXPECT_NEAR(joules[k] - joules[0], 250 * p.knots[k], 1e-9);
  }
}

TEST(PowerFit, AStepStaysAStep) {
  const auto truth = [](double t) { return 100 * t + 400 * std::max(t - 0.5, 0.0); };
  const auto p = sampled(truth);
  const auto joules = fit_energy(p);
  const auto at = [&](double t) {
    return joules[static_cast<std::size_t>(std::lround(t / 0.005))];
  };
  EXPECT_NEAR(at(0.5) - at(0.4), 10, 0.1);
  EXPECT_NEAR(at(0.6) - at(0.5), 50, 0.1);
}

TEST(PowerFit, PointsSetTheMagnitude) {
  auto p = sampled([](double t) { return 100 * t; });
  for (auto& m : p.means) m.sigma = 5;
  for (double t = 0.05; t < 1; t += 0.1) p.points.push_back({t, 110 * t, 0.001});
  const auto joules = fit_energy(p);
  EXPECT_NEAR(joules[190] - joules[10], 110 * 0.9, 0.1);
}

TEST(PowerFit, ReadingsMayComeInAnyOrder) {
  auto p = sampled([](double t) { return 100 * t + 40 * std::sin(9 * t); });
  p.time_constant = 0.012;
  for (double t = 0.05; t < 1; t += 0.1) p.points.push_back({t, 110 * t, 0.001, t > 0.5});
  const auto expected = fit_energy(p);
  std::reverse(p.points.begin(), p.points.end());
  const auto joules = fit_energy(p);
  for (std::size_t k = 0; k < joules.size(); ++k) EXPECT_NEAR(joules[k], expected[k], 1e-9);
}

// The response of a sensor with a first-order lag outlasts a burst by several samples.
TEST(PowerFit, ResolvesBurstsOfTenMillisecondsThroughAFirstOrderLag) {
  constexpr double kRise = 0.0132;
  constexpr double kMean = 0.0038;
  simulated::Truth truth;
  truth.hold(122, 0.2);
  std::vector<double> edges;
  for (int i = 0; i < 60; ++i) {
    edges.push_back(truth.end());
    truth.hold(620, 0.01);
    edges.push_back(truth.end());
    truth.hold(122, 0.031 + 0.0017 * (i * 13 % 31));
  }
  truth.hold(122, 0.2);
  FitProblem p;
  p.time_constant = kRise;
  p.noise_watts = 25;
  p.floor_watts = 85;
  p.knots = edges;
  for (double t = 0; t < truth.end(); t += 0.005) {
    const auto near = [t](double edge) { return std::abs(edge - t) < 0.0015; };
    if (std::none_of(edges.begin(), edges.end(), near)) p.knots.push_back(t);
  }
  std::sort(p.knots.begin(), p.knots.end());
  for (const double t : p.knots) {
    p.usual_jump.push_back(std::binary_search(edges.begin(), edges.end(), t) ? 1240 : 0);
  }
  for (double end = 0.05; end < p.knots.back(); end += 0.02) {
    const double seen = truth.joules_seen(end, kRise) - truth.joules_seen(end - kMean, kRise);
    p.means.push_back({end - kMean, end, seen / kMean, 3.0});
  }
  const auto joules = fit_energy(p);
  const auto at = [&](double t) {
    const auto knot = std::lower_bound(p.knots.begin(), p.knots.end(), t);
    return joules[static_cast<std::size_t>(knot - p.knots.begin())];
  };
  for (std::size_t i = 0; i < edges.size(); i += 2) {
    EXPECT_NEAR(at(edges[i + 1]) - at(edges[i]), 6.2, 0.1 * 6.2) << "burst " << i / 2;
  }
  EXPECT_NEAR(at(edges.back()) - at(edges.front()), truth.joules(edges.front(), edges.back()), 0.5);
}

TEST(PowerFit, EnergyNeverDecreases) {
  auto p = sampled([](double t) { return t < 0.5 ? 0.0 : 300 * (t - 0.5); });
  for (std::size_t i = 0; i < p.means.size(); ++i) p.means[i].watts += i % 2 == 0 ? 10 : -10;
  const auto joules = fit_energy(p);
  EXPECT_TRUE(std::is_sorted(joules.begin(), joules.end()));
}

}  // namespace

}  // namespace jouleprof::analysis
