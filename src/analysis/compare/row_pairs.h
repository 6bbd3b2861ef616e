// Which rows of runs before and after are the same window, phase, layer or kernel.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare/figures.h"

namespace jouleprof::analysis {

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
