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

Result<Columns> find_columns(const CsvRows& rows) {
  const auto limit = rows.column("power_limit");
  const auto time = rows.column("time_per_epoch");
  const auto power = rows.column("average_power");
  if (!limit) return forward_error(limit);
  if (!time) return forward_error(time);
  if (!power) return forward_error(power);
  return Columns{*limit, *time, *power};
}

Result<model::ImportedWindow> read_row(const CsvRows& rows, const Columns& columns,
                                       model::DomainId domain) {
  const auto fields = split_csv(rows.text());
  if (!fields) return rows.fail_at(fields.error().message);
  if (auto fit = rows.check_fields(fields->size()); !fit) return forward_error(fit);
  const auto time = parse_seconds(trim((*fields)[columns.time]));
  const auto watts = parse_number(trim((*fields)[columns.power]));
  const auto limit = parse_number(trim((*fields)[columns.limit]));
  const auto wrong = [&](const char* name, std::size_t column) {
    return rows.fail_at(fmt::format("{} is {}", name, show((*fields)[column])));
  };
  if (!time || *time <= Duration::zero() || *time > kLongestEpoch) {
    return wrong("time_per_epoch", columns.time);
  }
  if (!watts || *watts <= 0 || *watts > kMostWatts) return wrong("average_power", columns.power);
  if (!limit || *limit <= 0) return wrong("power_limit", columns.limit);
  model::ImportedWindow window;
  window.duration = *time;
  window.energies.push_back({domain, Power::watts(*watts) * *time});
  for (std::size_t i = 0; i < rows.header().size(); ++i) {
    if (i == columns.time || i == columns.power) continue;
    std::string value((trim((*fields)[i])));
    if (i != columns.limit) window.name += (window.name.empty() ? "" : " ") + value;
    window.labels.push_back(
        {i == columns.limit ? "power_limit_watts" : rows.header()[i], std::move(value)});
  }
  return window;
}

Result<model::Recording> read_zeus_sweep(std::span<const SourceText> sources,
                                         const ImportOptions&) {
  const SourceText& source = sources.front();
  CsvRows rows(source);
  auto columns = find_columns(rows);
  if (!columns) return forward_error(columns);

  RecordingBuilder builder("zeus-sweep");
  const auto domain = builder.add_domain(model::DomainKind::kGpu, "gpu0", "GPU of the table");
  builder.domain(domain).unavailable_reason =
      "the file holds the energy of whole epochs, not the course of power";
  model::Recording& recording = builder.recording();
  while (rows.next()) {
    auto window = read_row(rows, *columns, domain);
    if (!window) return forward_error(window);
    recording.imported_windows.push_back(std::move(*window));
  }
  if (rows.cut_off()) builder.set_cut_off(*rows.cut_off());
  if (recording.imported_windows.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: a header, and no run under it", source.path));
  }
  builder.warn("the table does not say which GPU it is of, nor when the runs were made");
  return std::move(builder).take();
}

bool recognises_zeus_sweep(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "power_limit") &&
         (find_column(header, "time_per_epoch") || find_column(header, "average_power"));
}

}  // namespace

const Importer kZeusSweepImporter{
    {"zeus-sweep", "Zeus's table of runs (power_limit,time_per_epoch,average_power)"},
    false,
    recognises_zeus_sweep,
    read_zeus_sweep};

}  // namespace jouleprof::importers
