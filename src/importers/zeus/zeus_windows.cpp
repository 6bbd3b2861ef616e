// The window log of Zeus's ZeusMonitor: start_time,window_name,elapsed_time,gpuN_energy...
// Seconds and joules, one row a window, written when the window ends; windows may overlap and nest.
// start_time counts from 1970, or from the machine's boot in older versions.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv_table.h"
#include "importers/importer.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

// Times below do not count from 1970: they would be an uptime of thirty years.
constexpr Duration kFirstWallTime = std::chrono::seconds{1'000'000'000};
constexpr double kMostJoules = 1e12;
constexpr std::string_view kNoTrace =
    "the file holds the energy of whole windows, not the course of power";

struct Window {
  Duration start{};
  model::ImportedWindow window;
};

// Zeus's power limit optimizer names its windows after the limit that it tries.
void add_power_limit(model::ImportedWindow& window) {
  constexpr std::string_view kPrefix = "__GlobalPowerLimitOptimizer_";
  if (!window.name.starts_with(kPrefix)) return;
  const std::string limit = window.name.substr(kPrefix.size());
  if (parse_number(limit)) window.labels.push_back({"power_limit_watts", limit});
}

class Reader {
 public:
  Reader(const SourceText& source, RecordingBuilder& builder)
      : source_(source), rows_(source), builder_(builder) {}

  Result<std::vector<Window>> read() {
    if (auto header = read_header(); !header) return forward_error(header);
    std::vector<Window> windows;
    while (rows_.next()) {
      auto window = read_row();
      if (!window) return forward_error(window);
      windows.push_back(std::move(*window));
    }
    if (rows_.cut_off()) builder_.set_cut_off(*rows_.cut_off());
    if (windows.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: a header, and no window under it", source_.path));
    }
    if (zeros_ > 0) {
      builder_.warn(
          fmt::format("{} energ{} of exactly zero left out: the window was shorter than "
                      "an update of the energy counter",
                      zeros_, zeros_ == 1 ? "y was" : "ies were"));
    }
    return windows;
  }

 private:
  Result<void> read_header() {
    const auto& header = rows_.header();
    constexpr std::array<std::string_view, 3> kFirst{"start_time", "window_name", "elapsed_time"};
    for (std::size_t i = 0; i < kFirst.size(); ++i) {
      if (i >= header.size() || header[i] != kFirst[i]) return rows_.missing_column(kFirst[i]);
    }
    for (std::size_t i = kFirst.size(); i < header.size(); ++i) {
      const auto gpu = numbered_column(header[i], "gpu", "_energy");
      if (!gpu) {
        return rows_.fail_at(
            fmt::format("{} is no energy of a GPU; expected gpuN_energy", show(header[i])));
      }
      const auto domain = builder_.add_domain(model::DomainKind::kGpu, fmt::format("gpu{}", *gpu),
                                              fmt::format("GPU {}", *gpu));
      builder_.domain(domain).unavailable_reason = kNoTrace;
      domains_.push_back(domain);
    }
    if (domains_.empty()) return rows_.missing_column("gpu0_energy");
    return {};
  }

  Result<Window> read_row() {
    // Names are written without quotes, commas and all: they are what the other fields leave.
    auto fields = split(rows_.text(), ',');
    const std::size_t after_name = 1 + domains_.size();
    if (fields.size() < 2 + after_name) {
      return rows_.fail_at(fmt::format("{} fields instead of {}", fields.size(), 2 + after_name));
    }
    Window result;
    const auto start = parse_seconds(trim(fields.front()));
    const std::size_t elapsed_at = fields.size() - after_name;
    const auto elapsed = parse_seconds(trim(fields[elapsed_at]));
    if (!start) {
      return rows_.fail_at(fmt::format("{} is no start time", show(fields.front())));
    }
    if (!elapsed) {
      return rows_.fail_at(fmt::format("{} is no elapsed time", show(fields[elapsed_at])));
    }
    result.start = *start;
    result.window.duration = *elapsed;
    const char* name = fields[1].data();
    result.window.name =
        std::string(name, static_cast<std::size_t>(fields[elapsed_at].data() - 1 - name));
    add_power_limit(result.window);
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      const std::string_view field = trim(fields[elapsed_at + 1 + i]);
      const auto joules = parse_number(field);
      if (!joules || *joules < 0 || *joules > kMostJoules) {
        return rows_.fail_at(fmt::format("{} is no energy", show(field)));
      }
      if (*joules == 0) {
        ++zeros_;
        continue;
      }
      result.window.energies.push_back({domains_[i], Energy::joules(*joules)});
    }
    return result;
  }

  const SourceText& source_;
  CsvRows rows_;
  RecordingBuilder& builder_;
  std::vector<model::DomainId> domains_;
  std::size_t zeros_ = 0;
};

Result<model::Recording> read_zeus_windows(std::span<const SourceText> sources,
                                           const ImportOptions&) {
  RecordingBuilder builder("zeus-windows");
  auto windows = Reader(sources.front(), builder).read();
  if (!windows) return forward_error(windows);

  // Windows are in the order of their ends.
  const Duration origin =
      std::min_element(windows->begin(), windows->end(), [](const Window& a, const Window& b) {
        return a.start < b.start;
      })->start;
  model::Recording& recording = builder.recording();
  recording.run.work_begin = HostTime{};
  recording.run.work_end = HostTime{};
  for (Window& window : *windows) {
    const HostTime begin{window.start - origin};
    window.window.begin = begin;
    recording.run.work_end = std::max(*recording.run.work_end, begin + window.window.duration);
    recording.imported_windows.push_back(std::move(window.window));
  }
  if (origin >= kFirstWallTime) {
    recording.clock_points.push_back({HostTime{}, utc_to_real(origin), {}});
  } else {
    builder.warn("the log's times count from the machine's start: when it was made is unknown");
  }
  return std::move(builder).take();
}

bool recognises_zeus_windows(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "window_name") && find_column(header, "elapsed_time");
}

}  // namespace

const Importer kZeusWindowsImporter{
    {"zeus-windows", "window log of Zeus's ZeusMonitor (start_time,window_name,elapsed_time,...)"},
    false,
    recognises_zeus_windows,
    read_zeus_windows};

}  // namespace jouleprof::importers
