// CodeCarbon's emissions.csv: one row a run of an EmissionsTracker, or one a task (with task_name).
// Energies are kWh since the run began, so the last row of a run_id has the run's whole energy;
// duration is in seconds; timestamp is the local time of the row. CodeCarbon multiplies each energy
// by its PUE before it writes it: that is undone. Its first versions wrote energy_consumed alone,
// of all devices together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>

#include "base/text.h"
#include "importers/source_text.h"
#include "importers/window_table.h"

namespace jouleprof::importers {
namespace {

constexpr double kWattHours = 3.6e6;

constexpr TableField energy(std::string_view name, std::string_view device,
                            std::string_view product) {
  return {.name = name,
          .role = TableRole::kEnergy,
          .scale = kWattHours,
          .device = device,
          .product = product};
}

constexpr std::array<TableField, 17> kFields{
    {{.name = "timestamp", .role = TableRole::kEnd, .is_needed = true},
     {.name = "duration", .role = TableRole::kDuration, .is_needed = true},
     {.name = "run_id", .role = TableRole::kText},
     {.name = "task_name", .role = TableRole::kText},
     {.name = "project_name", .role = TableRole::kText},
     energy("gpu_energy", "gpus", "GPUs by CodeCarbon"),
     energy("cpu_energy", "cpu", "CPU by CodeCarbon"),
     energy("ram_energy", "ram", "RAM by CodeCarbon"),
     {.name = "energy_consumed", .role = TableRole::kNumber},
     {.name = "pue", .role = TableRole::kText},
     {.name = "gpu_count", .role = TableRole::kText},
     {.name = "gpu_model", .role = TableRole::kText},
     {.name = "emissions", .role = TableRole::kLabel, .label = "emissions_kg"},
     {.name = "country_iso_code", .role = TableRole::kLabel},
     {.name = "region", .role = TableRole::kLabel},
     {.name = "tracking_mode", .role = TableRole::kLabel},
     {.name = "codecarbon_version", .role = TableRole::kLabel}}};

// Undoes the factor; it is kept as a label. Why a row is left out.
std::optional<std::string> divide_by_pue(WindowTable&, TableWindow& row) {
  if (!row.end) return "it has no timestamp";
  for (auto& label : row.window.labels) {
    const auto number = label.name == "emissions_kg" ? parse_number(label.value) : std::nullopt;
    if (number) label.value = fmt::format("{:.6g}", *number);
  }
  const std::string& text = row.texts["pue"];
  if (text.empty()) return std::nullopt;
  const double pue = parse_number(text).value_or(0);
  if (!(pue >= 1) || pue > 10) {
    return fmt::format("its PUE is {}, and every energy was multiplied by it", show(text));
  }
  if (pue == 1) return std::nullopt;
  row.numbers["pue"] = pue;
  for (auto& energy : row.window.energies) {
    energy.energy = Energy::joules(energy.energy.joules() / pue);
  }
  if (const auto whole = row.numbers.find("energy_consumed"); whole != row.numbers.end()) {
    whole->second /= pue;
  }
  row.window.labels.push_back({"pue", fmt::format("{:g}", pue)});
  return std::nullopt;
}

// Where a run has no energy by device, all have that of all devices together: one file, one
// meaning.
void use_whole_energies(WindowTable& table) {
  const auto whole_of = [](const TableWindow& row) {
    const auto found = row.numbers.find("energy_consumed");
    return found != row.numbers.end() && found->second > 0 ? found->second : 0;
  };
  auto& rows = table.windows();
  const auto undivided = std::ranges::count_if(rows, [&](const TableWindow& row) {
    return row.window.energies.empty() && whole_of(row) > 0;
  });
  if (undivided == 0) return;
  const auto machine = table.domain("platform", "All devices by CodeCarbon");
  for (TableWindow& row : rows) {
    row.window.energies.clear();
    if (const double whole = whole_of(row); whole > 0) {
      row.window.energies.push_back({machine, Energy::joules(whole * kWattHours)});
    }
  }
  table.builder().warn(
      fmt::format("{} of {} rows have no energy by device, so that the energy_consumed of all "
                  "devices together is taken",
                  undivided, rows.size()));
}

// Time stamps are cut to whole seconds. Rows are written when they end, so one that seems to begin
// within the row before by less than that ended later in its second.
void lay_in_order(std::vector<TableWindow>& rows) {
  const TableWindow* before = nullptr;
  for (TableWindow& row : rows) {
    if (before != nullptr && before->end->kind == row.end->kind) {
      const Duration overlap = before->end->at - (row.end->at - row.window.duration);
      if (overlap > Duration{} && overlap < std::chrono::seconds{1}) row.end->at += overlap;
    }
    before = &row;
  }
}

double joules_of(const TableWindow& row) {
  double sum = 0;
  for (const auto& part : row.window.energies) sum += part.energy.joules();
  return sum;
}

// The energy of a run is the sum of its devices'.
void warn_of_sums(WindowTable& table) {
  std::size_t differ = 0;
  std::string example;
  for (const TableWindow& row : table.windows()) {
    const auto whole = row.numbers.find("energy_consumed");
    if (whole == row.numbers.end() || row.window.energies.empty()) continue;
    const double sum = joules_of(row);
    const double joules = whole->second * kWattHours;
    if (std::abs(joules - sum) <= 0.01 * std::max(joules, sum) + 1e-3) continue;
    if (differ++ == 0)
      example = fmt::format("line {}: {:.4g} J and {:.4g} J", row.line, joules, sum);
  }
  if (differ == 0) return;
  table.builder().warn(
      fmt::format("energy_consumed of {} is not the sum of the energies of GPU, CPU and RAM ({}): "
                  "the sum is used",
                  counted(differ, "row"), example));
}

// The energy of all GPUs together is held against what so many of them draw.
void warn_of_powers(WindowTable& table) {
  std::size_t above = 0;
  std::string example;
  for (TableWindow& row : table.windows()) {
    const double count = parse_number(row.texts["gpu_count"]).value_or(0);
    if (!(count >= 1)) continue;
    // Such as "8 x NVIDIA A100-SXM4-80GB"; GPUs of several models have commas between them.
    const std::string& model = row.texts["gpu_model"];
    const Most most = most_of_gpu(model.find(',') == model.npos ? model : std::string());
    for (const auto& part : row.window.energies) {
      if (table.builder().domain(part.domain).device != "gpus") continue;
      const double watts = part.energy.joules() / seconds(row.window.duration) / count;
      if (!(watts > most.watts)) continue;
      if (above++ == 0)
        example = fmt::format("line {}: {:.4g} W, above {}", row.line, watts, most.of);
    }
  }
  if (above == 0) return;
  table.builder().warn(
      fmt::format("the mean power of each GPU in {} is more than it can draw ({}): this energy or "
                  "time is wrong, or in another unit",
                  counted(above, "row"), example));
}

Result<void> complete(WindowTable& table) {
  use_whole_energies(table);
  warn_of_sums(table);
  warn_of_powers(table);
  const bool has_tasks = table.has_column("task_name");
  std::map<std::string, std::size_t> by_run;
  std::vector<TableWindow> runs;
  std::size_t earlier = 0, with_pue = 0;
  for (TableWindow& row : table.windows()) {
    row.window.name = has_tasks                          ? row.texts["task_name"]
                      : table.has_column("project_name") ? row.texts["project_name"]
                                                         : "run";
    with_pue += row.numbers.contains("pue") ? 1 : 0;
    // Without ids each row is a run. Rows of tasks have their project's id.
    const std::string id = has_tasks ? std::string() : row.texts["run_id"];
    const auto [place, is_new] = by_run.try_emplace(id, runs.size());
    if (is_new || id.empty()) {
      runs.push_back(std::move(row));
      continue;
    }
    ++earlier;
    TableWindow& known = runs[place->second];
    if (row.end->at < known.end->at) std::swap(row, known);
    if (joules_of(row) < joules_of(known)) {
      return fail_at(
          table.source(), row.line,
          fmt::format("it has less energy than line {} of the same run_id, where a run's "
                      "energies only grow; give each run a run_id of its own",
                      known.line));
    }
    known = std::move(row);
  }
  lay_in_order(runs);
  table.windows() = std::move(runs);
  RecordingBuilder& builder = table.builder();
  if (earlier > 0) {
    builder.warn(
        fmt::format("{} of the same run left out: the last one has the "
                    "whole run's energy",
                    counted(earlier, "earlier row")));
  }
  if (with_pue > 0) {
    builder.warn(
        fmt::format("CodeCarbon multiplied the energies of {} by a PUE (power usage "
                    "effectiveness): they are divided by it, and the PUE is a label; "
                    "emissions_kg still has it in it",
                    counted(with_pue, "row")));
  }
  builder.warn(
      "CodeCarbon models RAM, and the CPU where it cannot read RAPL; the file does not say which "
      "energy is measured");
  return {};
}

constexpr TableTool kTool{
    .format = "codecarbon",
    .row = "run",
    .reason = "the file holds the energy of whole runs, not the course of power",
    .fields = kFields,
    .check = divide_by_pue,
    .complete = complete,
    .times_are_local = true};

bool recognises_codecarbon(std::string_view text) {
  return has_columns(text, {{"emissions"}, {"energy_consumed"}});
}

}  // namespace

extern const Importer kCodeCarbonImporter{
    {"codecarbon", "CodeCarbon's emissions.csv"}, false, recognises_codecarbon, read_table<kTool>};

}  // namespace jouleprof::importers
