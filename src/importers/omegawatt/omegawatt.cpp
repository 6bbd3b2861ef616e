// Logs of OmegaWatt's wattmeters, as wattmetre-read writes them: maybe messages, then a header
// `#timestamp,#frame_is_ok,#U1,...,#current1,#activepow1,...` and a row each 10 or 20 ms. Stamps
// are seconds since 1970; powers are watts of the machine at a socket.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv_table.h"
#include "importers/device_log.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kLinesBeforeHeader = 20;

struct Socket {
  int number = 0;
  std::size_t column = 0;
  std::vector<std::optional<double>> watts;  // of each good frame
  bool used = false;                         // ever above zero
};

class Import {
 public:
  explicit Import(const SourceText& source)
      : source_(source), lines_(source.text), builder_("omegawatt") {}

  Result<model::Recording> run() {
    if (auto header = read_header(); !header) return forward_error(header);
    if (auto rows = read_rows(); !rows) return forward_error(rows);
    if (stamps_.empty()) {
      return fail(Errc::kUnavailable, fmt::format("{}: no good frame in it", source_.path));
    }
    const DeviceLog log = used_sockets();
    warn();
    const Layout layout = add_log(log, builder_, Duration{1}, "the log has no power of it");
    builder_.set_clock(layout, utc_to_real);
    return std::move(builder_).finish(source_.path, layout.times.front(), layout.times.back());
  }

 private:
  Result<void> read_header() {
    while (lines_.next()) {
      if (!lines_.text().starts_with("#timestamp,")) continue;
      const auto names = split(trim(lines_.text()), ',');
      columns_ = names.size();
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == "#frame_is_ok") good_ = i;
        if (const auto number = numbered_column(names[i], "#activepow", "")) {
          sockets_.push_back({*number, i, {}});
        }
      }
      if (good_ && !sockets_.empty()) return {};
      break;
    }
    return fail_at(source_, std::max<std::size_t>(lines_.number(), 1),
                   "no header with #timestamp, #frame_is_ok and #activepow1");
  }

  Result<void> read_rows() {
    while (lines_.next()) {
      const std::string_view line = trim(lines_.text());
      if (line.empty()) continue;
      if (!lines_.ended()) {
        builder_.set_cut_off(cut_off_warning(source_.path, lines_.number()));
        break;
      }
      const auto fields = split(line, ',');
      if (fields.size() != columns_) {
        return fail_at(source_, lines_.number(),
                       fmt::format("{} fields under a header of {}", fields.size(), columns_));
      }
      if (fields[*good_] != "true" && fields[*good_] != "True" && fields[*good_] != "1") {
        ++bad_frames_;
        continue;
      }
      const auto stamp = parse_seconds(fields[0]);
      if (!stamp) {
        return fail_at(source_, lines_.number(), fmt::format("{} is no time", show(fields[0])));
      }
      stamps_.push_back(*stamp);
      for (Socket& socket : sockets_) {
        const std::string_view cell = trim(fields[socket.column]);
        const auto watts = parse_number(cell);
        if (!watts && !cell.empty()) {
          return fail_at(source_, lines_.number(), fmt::format("{} is no power", show(cell)));
        }
        socket.watts.push_back(watts);
        socket.used = socket.used || (watts && *watts > 0);
      }
    }
    return {};
  }

  DeviceLog used_sockets() const {
    DeviceLog log;
    log.columns.push_back({model::SensorKind::kPowerInstant, "OmegaWatt active power"});
    std::vector<const Socket*> used;
    for (const Socket& socket : sockets_) {
      if (!socket.used) continue;
      used.push_back(&socket);
      log.devices.push_back({model::DomainKind::kPlatform, fmt::format("socket{}", socket.number),
                             fmt::format("wattmeter socket {}", socket.number)});
    }
    for (std::size_t i = 0; i < stamps_.size(); ++i) {
      for (std::size_t s = 0; s < used.size(); ++s) {
        log.rows.push_back({stamps_[i], s, {used[s]->watts[i]}});
      }
    }
    return log;
  }

  void warn() {
    if (bad_frames_ > 0) {
      builder_.warn(fmt::format("{} frame{} that the wattmeter marks as bad left out", bad_frames_,
                                bad_frames_ == 1 ? "" : "s"));
    }
    const auto unused = std::count_if(sockets_.begin(), sockets_.end(),
                                      [](const Socket& socket) { return !socket.used; });
    if (unused > 0) {
      builder_.warn(fmt::format("{} of {} sockets left out: their power is 0 throughout", unused,
                                sockets_.size()));
    }
    builder_.warn(
        "a socket's energy contains that of the devices of its machine, and is in no total");
  }

  const SourceText& source_;
  Lines lines_;
  RecordingBuilder builder_;
  std::size_t columns_ = 0;
  std::optional<std::size_t> good_;
  std::vector<Socket> sockets_;
  std::vector<Duration> stamps_;
  std::size_t bad_frames_ = 0;
};

bool recognises_omegawatt(std::string_view text) {
  for (Lines lines(text); lines.next() && lines.number() <= kLinesBeforeHeader;) {
    if (lines.text().starts_with("#timestamp,") &&
        lines.text().find("#frame_is_ok") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

Result<model::Recording> read_omegawatt(std::span<const SourceText> sources,
                                        const ImportOptions& options) {
  auto recording = Import(sources.front()).run();
  if (recording && options.interval) {
    recording->warnings.push_back(
        {HostTime{}, "--interval is not used: the log has its own time stamps"});
  }
  return recording;
}

}  // namespace

const Importer kOmegaWattImporter{{"omegawatt", "log of an OmegaWatt wattmeter (wattmetre-read)"},
                                  false,
                                  recognises_omegawatt,
                                  read_omegawatt};

}  // namespace jouleprof::importers
