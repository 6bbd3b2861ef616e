#include "analysis/power_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

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

TEST(PowerFit, EnergyNeverDecreases) {
  auto p = sampled([](double t) { return t < 0.5 ? 0.0 : 300 * (t - 0.5); });
  for (std::size_t i = 0; i < p.means.size(); ++i) p.means[i].watts += i % 2 == 0 ? 10 : -10;
  const auto joules = fit_energy(p);
  EXPECT_TRUE(std::is_sorted(joules.begin(), joules.end()));
}

}  // namespace
}  // namespace jouleprof::analysis
