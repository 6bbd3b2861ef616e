#include <algorithm>

#include "report/cells.h"
#include "report/costs/cost_lines.h"
#include "report/render.h"
#include "report/text/table.h"

namespace jouleprof::report {

std::string costs_to_text(const Costs& costs, const TextOptions& text) {
  std::string all;
  for (const auto& line : cost_lines(costs, text.ascii)) {
    Table table({""});
    table.add_text({line.label, Style::kDim}, {printable(line.words, text.ascii)}, 4);
    const auto lines = table.lines(static_cast<std::size_t>(std::max(text.width, 60)), text.colour);
    for (std::size_t i = 1; i < lines.size(); ++i) all += lines[i] + '\n';
  }
  return all;
}

}  // namespace jouleprof::report
