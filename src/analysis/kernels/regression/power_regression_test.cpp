#include "analysis/kernels/regression/power_regression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "analysis/kernels/regression/row_errors.h"

namespace jouleprof::analysis {
namespace {

// Rows of 100 ms in which two columns share the time at random.
PowerRows random_rows(int n, double a, double b, double idle, double noise, double moving = 0,
                      bool alike = false) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  PowerRows rows;
  rows.columns = 2;
  double last = 0;
  for (int i = 0; i < n; ++i) {
    const double x = uniform(random);
    const double y = alike ? 0.5 * x : (1 - x) * uniform(random);
    const double e = noise * normal(random);
    rows.rows.push_back({0.1 * i, 0.1 * (i + 1), idle + a * x + b * y + e + moving * last, true,
                         rows.terms.size()});
    rows.terms.push_back({0, static_cast<float>(x)});
    rows.terms.push_back({1, static_cast<float>(y)});
    last = e;
  }
  return rows;
}

std::vector<PowerPrior> wide(double mean = 200) {
  return {{90, 1, 0, 1000}, {mean, 500, 0, 2000}, {mean, 500, 0, 2000}};
}

TEST(PowerRegression, FindsTheWattsExactlyWithoutNoise) {
  const auto found = solve_power(random_rows(200, 350, 120, 90, 0), wide());
  EXPECT_NEAR(found.watts[0], 90, 0.05);
  EXPECT_NEAR(found.watts[1], 350, 0.05);
  EXPECT_NEAR(found.watts[2], 120, 0.05);
  EXPECT_GT(found.explained, 0.99999);
}

TEST(PowerRegression, ItsCovarianceCoversTheErrors) {
  const auto found = solve_power(random_rows(400, 350, 120, 90, 8), wide());
  EXPECT_NEAR(found.counter_sigma, 8, 1);
  for (int k = 0; k < 3; ++k) {
    const double truth[] = {90, 350, 120};
    EXPECT_LT(std::abs(found.watts[k] - truth[k]), 3.5 * std::sqrt(found.covariance(k, k)));
  }
  EXPECT_LT(std::sqrt(found.covariance(1, 1)), 4);
}

TEST(PowerRegression, IdleIsFixedAndItsErrorIsInAllOthers) {
  auto priors = wide();
  const auto sure = solve_power(random_rows(400, 350, 120, 90, 2), priors);
  priors[0].mean = 95;
  priors[0].sigma = 4;
  const auto off = solve_power(random_rows(400, 350, 120, 90, 2), priors);
  EXPECT_NEAR(off.watts[0], 95, 0.01);
  EXPECT_NEAR(std::sqrt(off.covariance(0, 0)), 4, 0.1);
  // The first column takes the opposite error, within its interval.
  EXPECT_LT(off.watts[1], sure.watts[1] - 3);
  EXPECT_LT(std::abs(off.watts[1] - 350), 2 * std::sqrt(off.covariance(1, 1)));
}

TEST(PowerRegression, AnUncertainIdleIsEstimated) {
  auto priors = wide();
  priors[0] = {60, 25, 0, 1000};
  const auto found = solve_power(random_rows(400, 350, 120, 90, 2), priors);
  EXPECT_NEAR(found.watts[0], 90, 1);
  EXPECT_LT(std::sqrt(found.covariance(0, 0)), 1);
}

TEST(PowerRegression, NegativelyCorrelatedNeighboursNarrowTheSum) {
  const auto alone = solve_power(random_rows(2000, 350, 120, 90, 8, 0), wide());
  const auto linked = solve_power(random_rows(2000, 350, 120, 90, 8, -0.9), wide());
  // Errors cancel in a sum of many rows: the mean power has a smaller error.
  Eigen::VectorXd mean(3);
  mean << 1, 0.5, 0.25;
  EXPECT_LT(mean.dot(linked.covariance * mean), 0.5 * mean.dot(alone.covariance * mean));
  EXPECT_NEAR(linked.watts[1], 350, 2);
}

TEST(PowerRegression, CollinearColumnsKeepThePriorAndAWideInterval) {
  const auto found = solve_power(random_rows(400, 300, 100, 90, 2, 0, true),
                                 {{90, 1, 0, 1000}, {200, 100, 0, 600}, {200, 100, 0, 600}});
  // Determined: a + b / 2 = 350. The prior selects the smallest change of both.
  EXPECT_NEAR(found.watts[1] + 0.5 * found.watts[2], 350, 3);
  EXPECT_NEAR(found.watts[1], 240, 5);
  EXPECT_GT(std::sqrt(found.covariance(2, 2)), 80);
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(3);
  sum[1] = 1;
  sum[2] = 0.5;
  EXPECT_LT(std::sqrt(found.variance(sum)), 3);
}

TEST(PowerRegression, WattsStayWithinTheirBounds) {
  const auto found = solve_power(random_rows(300, 350, -80, 90, 1), wide());  // -80 W: below idle
  EXPECT_EQ(found.watts[2], 0);
  EXPECT_GT(found.watts[1], 200);
}

// Two columns nearly always run together, and a third is at its bound: the others have the watts
// that they have without it.
TEST(PowerRegression, ABoundMovesCollinearColumnsAllTheWay) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  PowerRows with;
  PowerRows without;
  with.columns = 3;
  without.columns = 2;
  for (int i = 0; i < 600; ++i) {
    const double x = 0.5 * uniform(random);
    const double y = x * (1 + 0.02 * uniform(random)) / 2;
    const double z = 0.3 * uniform(random);
    for (PowerRows* rows : {&with, &without}) {
      rows->rows.push_back(
          {0.1 * i, 0.1 * (i + 1), 90 + 400 * x + 100 * y - 80 * z, true, rows->terms.size()});
      rows->terms.push_back({0, static_cast<float>(x)});
      rows->terms.push_back({1, static_cast<float>(y)});
    }
    with.terms.push_back({2, static_cast<float>(z)});
  }
  std::vector<PowerPrior> priors{{90, 1, 0, 1000}, {200, 500, 0, 2000}, {200, 500, 0, 2000}};
  const auto expected = solve_power(without, priors);
  priors.push_back({200, 500, 0, 2000});
  const auto found = solve_power(with, priors);
  EXPECT_EQ(found.watts[3], 0);
  EXPECT_NEAR(found.watts[1], expected.watts[1], 0.5);
  EXPECT_NEAR(found.watts[2], expected.watts[2], 0.5);
}

TEST(PowerRegression, OutliersHaveLittleWeight) {
  auto rows = random_rows(400, 350, 120, 90, 2);
  for (std::size_t i = 0; i < 400; i += 40) rows.rows[i].watts += 2000;
  const auto found = solve_power(rows, wide());
  EXPECT_NEAR(found.watts[1], 350, 20);
}

// Rows in which all columns rest say nothing of them.
TEST(PowerRegression, WhatIsKnownErrsTogetherToo) {
  PowerRows rows = random_rows(200, 350, 120, 90, 1);
  for (auto& term : rows.terms) term.share = 0;
  for (auto& row : rows.rows) row.watts = 90;
  const std::vector<KnownPower> known{{{1}, 300, 3}, {{2}, 100, 1}};
  const auto found = solve_power(rows, wide(), nullptr, known);
  EXPECT_NEAR(found.watts[1], 300, 0.5);
  EXPECT_NEAR(found.watts[2], 100, 0.5);
  const double common = kErrors.known_together;
  EXPECT_NEAR(std::sqrt(found.covariance(1, 1)), std::hypot(3, 300 * common), 0.1);
  EXPECT_NEAR(found.covariance(1, 2), 300 * 100 * common * common, 1);
}

// Of twice the rows, those whose power may differ count less.
TEST(PowerRegression, ADoubtfulRowCountsLess) {
  PowerRows rows = random_rows(400, 350, 120, 90, 2);
  for (std::size_t i = 0; i < rows.rows.size(); i += 2) {
    rows.rows[i].watts += 40;
    rows.rows[i].doubt = 40;
  }
  const double off = solve_power(rows, wide()).watts[1] - 350;
  for (auto& row : rows.rows) row.doubt = 0;
  EXPECT_LT(off, 0.9 * (solve_power(rows, wide()).watts[1] - 350));
}

double share(const PowerRows& rows, std::size_t row, std::uint32_t column) {
  double sum = 0;
  for (const auto& term : rows.of(row)) {
    if (term.column == column) sum += term.share;
  }
  return sum;
}

// Idle power that differs by 10 W drifts; by 80 W, something else is wrong.
TEST(DriftingIdle, DriftsByAFewWatts) {
  for (const double less : {10.0, 80.0}) {
    PowerRows rows = random_rows(400, 350, 120, 90, 1);
    for (std::size_t i = 150; i < 250; ++i) rows.rows[i].watts -= less;
    const auto drift = drifting_idle(solve_power(rows, wide()), rows, wide(), 0);
    EXPECT_GT(drift.watts, 2);
    EXPECT_LT(drift.watts, kErrors.most_drift);
  }
}

TEST(SetScale, RowsHaveAPartOfAHundredthOfTheirPower) {
  PowerRows rows;
  rows.columns = 3;
  rows.rows = {{0, 1, 300, true, 0}, {2, 3, 300, true, 1}, {3, 4, 300, true, 3}};
  rows.terms = {{0, 0.5F}, {0, 0.5F}, {1, 0.25F}, {1, 1.0F}};
  const Eigen::Vector4d watts(100, 400, 80, 0);
  for (int round = 0; round < 2; ++round) {  // the second one replaces the first
    set_scale(
        rows, [](const PowerRow& row) { return row.begin < 2   ? 0
                                               : row.begin < 3 ? 1
                                                               : 0.5; }, 2,
        watts);
    EXPECT_EQ(share(rows, 0, 2), 0);
    EXPECT_NEAR(share(rows, 1, 2), (0.5 * 400 + 0.25 * 80) / 100, 1e-6);
    EXPECT_NEAR(share(rows, 2, 2), 0.5 * 80 / 100, 1e-6);
    EXPECT_NEAR(share(rows, 1, 0), 0.5, 1e-6);
    EXPECT_NEAR(share(rows, 2, 1), 1, 1e-6);
    EXPECT_EQ(rows.rows[0].first, 0u);
  }
}

// Rows shorter than, as long as, and longer than the columns that are added at once.
TEST(SparseRow, OuterProductIsThatOfTheDenseRow) {
  for (Eigen::Index size = 0; size <= 11; ++size) {
    std::vector<Factor> row;
    Eigen::VectorXd dense = Eigen::VectorXd::Zero(30);
    for (Eigen::Index i = 0; i < size; ++i) {
      row.push_back({2 * i + 1, 0.5 * static_cast<double>(i) - 1.25});
      dense[2 * i + 1] = row.back().value;
    }
    Eigen::MatrixXd sum = Eigen::MatrixXd::Constant(30, 30, 0.25);
    Eigen::MatrixXd expected = sum;
    add_outer_product(row, 2, sum);
    expected.triangularView<Eigen::Lower>() += 2 * dense * dense.transpose();
    EXPECT_EQ(sum, expected) << size;
  }
}

}  // namespace

}  // namespace jouleprof::analysis
