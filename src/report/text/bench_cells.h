// What the blocks of a benchmark's text share.
#pragma once

#include <string>
#include <vector>

#include "report/results/bench.h"

namespace jouleprof::report {

// Also of less than a microjoule: one token, or 1e9 multiply-accumulates.
std::string joules_text(double joules);
std::string seconds_text(double s);
std::string plus_minus(double half, double of, bool ascii);

// A table with one line for each case.
std::vector<std::string> bench_comparison(const std::vector<BenchResult>& results,
                                          const TextOptions& text);

}  // namespace jouleprof::report
