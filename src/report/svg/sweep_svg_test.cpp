#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/svg/svg_format.h"

namespace jouleprof::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
  return n;
}

AdvisedSweep advised() {
  AdvisedSweep sweep{{"power_limit_watts",
                      {},
                      {{300, {{10, 3000, {}}, {10.1, 3010, {}}}}, {200, {{12, 2400, {}}}}},
                      {}},
                     fail(Errc::kInternal, "")};
  return sweep;
}

TEST(SweepSvg, HasEachMeasurementAndTheRecommendedPoint) {
  auto sweep = advised();
  sweep.advice = analysis::recommend(sweep.sweep);
  const auto svg = sweep_svg(sweep, {});
  EXPECT_THAT(svg, HasSubstr("200 W recommended"));
  EXPECT_EQ(count(svg, "class=\"raw\""), 4U * 3);  // four panels
  EXPECT_EQ(count(svg, "class=\"best\""), 4U);
  EXPECT_EQ(count(svg, "<path"), 4U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SweepSvg, OfOurOwnRunsAlsoShowsTheStateOfTheGpu) {
  model::SweepRun run;
  run.block = 1;
  run.setting = 300;
  run.seconds = run.joules = 1;
  run.end_celsius = 60;
  run.sm_utilisation = 0.99;
  auto unranked = run;
  unranked.unranked = "heat";
  auto never_reached = run;
  never_reached.setting = 250;
  const auto svg = sweep_svg(advised(), {run, unranked, never_reached});
  EXPECT_THAT(svg, HasSubstr("temperature at the end (C)"));
  EXPECT_THAT(svg, HasSubstr("utilisation of compute (%)"));
  EXPECT_THAT(svg, Not(HasSubstr("utilisation of memory")));
  EXPECT_EQ(count(svg, "class=\"raw\""), 4U * 3 + 2);
  EXPECT_EQ(count(svg, "class=\"best\""), 0U);  // there is no recommendation
}

TEST(SweepText, WhatTheRecommendedSettingChangesHasItsInterval) {
  auto sweep = advised();
  sweep.sweep.points[0].samples = {{10, 3000, {}}, {13, 2300, {}}, {9, 2500, {}}};
  sweep.sweep.points[1].samples = {{12, 2400, {}}, {9, 2900, {}}, {11, 2200, {}}};
  sweep.advice = analysis::recommend(sweep.sweep);
  const auto& best = sweep.advice->points[sweep.advice->best];
  ASSERT_LT(best.saving.interval->low, 0);  // nothing is known of its sign
  TextOptions wide;
  wide.width = 200;
  EXPECT_THAT(recommendation_to_text({sweep}, {}, wide),
              HasSubstr("200 W: saving " + with_interval(best.saving) + " of energy and slowdown " +
                        with_interval(best.slowdown) + " against 300 W"));
}

TEST(Monotone, TheCurveDoesNotOvershoot) {
  const std::vector<CurvePoint> points{{0, 0}, {1, 0}, {2, 10}, {2.1, 10.1}, {4, 3}, {5, 3.5}};
  const auto slopes = monotone_slopes(points);
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double h = points[i + 1].x - points[i].x;
    const double low = std::min(points[i].y, points[i + 1].y);
    const double high = std::max(points[i].y, points[i + 1].y);
    for (int k = 0; k <= 50; ++k) {
      const double t = k / 50.0;
      const double y = (2 * t * t * t - 3 * t * t + 1) * points[i].y +
                       (t * t * t - 2 * t * t + t) * h * slopes[i] +
                       (3 * t * t - 2 * t * t * t) * points[i + 1].y +
                       (t * t * t - t * t) * h * slopes[i + 1];
      EXPECT_GE(y, low - 1e-9);
      EXPECT_LE(y, high + 1e-9);
    }
  }
}

TEST(Monotone, ALineStaysALine) {
  for (const double slope : monotone_slopes({{0, 1}, {1, 3}, {3, 7}})) EXPECT_DOUBLE_EQ(slope, 2);
}

}  // namespace
}  // namespace jouleprof::report
