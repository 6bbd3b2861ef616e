// gpu-tune's training_stats.csv and inference_stats.csv: samples of throughput and power while a
// model runs at one power limit after another. Columns max_watt (W), tokens_per_sec and
// total_power_draw (W) in any order; timestamp where there is one.
//
// Each row is a repetition of one token at its limit: 1 / throughput seconds, power / throughput
// joules. Rows whose time or energy is far from those of the limit's other rows are left out, as a
// hiccup of the throughput would decide which limit is best.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/median.h"
#include "base/text.h"
#include "importers/source_text.h"
#include "importers/window_table.h"

namespace jouleprof::importers {
namespace {

constexpr double kMostWatts = 1e5;
constexpr std::size_t kFewestRows = 5;  // of a limit, to know which are far from the others
// Of the modified z-score (Iglewicz and Hoaglin 1993), which advises 3.5 for normal values; rows of
// one limit are wider than that.
constexpr double kFarScore = 7;
constexpr double kLeastSpread = 0.02;  // of a median: less is not far, whatever the others are

constexpr std::array<TableField, 5> kFields{
    {{.name = "max_watt", .role = TableRole::kNumber, .is_needed = true},
     {.name = "tokens_per_sec", .role = TableRole::kNumber, .is_needed = true},
     {.name = "total_power_draw", .role = TableRole::kNumber, .is_needed = true},
     {.name = "timestamp", .role = TableRole::kStart},
     {.name = "provenance"}}};

// Places of values that are far from the others.
std::vector<std::size_t> far_from_others(const std::vector<double>& values) {
  std::vector<std::size_t> far;
  if (values.size() < kFewestRows) return far;
  std::vector<double> logs, distances;
  for (const double v : values) logs.push_back(std::log(v));
  const double middle = upper_median(logs);
  for (const double v : logs) distances.push_back(std::abs(v - middle));
  const double spread = std::max(1.4826 * upper_median(distances), kLeastSpread);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    if (std::abs(logs[i] - middle) > kFarScore * spread) far.push_back(i);
  }
  return far;
}

// Leaves out rows that are far from the others of their limit, and names them.
void leave_out_far_rows(std::vector<TableWindow>& rows, RecordingBuilder& builder) {
  std::map<double, std::vector<std::size_t>> limits;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    limits[rows[i].numbers["max_watt"]].push_back(i);
  }
  std::set<std::size_t> left_out;
  for (const auto& [limit, places] : limits) {
    std::vector<double> times, energies;
    for (const std::size_t i : places) {
      times.push_back(seconds(rows[i].window.duration));
      energies.push_back(rows[i].window.energies.front().energy.joules());
    }
    std::set<std::size_t> far;
    for (const auto* values : {&times, &energies}) {
      for (const std::size_t at : far_from_others(*values)) far.insert(places[at]);
    }
    std::vector<std::string> named;
    for (const std::size_t i : far) {
      if (named.size() == 5) break;
      named.push_back(fmt::format("line {} ({:g} tokens/s, {:g} W)", rows[i].line,
                                  rows[i].numbers["tokens_per_sec"],
                                  rows[i].numbers["total_power_draw"]));
    }
    if (far.empty()) continue;
    builder.warn(fmt::format("{} of {} rows at {:g} W left out, far from the others: {}{}",
                             far.size(), places.size(), limit, fmt::join(named, ", "),
                             far.size() > named.size() ? ", ..." : ""));
    left_out.insert(far.begin(), far.end());
  }
  std::vector<TableWindow> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!left_out.contains(i)) kept.push_back(std::move(rows[i]));
  }
  rows = std::move(kept);
}

std::optional<std::string> check(WindowTable& table, TableWindow& row) {
  const double limit = row.numbers["max_watt"], rate = row.numbers["tokens_per_sec"],
               watts = row.numbers["total_power_draw"];
  const auto& provenance = row.texts["provenance"];  // of jouleprof.plot.save_table()
  if (!provenance.empty() && provenance != "measured") {
    return fmt::format("provenance is '{}', and figures of a table count as measured", provenance);
  }
  if (!(limit > 0) || limit > kMostWatts) return fmt::format("max_watt is '{:g}'", limit);
  if (!(rate >= 0)) return fmt::format("tokens_per_sec is '{:g}'", rate);
  if (!(watts > 0) || watts > kMostWatts) return fmt::format("total_power_draw is '{:g}'", watts);
  row.window.name = "token";
  row.window.labels.push_back({"power_limit_watts", fmt::format("{:g}", limit)});
  if (1 / rate > 3e8 || watts / rate > 1e12) return std::nullopt;  // without a token
  row.window.duration = duration_of(1 / rate);
  row.window.energies.push_back(
      {table.domain("gpu0", "GPUs of the table"), Energy::joules(watts / rate)});
  return std::nullopt;
}

Result<void> complete(WindowTable& table) {
  const std::size_t without_tokens = std::erase_if(
      table.windows(), [](const TableWindow& row) { return row.window.energies.empty(); });
  if (without_tokens > 0) {
    table.builder().warn(
        fmt::format("{} without a token left out", counted(without_tokens, "row")));
  }
  if (table.windows().empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: no sample has a token", table.source().path));
  }
  leave_out_far_rows(table.windows(), table.builder());
  table.builder().warn(
      "the table does not say which GPUs it is of; energy is that of samples of power");
  return {};
}

constexpr TableTool kTool{.format = "gpu-tune",
                          .row = "sample",
                          .reason = "the file holds samples of a few seconds' distance",
                          .fields = kFields,
                          .check = check,
                          .complete = complete,
                          .times_are_local = true};

bool recognises_gpu_tune(std::string_view text) {
  return has_columns(text, {{"max_watt"}, {"tokens_per_sec"}});
}

}  // namespace

extern const Importer kGpuTuneImporter{
    {"gpu-tune", "gpu-tune's samples (max_watt,tokens_per_sec,total_power_draw)"},
    false,
    recognises_gpu_tune,
    read_table<kTool>};

}  // namespace jouleprof::importers
