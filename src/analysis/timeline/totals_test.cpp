// Rows of docs/validation.md's table of coverage, in a few runs each: tests/coverage has all.
#include <gtest/gtest.h>

#include "tests/coverage/coverage.h"

namespace jouleprof::coverage {
namespace {

constexpr int kRuns = 12;
constexpr int kFewest = 10;  // of a figure that holds 95 % of all: fewer are inside in 2 % of rows

class Totals : public testing::TestWithParam<std::size_t> {};

TEST_P(Totals, TheTruthIsInsideTheIntervalOrTheFigureIsAbsent) {
  const Row row = rows()[GetParam()];
  const Outcome outcome = outcome_of(row, 1, kRuns);
  EXPECT_GE(outcome.inside + outcome.absent, kFewest) << row.name;
  EXPECT_GT(outcome.inside, 0) << row.name;
}

INSTANTIATE_TEST_SUITE_P(Rows, Totals, testing::Range(std::size_t{0}, rows().size()));

// Seven samples of a loop of 21 ms that saw more of its high part than there was; the counter knew.
TEST(TotalsOfShortWork, WhatCounterAndSamplesDifferByIsInTheInterval) {
  const auto all = rows();
  const auto row = std::find_if(all.begin(), all.end(), [](const Row& r) {
    return r.name == "fixed rate, counter and buffer, 0.05 to 0.2 s";
  });
  ASSERT_NE(row, all.end());
  EXPECT_EQ(outcome_of(*row, 14, 1).inside, 1);
}

// As measured with the version before intervals held what counter and samples contradict, and what
// samples do not see.
TEST(TotalsWidth, OfHealthySensorsIsNotWider) {
  const std::pair<const char*, double> before[] = {{"counter and buffer", 0.0500},
                                                   {"counter and polled power", 0.0547},
                                                   {"polled power alone, constant", 0.0725},
                                                   {"polled power alone, random load", 0.0741}};
  for (const auto& [name, width] : before) {
    const auto all = rows();
    const auto row =
        std::find_if(all.begin(), all.end(), [&](const Row& r) { return r.name == name; });
    ASSERT_NE(row, all.end()) << name;
    EXPECT_LE(outcome_of(*row, 1, 100).half_width, 1.2 * width) << name;
  }
}

}  // namespace
}  // namespace jouleprof::coverage
