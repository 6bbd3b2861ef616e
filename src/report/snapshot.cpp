#include "report/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model/device/sensor.h"
#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

namespace gauge = model::gauge;

constexpr std::string_view kPower = "power_watts";
constexpr std::string_view kUtilisation = "utilisation_ratio";
constexpr std::string_view kThermalViolation = "thermal_violation";

std::optional<model::ClockReasons> clock_reasons_of(const model::DomainSnapshot& domain) {
  const auto bits = domain.gauge(gauge::kClockEventReasons);
  return bits ? std::optional(model::ClockReasons::of_gauge(*bits)) : std::nullopt;
}

std::optional<double> any_figure_of(const model::DomainSnapshot& domain, std::string_view name) {
  if (name == kPower) {
    return domain.power ? std::optional(domain.power->watts()) : std::nullopt;
  }
  if (name == kUtilisation) {
    const auto of_gpu = domain.gauge(gauge::kGpuUtilisation);
    return of_gpu ? of_gpu : domain.gauge(gauge::kCpuUtilisation);
  }
  if (name == kThermalViolation) {
    const auto reasons = clock_reasons_of(domain);
    return reasons ? std::optional(reasons->limited_by_heat() ? 1.0 : 0.0) : std::nullopt;
  }
  return domain.gauge(name);
}

using Devices = std::vector<const model::DomainSnapshot*>;

Devices devices_of(const model::Snapshot& snapshot) {
  Devices devices;
  for (const auto& d : snapshot.domains) {
    const bool is_part = d.domain.parent.has_value();
    if (!is_part && d.domain.visible && d.domain.unavailable_reason.empty()) devices.push_back(&d);
  }
  return devices;
}

std::string device_text(const model::DomainSnapshot& d) {
  const auto watts = figure_of(d, "power_watts");
  std::string text =
      printable(d.domain.device) + (watts ? ' ' + fixed_decimal(*watts, 1) + " W" : " -");
  if (watts && d.provenance == model::Provenance::kEstimated) text += " ESTIMATED";
  return text;
}

// Platform and module contain other devices. A device without power, such as one that is lost, has
// the energy until then or none: the sum is a lower bound.
std::string energy_of(const Devices& devices) {
  std::optional<Energy> sum;
  bool complete = true;
  for (const auto* d : devices) {
    if (contains_others(d->domain.kind)) continue;
    if (d->power && !d->energy) return {};
    if (!d->power) complete = false;
    if (d->energy) sum = sum.value_or(Energy{}) + d->energy->energy;
  }
  return sum ? (complete ? "  " : "  at least ") + energy_text(*sum) : std::string();
}

constexpr unsigned kRowsPerHeader = 44;
constexpr double kMebi = 1.0 / 1048576;
constexpr double kMega = 1e-6;
constexpr double kPercent = 100;

std::size_t clock_width(int decimals) {
  if (decimals == 0) return 13;
  return decimals > 3 ? 18 : 15;  // a '#', the digits and blanks
}

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

std::span<const std::string_view> snapshot_figures() {
  static constexpr std::array kNames{kPower,
                                     gauge::kPowerLimit,
                                     gauge::kTemperature,
                                     gauge::kMemoryTemperature,
                                     gauge::kFanSpeed,
                                     kUtilisation,
                                     gauge::kMemoryUtilisation,
                                     gauge::kEncoderUtilisation,
                                     gauge::kDecoderUtilisation,
                                     gauge::kJpegUtilisation,
                                     gauge::kOfaUtilisation,
                                     gauge::kSmClock,
                                     gauge::kMemoryClock,
                                     kThermalViolation,
                                     gauge::kMemoryUsed};
  return kNames;
}

std::optional<double> figure_of(const model::DomainSnapshot& domain, std::string_view name) {
  const auto value = any_figure_of(domain, name);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::vector<std::string_view>> clock_limits_of(const model::DomainSnapshot& domain) {
  const auto reasons = clock_reasons_of(domain);
  if (!reasons) return std::nullopt;
  return reasons->names();
}

std::vector<const model::DomainSnapshot*> rows_of(const model::Snapshot& snapshot) {
  std::vector<const model::DomainSnapshot*> rows;
  for (const auto& d : snapshot.domains) {
    const bool has_sensor = d.provenance != model::Provenance::kUnavailable || !d.gauges.empty();
    if (has_sensor && !d.domain.parent && d.domain.unavailable_reason.empty()) rows.push_back(&d);
  }
  return rows;
}

std::string live_line(const model::Snapshot& snapshot, int width) {
  const Devices devices = devices_of(snapshot);
  const auto room = static_cast<std::size_t>(std::max(width, 0));
  const auto whole = std::chrono::floor<std::chrono::seconds>(snapshot.elapsed);
  std::string line =
      whole < std::chrono::seconds(100) ? fmt::format("{} s", whole.count()) : duration_text(whole);
  // In front, where no lack of room takes it away.
  if (std::ranges::any_of(
          devices, [](const auto* d) { return d->provenance == model::Provenance::kSimulated; })) {
    line = "SIMULATED  " + line;
  }
  const std::string end = energy_of(devices);

  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t left = devices.size() - i;
    const std::string next = "  " + device_text(*devices[i]);
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

std::vector<DmonTable::Column> DmonTable::group(char letter) {
  namespace g = model::gauge;
  switch (letter) {
    case 'p':
      return {{"pwr", "W", "power_watts", 1},
              {"gtemp", "C", g::kTemperature, 1},
              {"mtemp", "C", g::kMemoryTemperature, 1}};
    case 'u':
      return {{"sm", "%", "utilisation_ratio", kPercent},
              {"mem", "%", g::kMemoryUtilisation, kPercent},
              {"enc", "%", g::kEncoderUtilisation, kPercent},
              {"dec", "%", g::kDecoderUtilisation, kPercent},
              {"jpg", "%", g::kJpegUtilisation, kPercent},
              {"ofa", "%", g::kOfaUtilisation, kPercent}};
    case 'c':
      return {{"mclk", "MHz", g::kMemoryClock, kMega}, {"pclk", "MHz", g::kSmClock, kMega}};
    case 'v':
      return {{"pviol", "%", "", kPercent}, {"tviol", "bool", "thermal_violation", 1}};
    case 'm':
      return {{"fb", "MB", g::kMemoryUsed, kMebi},
              {"bar1", "MB", "", kMebi},
              {"ccpm", "MB", "", kMebi}};
    case 'e':
      return {{"sbecc", "errs", "", 1}, {"dbecc", "errs", "", 1}, {"pci", "errs", "", 1}};
    case 't':
      return {{"rxpci", "MB/s", "", kMega}, {"txpci", "MB/s", "", kMega}};
    default:
      return {};
  }
}

Result<DmonTable> DmonTable::create(const DmonOptions& options) {
  DmonTable table;
  for (std::size_t i = 0; i < options.select.size(); ++i) {
    const char letter = options.select[i];
    const auto columns = group(letter);
    if (columns.empty() || options.select.find(letter) != i) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("-s {}: '{}' {}; each of p u c v m e t may be given once", options.select,
                      letter, columns.empty() ? "names no group of columns" : "occurs twice"));
    }
    table.columns_.insert(table.columns_.end(), columns.begin(), columns.end());
  }
  if (table.columns_.empty()) {
    return fail(Errc::kInvalidArgument, "-s names no columns; give some of p u c v m e t");
  }
  for (const char letter : options.time) {
    if (letter != 'D' && letter != 'T') {
      return fail(Errc::kInvalidArgument,
                  fmt::format("-o {}: '{}' is no stamp; D is the date, T the time, DT both",
                              options.time, letter));
    }
    (letter == 'D' ? table.date_ : table.clock_) = true;
  }
  if (options.interval < std::chrono::seconds(1)) table.decimals_ = 3;
  if (options.interval < std::chrono::milliseconds(1)) table.decimals_ = 6;
  return table;
}

std::string DmonTable::header() const {
  const std::string fraction =
      decimals_ > 0
          ? "." + std::string(static_cast<std::size_t>(decimals_), decimals_ > 3 ? 'u' : 'm')
          : "";
  std::string names = "#";
  std::string units = "#";
  const auto add = [](std::string& line, const std::string& text, std::size_t width) {
    // The '#' takes the first column of what comes first.
    line += fmt::format("{:<{}}", text, line == "#" ? width - 1 : width);
  };
  if (date_) add(names, "Date", 13);
  if (date_) add(units, "YYYYMMDD", 13);
  if (clock_) add(names, "Time", clock_width(decimals_));
  if (clock_) add(units, "HH:MM:SS" + fraction, clock_width(decimals_));
  const bool stamped = date_ || clock_;
  names += stamped ? "gpu" : " gpu";
  units += stamped ? "Idx" : " Idx";
  for (const Column& column : columns_) {
    names += fmt::format("{:>7}", column.name);
    units += fmt::format("{:>7}", column.unit);
  }
  return names + " \n" + units + " \n";
}

std::string DmonTable::row(RealTime time, const model::DomainSnapshot& gpu) const {
  std::string line;
  if (date_) line += fmt::format(" {:<12}", local_date_text(time, ""));
  if (clock_) {
    const std::size_t width = clock_width(decimals_);
    line += fmt::format("{}{:<{}}", date_ ? "" : " ", local_clock_text(time, decimals_),
                        date_ ? width : width - 1);
  }
  const auto number = model::gpu_index(gpu.domain);
  const std::string index = number ? std::to_string(*number) : "-";
  line += fmt::format("{:>{}}", index, date_ || clock_ ? 3 : 5);
  for (const Column& column : columns_) {
    const auto value = figure_of(gpu, column.figure);
    line += fmt::format("{:>7}", value ? std::to_string(std::llround(*value * column.scale)) : "-");
  }
  return line + " \n";
}

std::string DmonTable::rows(const model::Snapshot& snapshot) {
  std::string text;
  if (!started_ || rows_since_header_ >= kRowsPerHeader) {
    text = header();
    rows_since_header_ = 0;
    started_ = true;
  }
  for (const auto* device : rows_of(snapshot)) {
    if (device->domain.kind != model::DomainKind::kGpu) continue;
    text += row(snapshot.time, *device);
    ++rows_since_header_;
  }
  return text;
}

}  // namespace jouleprof::report
