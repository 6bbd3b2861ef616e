// GPUPP's tables: layer_name,exec_id,start_time,end_time,duration_ms,...,energy_j, one row an
// execution of a layer; kernel_name,... likewise; and the tables of the ten with the most energy.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

// No GPU's limit is above it.
constexpr double kMostWatts = 1500;

struct Columns {
  std::size_t name = 0, duration = 0, energy = 0;
  std::optional<std::size_t> start, begin_watts, end_watts, mean_watts;
};

std::optional<std::size_t> first_of(const std::vector<std::string>& header,
                                    std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto found = find_column(header, name)) return found;
  }
  return std::nullopt;
}

class Import {
 public:
  explicit Import(const SourceText& source) : source_(source), rows_(source), builder_("gpupp") {}

  Result<model::Recording> run() {
    if (auto found = find_columns(); !found) return forward_error(found);
    domain_ = builder_.add_domain(model::DomainKind::kGpu, "gpu0", "GPU of the table");
    builder_.domain(domain_).unavailable_reason =
        "the file holds the energy of executions, not the course of power";
    while (rows_.next()) {
      if (auto row = take_row(); !row) return forward_error(row);
    }
    if (rows_.cut_off()) builder_.set_cut_off(*rows_.cut_off());
    if (windows_.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: a header, and no row under it", source_.path));
    }
    set_times();
    warn();
    builder_.recording().imported_windows = std::move(windows_);
    return std::move(builder_).take();
  }

 private:
  Result<void> find_columns() {
    const auto& header = rows_.header();
    const auto name = first_of(header, {"layer_name", "kernel_name"});
    const auto duration = first_of(header, {"duration_ms", "total_duration_ms"});
    const auto energy = first_of(header, {"energy_j", "total_energy_j"});
    if (!name) return rows_.missing_column("layer_name");
    if (!duration) return rows_.missing_column("duration_ms");
    if (!energy) return rows_.missing_column("energy_j");
    columns_ = {*name,
                *duration,
                *energy,
                find_column(header, "start_time"),
                find_column(header, "start_power_w"),
                find_column(header, "end_power_w"),
                find_column(header, "avg_power_w")};
    return {};
  }

  Result<void> take_row() {
    const auto fields = split_csv(rows_.text());
    if (!fields) return rows_.fail_at(fields.error().message);
    if (auto fit = rows_.check_fields(fields->size()); !fit) return fit;
    const auto number = [&](std::size_t column) -> std::optional<double> {
      const auto value = parse_number(trim((*fields)[column]));
      return value && *value >= 0 && *value < 1e12 ? value : std::nullopt;
    };
    const auto milliseconds = number(columns_.duration);
    const auto joules = number(columns_.energy);
    if (!milliseconds) {
      return rows_.fail_at(fmt::format("{} is no duration", show((*fields)[columns_.duration])));
    }
    if (!joules) {
      return rows_.fail_at(fmt::format("{} is no energy", show((*fields)[columns_.energy])));
    }
    model::ImportedWindow window;
    window.name = (*fields)[columns_.name];
    window.duration = duration_of(*milliseconds * 1e-3);
    window.energies.push_back({domain_, Energy::joules(*joules)});
    if (columns_.start) {
      const auto start = parse_seconds(trim((*fields)[*columns_.start]));
      if (!start) {
        return rows_.fail_at(fmt::format("{} is no time", show((*fields)[*columns_.start])));
      }
      window.begin = HostTime{*start};  // since 1970, until set_times
    }
    if (columns_.begin_watts && columns_.end_watts) {
      const auto begin = number(*columns_.begin_watts), end = number(*columns_.end_watts);
      unchanged_ += begin && end && *begin == *end;
    }
    if (columns_.mean_watts) {
      const auto watts = number(*columns_.mean_watts);
      impossible_ += watts && *watts > kMostWatts;
    }
    windows_.push_back(std::move(window));
    return {};
  }

  void set_times() {
    if (!columns_.start) {
      builder_.warn("the table has no times: its rows are not on a time line");
      return;
    }
    HostTime first = *windows_.front().begin;
    for (const auto& window : windows_) first = std::min(first, *window.begin);
    model::Recording& recording = builder_.recording();
    recording.clock_points.push_back({HostTime{}, RealTime{first.time_since_epoch()}, {}});
    recording.run.work_begin = HostTime{};
    recording.run.work_end = HostTime{};
    for (auto& window : windows_) {
      window.begin = HostTime{*window.begin - first};
      recording.run.work_end = std::max(*recording.run.work_end, *window.begin + window.duration);
    }
  }

  void warn() {
    const auto of_all = [&](std::size_t count) {
      return fmt::format("{} of {} row{}", count, windows_.size(), windows_.size() == 1 ? "" : "s");
    };
    if (impossible_ > 0) {
      builder_.warn(
          fmt::format("{}: the mean power is above {:.0f} W, more than any GPU draws; these "
                      "energies are wrong",
                      of_all(impossible_), kMostWatts));
    }
    if (unchanged_ > 0) {
      builder_.warn(
          fmt::format("{}: the power at the begin is that at the end, so the sensor did not "
                      "change meanwhile; such an energy says nothing of its layer",
                      of_all(unchanged_)));
    }
    builder_.warn("GPUPP's energies are those of the whole board, with what it draws at rest");
  }

  const SourceText& source_;
  CsvRows rows_;
  RecordingBuilder builder_;
  Columns columns_;
  model::DomainId domain_{};
  std::vector<model::ImportedWindow> windows_;
  std::size_t unchanged_ = 0;
  std::size_t impossible_ = 0;
};

bool recognises_gpupp(std::string_view text) {
  const auto header = csv_header(text);
  return first_of(header, {"layer_name", "kernel_name"}) &&
         first_of(header, {"energy_j", "total_energy_j"});
}

Result<model::Recording> read_gpupp(std::span<const SourceText> sources, const ImportOptions&) {
  return Import(sources.front()).run();
}

}  // namespace

const Importer kGpuppImporter{
    {"gpupp", "GPUPP's tables of layers and kernels (layer_name,exec_id,...,energy_j)"},
    false,
    recognises_gpupp,
    read_gpupp};

}  // namespace jouleprof::importers
