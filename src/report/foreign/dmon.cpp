#include "report/foreign/dmon.h"

#include <fmt/format.h>

#include <cmath>

#include "model/device/sensor.h"
#include "report/quantity.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

constexpr unsigned kRowsPerHeader = 44;
constexpr double kMebi = 1.0 / 1048576;
constexpr double kMega = 1e-6;
constexpr double kPercent = 100;

std::size_t clock_width(int decimals) {
  if (decimals == 0) return 13;
  return decimals > 3 ? 18 : 15;  // a '#', the digits and blanks
}

}  // namespace

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
