// Zeus's table of training runs under power limits: some columns that name the run, then
// power_limit (W), time_per_epoch (s) and average_power (W), in any order. Each row becomes a
// window of one epoch with the energy average_power x time_per_epoch.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv_table.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "importers/stamps.h"

namespace jouleprof::importers {
namespace {

constexpr double kMostWatts = 1e5;
constexpr Duration kLongestEpoch = std::chrono::hours{24 * 3650};

struct Columns {
  std::size_t limit = 0;
  std::size_t time = 0;
  std::size_t power = 0;
};

Result<Columns> find_columns(const SourceText& source, const std::vector<std::string>& header) {
  const auto limit = find_column(header, "power_limit");
  const auto time = find_column(header, "time_per_epoch");
  const auto power = find_column(header, "average_power");
  if (!limit) return missing_column(source, "power_limit");
  if (!time) return missing_column(source, "time_per_epoch");
  if (!power) return missing_column(source, "average_power");
  return Columns{*limit, *time, *power};
}

Result<model::ImportedWindow> read_row(const SourceText& source, std::size_t line,
                                       std::string_view text,
                                       const std::vector<std::string>& header,
                                       const Columns& columns, model::DomainId domain) {
  const auto fields = split_csv(text);
  if (!fields) return fail_at(source, line, fields.error().message);
  if (fields->size() != header.size()) {
    return fail_at(source, line,
                   fmt::format("{} fields under a header of {}", fields->size(), header.size()));
  }
  const auto time = parse_seconds(trim((*fields)[columns.time]));
  const auto watts = parse_number(trim((*fields)[columns.power]));
  const auto limit = parse_number(trim((*fields)[columns.limit]));
  if (!time || *time <= Duration::zero() || *time > kLongestEpoch) {
    return fail_at(source, line,
                   fmt::format("time_per_epoch is {}", show((*fields)[columns.time])));
  }
  if (!watts || *watts <= 0 || *watts > kMostWatts) {
    return fail_at(source, line,
                   fmt::format("average_power is {}", show((*fields)[columns.power])));
  }
  if (!limit || *limit <= 0) {
    return fail_at(source, line, fmt::format("power_limit is {}", show((*fields)[columns.limit])));
  }
  model::ImportedWindow window;
  window.duration = *time;
  window.energies.push_back({domain, Power::watts(*watts) * *time});
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i == columns.time || i == columns.power) continue;
    std::string value((trim((*fields)[i])));
    if (i != columns.limit) window.name += (window.name.empty() ? "" : " ") + value;
    window.labels.push_back(
        {i == columns.limit ? "power_limit_watts" : header[i], std::move(value)});
  }
  return window;
}

Result<model::Recording> read(std::span<const SourceText> sources, const ImportOptions&) {
  const SourceText& source = sources.front();
  const auto header = csv_header(source.text);
  auto columns = find_columns(source, header);
  if (!columns) return forward_error(columns);

  RecordingBuilder builder("zeus-sweep");
  const auto domain = builder.add_domain(model::DomainKind::kGpu, "gpu0", "GPU of the table");
  builder.domain(domain).unavailable_reason =
      "the file holds the energy of whole epochs, not the course of power";
  model::Recording& recording = builder.recording();
  Lines lines(source.text);
  lines.next();
  while (lines.next()) {
    if (trim(lines.text()).empty()) continue;
    if (!lines.ended()) {
      recording.run.complete = false;
      builder.warn(cut_off_warning(source, lines.number()));
      break;
    }
    auto window = read_row(source, lines.number(), lines.text(), header, *columns, domain);
    if (!window) return forward_error(window);
    recording.imported_windows.push_back(std::move(*window));
  }
  if (recording.imported_windows.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: a header, and no run under it", source.path));
  }
  builder.warn("the table does not say which GPU it is of, nor when the runs were made");
  return std::move(builder).take();
}

bool recognises(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "power_limit") &&
         (find_column(header, "time_per_epoch") || find_column(header, "average_power"));
}

}  // namespace

const Importer kZeusSweepImporter{
    {"zeus-sweep", "Zeus's table of runs (power_limit,time_per_epoch,average_power)"},
    false,
    recognises,
    read};

}  // namespace jouleprof::importers
