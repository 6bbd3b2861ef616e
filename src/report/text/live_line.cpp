#include "report/text/live_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

std::string device_text(const DeviceSnapshot& d) {
  const bool has = d.power_watts && std::isfinite(*d.power_watts);
  std::string text =
      printable(d.device) + (has ? ' ' + fixed_decimal(*d.power_watts, 1) + " W" : " -");
  if (has && d.provenance == model::Provenance::kEstimated) text += " ESTIMATED";
  return text;
}

std::optional<Energy> energy_of(const Snapshot& snapshot) {
  std::optional<Energy> sum;
  for (const DeviceSnapshot& d : snapshot.devices) {
    if (!d.power_watts) continue;
    if (!d.energy) return std::nullopt;
    sum = sum.value_or(Energy{}) + *d.energy;
  }
  return sum;
}

}  // namespace

std::string live_line(const Snapshot& snapshot, int width) {
  const auto room = static_cast<std::size_t>(std::max(width, 0));
  const auto whole = std::chrono::floor<std::chrono::seconds>(snapshot.elapsed);
  std::string line =
      whole < std::chrono::seconds(100) ? fmt::format("{} s", whole.count()) : duration_text(whole);
  // In front, where no lack of room takes it away.
  if (std::any_of(snapshot.devices.begin(), snapshot.devices.end(),
                  [](const auto& d) { return d.provenance == model::Provenance::kSimulated; })) {
    line = "SIMULATED  " + line;
  }
  std::string end;
  if (const auto energy = energy_of(snapshot)) end = "  " + energy_text(*energy);

  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    const std::size_t left = snapshot.devices.size() - i;
    const std::string next = "  " + device_text(snapshot.devices[i]);
    const std::string more = fmt::format("  +{} more", left - 1);
    const std::size_t after = display_width(end) + (left > 1 ? more.size() : 0);
    if (display_width(line) + display_width(next) + after > room) {
      line += fmt::format("  +{} more", left);
      break;
    }
    line += next;
  }
  if (display_width(line) + display_width(end) <= room) line += end;
  // A terminal too narrow for the first word shows nothing rather than a part of a figure.
  return display_width(line) <= room ? line : std::string();
}

}  // namespace jouleprof::report
