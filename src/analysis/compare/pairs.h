// Runs in the order of time, in blocks of one side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/compare/figures.h"

namespace jouleprof::analysis {

struct Blocks {
  // Each block has the places of its runs in the side's list.
  std::vector<std::vector<std::size_t>> before;
  std::vector<std::vector<std::size_t>> after;
};

// Adjacent runs of one side are a block. A run of the other side, another boot, or an hour without
// runs ends it. Where a run's time is not known, each side is one block.
Blocks blocks_of(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after);

// Of the n-th pair of runs that are made for a comparison, from 0: A B, B A, B A, A B, and again.
// Linear drift cancels in each four pairs. Noise that lasts from run to run does not make the
// differences of neighbours alike, as it does in A B, B A, A B, ...
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

}  // namespace jouleprof::analysis
