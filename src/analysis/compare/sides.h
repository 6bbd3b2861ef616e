// The two sides of a comparison: which runs and rows of them belong together, and what has to be
// alike.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/figures.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"

namespace jouleprof::analysis {

// Runs in the order of time, in blocks of one side.
struct Blocks {
  // Each block has the places of its runs in the side's list.
  std::vector<std::vector<std::size_t>> before;
  std::vector<std::vector<std::size_t>> after;
};

// Adjacent runs of one side are a block. A run of the other side, another boot, or an hour without
// runs ends it. Where a run's time is not known, each side is one block.
Blocks blocks_of(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after);

// Whether the n-th pair of runs of a comparison, counted from 0, begins with B: A B, B A, B A, A B,
// and again. Linear drift cancels in each four pairs. Noise that lasts from run to run does not
// make the differences of neighbours alike, as it does in A B, B A, A B, ...
constexpr bool is_after_first(unsigned pair) { return pair % 4 == 1 || pair % 4 == 2; }

// Each side's blocks with the mean of `values` over each. `values`: one for each run.
std::vector<double> block_means(const std::vector<std::vector<std::size_t>>& blocks,
                                const std::vector<double>& values);

// Which rows of runs before and after are the same window, phase, layer or kernel.
struct RowPair {
  std::string name;
  std::string detail;
  std::string detail_before;  // of the rows on each side
  std::string detail_after;

  Figure energy_in(const RunFigures& run) const;  // reason "absent" where it has no such row
};

struct UnmatchedRow {
  bool before = false;  // on which side it is
  FigureRow row;        // of the first run that has it
};

struct RowPairs {
  std::vector<RowPair> pairs;
  std::vector<UnmatchedRow> unmatched;
};

// Rows of one name and detail are the same. So are layers of one name and shapes whose type
// differs, where only one on each side is left: their implementation was replaced.
RowPairs pair_rows(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after);

// What differs between the sides.
struct Condition {
  std::string code;     // stable: "work_differs", "other_limit", ...
  std::string text;     // what differs, with its figures
  bool blocks = false;  // there is no verdict, unless the code is accepted
};

inline constexpr std::array<std::string_view, 7> kBlockingCodes{
    "failed_run",   "cut_off",       "domains_differ", "scope_differs",
    "work_differs", "limit_differs", "tracing_differs"};
inline constexpr std::array<std::string_view, 7> kOtherCodes{
    "rest_left_out",       "board_differs",  "boot_differs", "clock_differs",
    "temperature_differs", "slowed_by_heat", "simulated"};

// Finds conditions of kBlockingCodes, where a verdict would be wrong, and of kOtherCodes. Both
// sides have at least one run.
std::vector<Condition> conditions_between(const std::vector<RunFigures>& before,
                                          const std::vector<RunFigures>& after);

// Whether all runs used the same sensors, so that their calibration error cancels.
bool is_same_board(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after);

// The conditions of a run, from its gauges and records.
Conditions conditions_of(const Run& run, const model::Profile& profile,
                         const std::vector<model::ActivityProfile>& activity);

}  // namespace jouleprof::analysis
