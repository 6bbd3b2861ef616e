#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/cells.h"
#include "report/costs/wall.h"
#include "report/quantity.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

std::string wall_words(const WallComparison& w) {
  const double length = seconds(w.wall.end - w.wall.begin);
  return fmt::format(
      "{}{}, {} W mean: {} readings of {}{}, {} apart at most; a scope of its own, not in the "
      "total",
      w.host.empty() ? "" : w.host + ": ", energy_text(w.wall.energy),
      number_text(w.wall.energy.joules() / length), w.wall.readings, w.log.file,
      w.log.column.empty() ? "" : " (" + w.log.column + ")", duration_text(w.wall.longest_pause));
}

std::string explained_words(const WallComparison& w) {
  if (!w.explained()) {
    return w.host.empty() ? "unknown: no domain has an energy"
                          : "unknown: the log does not cover all of the machine's time";
  }
  const Energy rest = w.wall.energy - w.components->energy;
  std::string words = fmt::format("{} by {} ({})", percent_text(*w.explained()),
                                  fmt::join(w.domains, "+"), energy_text(w.components->energy));
  if (rest >= Energy{}) {
    words += fmt::format(
        "; {} is of parts without a sensor here (fans, disks, network, losses of "
        "the supply), or error of the sensors",
        energy_text(rest));
  } else {
    words +=
        "; more than the meter reported: another machine's meter, shifted clocks, or error of "
        "the sensors";
  }
  if (w.uncovered > Duration{}) {
    words += fmt::format("; {} of the run are not in the log, and not compared",
                         duration_text(w.uncovered));
  }
  return words;
}

}  // namespace

std::string wall_to_text(const WallComparison& wall, const TextOptions& text) {
  std::string all;
  const auto write = [&](const std::string& label, const std::string& words, Style style) {
    Table table({""});
    table.add_text({label, style}, {printable(words, text.ascii)}, 4);
    const auto lines = table.lines(static_cast<std::size_t>(std::max(text.width, 60)), text.colour);
    for (std::size_t i = 1; i < lines.size(); ++i) all += lines[i] + '\n';
  };
  write("wall", wall_words(wall), Style::kDim);
  write("explained", explained_words(wall), Style::kDim);
  for (const auto& warning : wall.log.warnings) write("warning", warning, Style::kAttention);
  return all;
}

}  // namespace jouleprof::report
