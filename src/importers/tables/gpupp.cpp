// GPUPP's tables: layer_name,exec_id,start_time,end_time,duration_ms,...,energy_j, one row an
// execution of a layer; kernel_name,... likewise; and the tables of the ten with the most energy.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "importers/source_text.h"
#include "importers/window_table.h"

namespace jouleprof::importers {
namespace {

constexpr std::array<TableField, 9> kFields{
    {{.name = "layer_name", .role = TableRole::kName},
     {.name = "kernel_name", .role = TableRole::kName},
     {.name = "duration_ms", .role = TableRole::kDuration, .scale = 1e-3},
     {.name = "total_duration_ms", .role = TableRole::kDuration, .scale = 1e-3},
     {.name = "energy_j", .role = TableRole::kEnergy, .product = "GPU of the table"},
     {.name = "total_energy_j", .role = TableRole::kEnergy, .product = "GPU of the table"},
     {.name = "start_time", .role = TableRole::kStart},
     {.name = "start_power_w", .role = TableRole::kNumber},
     {.name = "end_power_w", .role = TableRole::kNumber}}};

// A kernel's or layer's number, and the sum of all of its executions.
constexpr std::array<std::string_view, 2> kKeys{"exec_id", "total_energy_j"};

std::optional<std::string> check(WindowTable&, TableWindow& row) {
  if (!row.duration) return "it has no duration";
  return std::nullopt;
}

Result<void> complete(WindowTable& table) {
  std::size_t unchanged = 0;
  for (const TableWindow& row : table.windows()) {
    const auto begin = row.numbers.find("start_power_w"), end = row.numbers.find("end_power_w");
    unchanged +=
        begin != row.numbers.end() && end != row.numbers.end() && begin->second == end->second ? 1
                                                                                               : 0;
  }
  const std::size_t all = table.windows().size();
  if (unchanged > 0) {
    table.builder().warn(
        fmt::format("{} of {}: the power at the begin is that at the end, so the sensor did "
                    "not change meanwhile; such an energy says nothing of its layer",
                    unchanged, counted(all, "row")));
  }
  if (!table.has_column("start_time")) {
    table.builder().warn("the table has no times: its rows are not on a time line");
  }
  table.builder().warn("GPUPP's energies are those of the whole board, with what it draws at rest");
  return {};
}

constexpr TableTool kTool{
    .format = "gpupp",
    .row = "row",
    .reason = "the file holds the energy of executions, not the course of power",
    .fields = kFields,
    .keys = kKeys,
    .check = check,
    .complete = complete};

bool recognises_gpupp(std::string_view text) {
  return has_columns(text, {{"layer_name", "kernel_name"}, {"energy_j", "total_energy_j"}});
}

}  // namespace

extern const Importer kGpuppImporter{
    {"gpupp", "GPUPP's tables of layers and kernels (layer_name,exec_id,...,energy_j)"},
    false,
    recognises_gpupp,
    read_table<kTool>};

}  // namespace jouleprof::importers
