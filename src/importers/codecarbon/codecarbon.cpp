// CodeCarbon's emissions.csv: one row a run of an EmissionsTracker, or one a task (with task_name).
// Energies are kWh since the run began, so the last row of a run_id has the run's whole energy;
// duration is in seconds; timestamp is the local time of the row.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
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

constexpr double kJoulesPerKilowattHour = 3.6e6;
constexpr double kMostKilowattHours = 1e6;

struct Part {
  std::string_view column;
  model::DomainKind kind;
  std::string_view device;
  std::string_view name;
};

constexpr std::array<Part, 3> kParts{
    {{"gpu_energy", model::DomainKind::kGpu, "gpus", "GPUs by CodeCarbon"},
     {"cpu_energy", model::DomainKind::kCpu, "cpu", "CPU by CodeCarbon"},
     {"ram_energy", model::DomainKind::kDram, "ram", "RAM by CodeCarbon"}}};

// What else is kept with a window, where it is not empty.
constexpr std::array<std::string_view, 5> kLabels{"emissions", "country_iso_code", "region",
                                                  "tracking_mode", "codecarbon_version"};

struct Row {
  std::string name;
  Duration end{};
  Duration duration{};
  std::array<std::optional<double>, kParts.size()> kilowatt_hours;
  std::vector<model::ImportedWindow::Label> labels;
};

class Import {
 public:
  explicit Import(const SourceText& source)
      : source_(source), rows_(source), builder_("codecarbon") {}

  Result<model::Recording> run() {
    if (auto read = read_rows(); !read) return forward_error(read);
    if (runs_.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: a header, and no run under it", source_.path));
    }
    add_domains();
    add_windows();
    warn();
    return std::move(builder_).take();
  }

 private:
  Result<void> read_rows() {
    const auto time = rows_.column("timestamp");
    const auto duration = rows_.column("duration");
    if (!time) return forward_error(time);
    if (!duration) return forward_error(duration);
    const auto run_id = find_column(rows_.header(), "run_id");
    const auto task = find_column(rows_.header(), "task_name");
    const auto project = find_column(rows_.header(), "project_name");
    std::map<std::string, std::size_t> by_run;
    while (rows_.next()) {
      const auto fields = split_csv(rows_.text());
      if (!fields) return rows_.fail_at(fields.error().message);
      if (auto fit = rows_.check_fields(fields->size()); !fit) return fit;
      Row row;
      const auto at = parse_calendar_time(trim((*fields)[*time]));
      if (!at) return rows_.fail_at(fmt::format("{} is no time", show((*fields)[*time])));
      const auto took = parse_seconds(trim((*fields)[*duration]));
      if (!took) return rows_.fail_at(fmt::format("{} is no duration", show((*fields)[*duration])));
      row.end = *at;
      row.duration = *took;
      row.name = task ? (*fields)[*task] : project ? (*fields)[*project] : "run";
      if (auto energies = read_energies(*fields, row); !energies) return energies;
      read_labels(*fields, row);
      // Without ids each row is a run. Rows of tasks have their project's id.
      const std::string id = run_id && !task ? (*fields)[*run_id] : std::string();
      const auto [place, is_new] = by_run.try_emplace(id, runs_.size());
      if (is_new || id.empty()) {
        runs_.push_back(std::move(row));
      } else {
        ++earlier_rows_;
        runs_[place->second] = std::move(row);
      }
    }
    if (rows_.cut_off()) builder_.set_cut_off(*rows_.cut_off());
    return {};
  }

  Result<void> read_energies(const std::vector<std::string>& fields, Row& row) {
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      const auto column = find_column(rows_.header(), kParts[i].column);
      if (!column || trim(fields[*column]).empty()) continue;
      const auto value = parse_number(trim(fields[*column]));
      if (!value || *value < 0 || *value > kMostKilowattHours) {
        return rows_.fail_at(
            fmt::format("{} is {}, not an energy in kWh", kParts[i].column, show(fields[*column])));
      }
      if (*value == 0) {
        ++zeros_[i];  // no device, or no reading: CodeCarbon writes both alike
      } else {
        row.kilowatt_hours[i] = *value;
      }
    }
    return {};
  }

  void read_labels(const std::vector<std::string>& fields, Row& row) const {
    for (const std::string_view name : kLabels) {
      const auto column = find_column(rows_.header(), name);
      if (!column || trim(fields[*column]).empty()) continue;
      const std::string label = name == "emissions" ? "emissions_kg" : std::string(name);
      row.labels.push_back({label, fields[*column]});
    }
  }

  void add_domains() {
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      const bool any = std::any_of(runs_.begin(), runs_.end(), [i](const Row& row) {
        return row.kilowatt_hours[i].has_value();
      });
      if (!any) continue;
      domains_[i] = builder_.add_domain(kParts[i].kind, std::string(kParts[i].device),
                                        std::string(kParts[i].name));
      builder_.domain(*domains_[i]).unavailable_reason =
          "the file holds the energy of whole runs, not the course of power";
    }
  }

  void add_windows() {
    const Duration origin =
        std::min_element(runs_.begin(), runs_.end(), [](const Row& a, const Row& b) {
          return a.end - a.duration < b.end - b.duration;
        })->end;
    Duration first = origin;
    for (const Row& row : runs_) first = std::min(first, row.end - row.duration);
    model::Recording& recording = builder_.recording();
    recording.run.work_begin = HostTime{};
    recording.run.work_end = HostTime{};
    recording.clock_points.push_back({HostTime{}, local_to_real(first), {}});
    for (Row& row : runs_) {
      model::ImportedWindow window;
      window.name = std::move(row.name);
      window.begin = HostTime{row.end - row.duration - first};
      window.duration = row.duration;
      window.labels = std::move(row.labels);
      for (std::size_t i = 0; i < kParts.size(); ++i) {
        if (!row.kilowatt_hours[i]) continue;
        window.energies.push_back(
            {*domains_[i], Energy::joules(*row.kilowatt_hours[i] * kJoulesPerKilowattHour)});
      }
      recording.run.work_end = std::max(*recording.run.work_end, *window.begin + window.duration);
      recording.imported_windows.push_back(std::move(window));
    }
  }

  void warn() {
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      if (zeros_[i] == 0) continue;
      builder_.warn(fmt::format(
          "{} value{} of {} that {} exactly 0 left out: CodeCarbon writes 0 "
          "for what it did not measure, too",
          zeros_[i], zeros_[i] == 1 ? "" : "s", kParts[i].column, zeros_[i] == 1 ? "is" : "are"));
    }
    if (earlier_rows_ > 0) {
      builder_.warn(
          fmt::format("{} earlier row{} of the same run left out: the last one has the "
                      "whole run's energy",
                      earlier_rows_, earlier_rows_ == 1 ? "" : "s"));
    }
    builder_.warn(
        "CodeCarbon models RAM, and the CPU where it cannot read RAPL; the file does not say which "
        "energy is measured");
    builder_.warn("the time stamps are local time, read in this machine's time zone");
  }

  const SourceText& source_;
  CsvRows rows_;
  RecordingBuilder builder_;
  std::vector<Row> runs_;
  std::array<std::optional<model::DomainId>, kParts.size()> domains_;
  std::array<std::size_t, kParts.size()> zeros_{};
  std::size_t earlier_rows_ = 0;
};

bool recognises_codecarbon(std::string_view text) {
  const auto header = csv_header(text);
  return find_column(header, "emissions") && find_column(header, "energy_consumed");
}

Result<model::Recording> read_codecarbon(std::span<const SourceText> sources,
                                         const ImportOptions&) {
  return Import(sources.front()).run();
}

}  // namespace

const Importer kCodeCarbonImporter{
    {"codecarbon", "CodeCarbon's emissions.csv"}, false, recognises_codecarbon, read_codecarbon};

}  // namespace jouleprof::importers
