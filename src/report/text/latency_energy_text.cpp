#include <fmt/format.h>

#include <algorithm>

#include "report/cells.h"
#include "report/quantity.h"
#include "report/results/latency_energy.h"
#include "report/text/bench_cells.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

std::vector<Cell> row(const char* label, Power median, Power mean, Duration latency, Style style) {
  return {{label},
          {fmt::format("{:.2f}", median.watts())},
          {fmt::format("{:.2f}", mean.watts())},
          {joules_text(median.watts() * seconds(latency)), style}};
}

}  // namespace

std::string latency_energy_to_text(const std::vector<analysis::DevicePower>& devices,
                                   Duration latency, const TextOptions& text) {
  const auto width = static_cast<std::size_t>(std::max(text.width, 60));
  std::string all;
  for (const auto& d : devices) {
    Table table({printable(d.device, text.ascii), "median W", "mean W",
                 "energy of " + duration_text(latency)});
    if (d.rest) table.add(row("idle", d.rest->median, d.rest->mean, latency, Style::kPlain));
    table.add(row("total", d.work.median, d.work.mean, latency, Style::kPlain));
    std::string words = fmt::format("median power of {} rows times the latency", d.work.readings);
    if (d.rest) {
      table.add(row("active", d.work.median - d.rest->median, d.work.mean - d.rest->mean, latency,
                    Style::kBold));
      words += "; active is total minus idle";
    } else {
      table.add_text({"active", Style::kAttention},
                     {"unavailable: the log has no row before the work, so that the idle power is "
                      "not known; start the log earlier",
                      Style::kAttention},
                     2);
    }
    table.add_text({"how", Style::kDim},
                   {words + ". It is an estimate: both are taken at different times. "
                            "`jouleprof bench` divides the energy of a window by its iterations",
                    Style::kPlain},
                   3);
    for (const auto& line : table.lines(width, text.colour)) all += line + '\n';
  }
  return all;
}

}  // namespace jouleprof::report
