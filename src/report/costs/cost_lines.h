// Money and carbon as sentences, for text and the page.
#pragma once

#include <string>
#include <vector>

#include "report/costs/costs.h"

namespace jouleprof::report {

struct CostLine {
  std::string label;  // "cost", "carbon" or "scope"
  std::string words;  // with the factors and their sources; not escaped
};

std::vector<CostLine> cost_lines(const Costs& costs, bool ascii);

}  // namespace jouleprof::report
