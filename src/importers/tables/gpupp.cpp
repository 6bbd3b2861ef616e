// GPUPP's tables: layer_name,exec_id,start_time,end_time,duration_ms,...,energy_j, one row an
// execution of a layer; kernel_name,... likewise; and the tables of the ten with the most energy.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "importers/source_text.h"
#include "importers/window_table.h"

namespace jouleprof::importers {
namespace {

using Role = TableField::Role;

constexpr std::array<TableField, 9> kFields{
    {{.name = "layer_name", .role = Role::kName},
     {.name = "kernel_name", .role = Role::kName},
     {.name = "duration_ms", .role = Role::kDuration, .scale = 1e-3},
     {.name = "total_duration_ms", .role = Role::kDuration, .scale = 1e-3},
     {.name = "energy_j", .role = Role::kEnergy, .product = "GPU of the table"},
     {.name = "total_energy_j", .role = Role::kEnergy, .product = "GPU of the table"},
     {.name = "start_time", .role = Role::kStart},
     {.name = "start_power_w", .role = Role::kNumber},
     {.name = "end_power_w", .role = Role::kNumber}}};

const TableTool kTool{.format = "gpupp",
                      .row = "row",
                      .reason = "the file holds the energy of executions, not the course of power",
                      .fields = kFields,
                      .check = [](TableWindow& row) -> std::optional<std::string> {
                        if (!row.duration) return "it has no duration";
                        return std::nullopt;
                      }};

bool recognises_gpupp(std::string_view text) {
  const auto header = csv_header(text);
  return (find_column(header, "layer_name") || find_column(header, "kernel_name")) &&
         (find_column(header, "energy_j") || find_column(header, "total_energy_j"));
}

Result<model::Recording> read_gpupp(std::span<const SourceText> sources, const ImportOptions&) {
  WindowTable table(kTool);
  if (auto read = table.read(sources.front()); !read) return forward_error(read);
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
        fmt::format("{} of {} row{}: the power at the begin is that at the end, so the sensor did "
                    "not change meanwhile; such an energy says nothing of its layer",
                    unchanged, all, all == 1 ? "" : "s"));
  }
  if (!table.has_column("start_time")) {
    table.builder().warn("the table has no times: its rows are not on a time line");
  }
  table.builder().warn("GPUPP's energies are those of the whole board, with what it draws at rest");
  return std::move(table).finish(nullptr);
}

}  // namespace

extern const Importer kGpuppImporter{
    {"gpupp", "GPUPP's tables of layers and kernels (layer_name,exec_id,...,energy_j)"},
    false,
    recognises_gpupp,
    read_gpupp};

}  // namespace jouleprof::importers
