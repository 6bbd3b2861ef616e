#include "report/text/monitor_table.h"

#include <fmt/format.h>

#include "model/device/gauge_names.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

constexpr std::size_t kDeviceWidth = 12;

std::string cell(const model::DomainSnapshot& domain, std::string_view figure, double scale,
                 int decimals) {
  const auto value = figure_of(domain, figure);
  return value ? fixed_decimal(*value * scale, decimals) : "-";
}

std::string table_line(std::string_view time, std::string_view device, std::string_view power,
                       std::string_view energy, std::string_view use, std::string_view memory,
                       std::string_view temperature, std::string_view clock,
                       std::string_view provenance) {
  std::string line = fmt::format("{:<12} {} {:>8} {:>9} {:>5} {:>9} {:>5} {:>6}  {}", time,
                                 pad_right(fit(device, kDeviceWidth), kDeviceWidth), power, energy,
                                 use, memory, temperature, clock, provenance);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string monitor_table_header() {
  return table_line("time", "device", "power W", "energy", "use %", "memory", "deg C", "MHz", "");
}

std::string monitor_table_rows(const model::Snapshot& snapshot) {
  std::string text;
  for (const auto* d : rows_of(snapshot)) {
    const auto memory = figure_of(*d, model::gauge::kMemoryUsed);
    text +=
        table_line(local_clock_text(snapshot.time, 3), printable(d->domain.device),
                   cell(*d, "power_watts", 1, 1), d->energy ? energy_text(d->energy->energy) : "-",
                   cell(*d, "utilisation_ratio", 100, 0),
                   memory && *memory >= 0 ? bytes_text(static_cast<std::uint64_t>(*memory)) : "-",
                   cell(*d, model::gauge::kTemperature, 1, 0),
                   cell(*d, model::gauge::kSmClock, 1e-6, 0), provenance_word(d->provenance));
  }
  return text;
}

}  // namespace jouleprof::report
