#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/render.h"
#include "report/text/bench_cells.h"
#include "report/text/table.h"

namespace jouleprof::report {

std::string per_unit_to_text(const PerUnit& per, const TextOptions& text) {
  std::string words;
  if (per.joules) {
    const auto relative = [&](double joules) {
      return (text.ascii ? "+-" : "±") + percent_text(*per.joules > 0 ? joules / *per.joules : 0);
    };
    words = fmt::format("{} {} (repeatability {}), {}, of {}", joules_text(*per.joules),
                        interval_text(Energy::joules(*per.joules), Energy::joules(per.error_joules),
                                      Energy::joules(per.upper_error_joules), text.ascii),
                        relative(per.repeatability_joules), provenance_word(per.provenance),
                        per.is_command ? "the command" : "all devices");
    words += per.dynamic_joules
                 ? fmt::format(", {} of it dynamic", joules_text(*per.dynamic_joules))
                 : ", at rest included";
  } else {
    words = "no energy is known";
  }
  words += fmt::format("; {} for one, {} of them", duration_text(duration_of(per.seconds)),
                       shortest(per.unit.count));
  Table table({""});
  table.add_text({printable("per " + per.unit.name, text.ascii), Style::kBold},
                 {printable(words, text.ascii)}, 3);
  const auto lines = table.lines(static_cast<std::size_t>(std::max(text.width, 60)), text.colour);
  std::string all;
  for (std::size_t i = 1; i < lines.size(); ++i) all += lines[i] + '\n';
  return all;
}

}  // namespace jouleprof::report
