// Logs of OmegaWatt's wattmeters, as wattmetre-read writes them: maybe messages, then a header
// `#timestamp,#frame_is_ok,#U1,...,#current1,#activepow1,...` and a row each 10 or 20 ms. Stamps
// are seconds since 1970; powers are watts of the machine at a socket.
#include <fmt/format.h>

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "importers/row_log.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kLinesBeforeHeader = 20;

bool is_header(std::string_view line) { return line.starts_with("#timestamp,"); }

constexpr LogTool kTool{.format = "omegawatt",
                        .name = "wattmetre-read",
                        .advice = "its header needs #timestamp, #frame_is_ok and #activepow1",
                        .is_header = is_header,
                        .device = "socket",
                        .times_are_utc = true};

bool recognises_omegawatt(std::string_view text) {
  for (Lines lines(text); lines.next() && lines.number() <= kLinesBeforeHeader;) {
    if (is_header(lines.text()) && lines.text().find("#frame_is_ok") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// The places of columns of sockets that are above zero in no row.
std::set<std::size_t> unused_columns(const SourceText& source) {
  std::set<std::size_t> unused;
  bool in_rows = false;
  for (Lines lines(source.text); lines.next();) {
    const auto cells = split(lines.text(), ',');
    if (is_header(lines.text())) {
      for (std::size_t i = 0; i < cells.size() && !in_rows; ++i) {
        if (numbered_column(trim(cells[i]), "#activepow", "")) unused.insert(i);
      }
      in_rows = true;
      continue;
    }
    for (auto at = unused.begin(); in_rows && at != unused.end();) {
      const auto watts = *at < cells.size() ? parse_number(trim(cells[*at])) : std::nullopt;
      at = watts && *watts > 0 ? unused.erase(at) : std::next(at);
    }
  }
  return unused;
}

Result<model::Recording> read_omegawatt(std::span<const SourceText> sources,
                                        const ImportOptions& options) {
  const auto unused = unused_columns(sources.front());
  RowLog log(kTool, options);
  std::size_t place = 0, sockets = 0;
  log.on_column = [&](std::string_view name) -> std::optional<LogColumn> {
    const std::size_t at = place++;
    if (name == "#timestamp") return LogColumn{LogRole::kStamp, {}, {}, 0};
    if (name == "#frame_is_ok") return LogColumn{LogRole::kGood, {}, {}, 0};
    const auto number = numbered_column(name, "#activepow", "");
    if (!number) return LogColumn{};
    ++sockets;
    if (unused.contains(at)) return LogColumn{};
    return LogColumn{LogRole::kValue, "W", fmt::format("socket{}", *number),
                     log.sensor({model::SensorKind::kPowerInstant, "OmegaWatt active power"})};
  };
  if (auto read = log.read(sources.front()); !read) return forward_error(read);
  if (!unused.empty()) {
    log.builder().warn(fmt::format("{} of {} sockets left out: their power is 0 throughout",
                                   unused.size(), sockets));
  }
  log.builder().warn(
      "a socket's energy contains that of the devices of its machine, and is in no total");
  return std::move(log).finish();
}

}  // namespace

extern const Importer kOmegaWattImporter{
    {"omegawatt", "log of an OmegaWatt wattmeter (wattmetre-read)"},
    false,
    recognises_omegawatt,
    read_omegawatt};

}  // namespace jouleprof::importers
