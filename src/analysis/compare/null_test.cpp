// False alarms and power of the gate, on simulated comparisons: a board that warms up and drifts,
// sessions that differ, and noise with heavy tails.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/compare/compare.h"
#include "analysis/compare/example_figures_test.h"
#include "analysis/compare/sides.h"

namespace jouleprof::analysis {
namespace {

constexpr int kComparisons = 500;

// Sessions of one side, on different days.
struct Sessions {
  int count;
  int runs;             // of each
  double apart = 0.01;  // relative
};

class Laboratory {
 public:
  explicit Laboratory(unsigned seed) : random_(seed) {}

  // Ten pairs in one session; all logs.
  std::pair<std::vector<RunFigures>, std::vector<RunFigures>> pairs(double effect) {
    const double session = 0.03 * normal_(random_);
    const double drift = 0.002 * normal_(random_);     // a run
    const double warm_up = -0.02 * uniform_(random_);  // of the first run
    std::vector<RunFigures> sides[2];
    for (int run = 0; run < 20; ++run) {
      const bool is_after = (run % 2 == 1) != is_after_first(static_cast<unsigned>(run / 2));
      const double log = session + drift * run + warm_up * std::exp(-run / 3.0) + noise() +
                         (is_after ? effect : 0);
      sides[is_after].push_back(example_run(1000 * std::exp(log), run));
    }
    return {std::move(sides[0]), std::move(sides[1])};
  }

  std::pair<std::vector<RunFigures>, std::vector<RunFigures>> sessions(double effect,
                                                                       Sessions before = {4, 3},
                                                                       Sessions after = {4, 3}) {
    std::vector<RunFigures> sides[2];
    for (int day = 0; day < before.count + after.count; ++day) {
      const bool is_after = day >= before.count;
      const Sessions& plan = is_after ? after : before;
      const double session = plan.apart * normal_(random_);
      for (int run = 0; run < plan.runs; ++run) {
        const double log = session + noise() + (is_after ? effect : 0);
        sides[is_after].push_back(example_run(1000 * std::exp(log), 1440 * day + run));
      }
    }
    return {std::move(sides[0]), std::move(sides[1])};
  }

 private:
  // Student's t with three degrees of freedom: outliers of 10 % occur.
  double noise() { return 0.007 * heavy_(random_); }

  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::student_t_distribution<double> heavy_{3};
};

struct Counts {
  int failed = 0;
  int higher = 0;
  int lower = 0;
};

template <typename Draw>
Counts count(const CompareOptions& options, const Draw& draw) {
  const Gate gate = *parse_gate("energy>+3%");
  Counts counts;
  for (int i = 0; i < kComparisons; ++i) {
    const auto [before, after] = draw();
    const auto comparison = compare(before, after, options);
    EXPECT_TRUE(comparison);
    counts.failed += judge(gate, *comparison) == GateOutcome::kFailed;
    counts.higher += comparison->energy.verdict == Verdict::kHigher;
    counts.lower += comparison->energy.verdict == Verdict::kLower;
  }
  return counts;
}

TEST(NullTest, PairsRaiseFewFalseAlarmsAndFindThreePercent) {
  Laboratory laboratory(1);
  const auto same = count({.paired = true}, [&] { return laboratory.pairs(0); });
  EXPECT_LE(same.failed, kComparisons / 100);
  EXPECT_LE(same.higher + same.lower, kComparisons * 6 / 100);
  const auto worse = count({.paired = true}, [&] { return laboratory.pairs(std::log1p(0.03)); });
  EXPECT_GE(worse.higher, kComparisons * 90 / 100);
  EXPECT_EQ(worse.lower, 0);
  const auto far_worse =
      count({.paired = true}, [&] { return laboratory.pairs(std::log1p(0.06)); });
  EXPECT_GE(far_worse.failed, kComparisons * 90 / 100);
}

TEST(NullTest, SessionsRaiseFewFalseAlarms) {
  Laboratory laboratory(2);
  const auto same = count({}, [&] { return laboratory.sessions(0); });
  EXPECT_LE(same.failed, kComparisons / 100);
  EXPECT_LE(same.higher + same.lower, kComparisons * 6 / 100);
  const auto worse = count({}, [&] { return laboratory.sessions(std::log1p(0.06)); });
  EXPECT_GE(worse.higher, kComparisons * 90 / 100);
}

TEST(NullTest, UnequalNumbersOfSessionsOrRunsRaiseFewFalseAlarms) {
  struct Case {
    Sessions before;
    Sessions after;
  };
  for (const auto& [before, after] : {Case{{8, 1}, {2, 1}},  // two that agree by chance
                                      Case{{5, 5, 0.001}, {1, 1, 0.001}},  // one run, and means
                                      Case{{1, 1, 0.001}, {5, 5, 0.001}}}) {
    Laboratory laboratory(4);
    const auto same = count({}, [&] { return laboratory.sessions(0, before, after); });
    EXPECT_LE(same.higher + same.lower, kComparisons * 6 / 100)
        << before.count << " and " << after.count;
    const auto worse =
        count({}, [&] { return laboratory.sessions(std::log1p(0.10), before, after); });
    EXPECT_GE(worse.higher, kComparisons * 70 / 100);
    EXPECT_EQ(worse.lower, 0);
  }
}

// What the unit is for: all runs of one sitting against all of another would be a false alarm.
TEST(NullTest, OneSessionASideHasNoVerdict) {
  Laboratory laboratory(3);
  for (int i = 0; i < 20; ++i) {
    auto [before, after] = laboratory.sessions(0);
    before.resize(3);
    after.resize(3);
    EXPECT_EQ(compare(before, after, {})->energy.reason, "spread_unknown");
  }
}

}  // namespace
}  // namespace jouleprof::analysis
