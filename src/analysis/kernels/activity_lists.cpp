#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/activity/layer_tree.h"
#include "analysis/kernels/activity_rows.h"
#include "model/activity/activity_codec.h"
#include "model/activity/phase_name.h"

// The lists of an ActivityProfile other than its kernels.
namespace jouleprof::analysis {
namespace {

using model::ActivityRow;
using model::kNone;

std::string process_name(const model::Trace& trace) {
  const std::string process =
      fmt::format("pid {} ({})", trace.pid, trace.program.empty() ? "?" : trace.program);
  return trace.rank.global ? fmt::format("rank {}, {}", *trace.rank.global, process) : process;
}

}  // namespace

bool ActivityRows::in_part(const model::ActivityChunk& chunk) const {
  return table_.time.seconds_of(chunk.end) > table_.begin &&
         table_.time.seconds_of(chunk.begin) < table_.end && !table_.replay_time.holds(chunk.begin);
}

void ActivityRows::add_layers(std::size_t trace, std::vector<Row>& rows) {
  const model::Trace& t = recording_.traces[trace];
  const auto first = static_cast<std::uint32_t>(rows.size());
  first_layer_[trace] = first;
  for (const auto& layer : t.layers) rows.push_back(analysis::layer_row(layer, first, rows.size()));
  for (const auto& chunk : t.chunks) {
    if (chunk.kind != model::ChunkKind::kLayers || !in_part(chunk)) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::LayerEntry e; decoder.next(e);) {
      if (e.layer < t.layers.size() && e.phase == model::Phase::kForward) {
        rows[first + e.layer].count += e.calls;
      }
    }
  }
}

std::uint32_t ActivityRows::layer_row(const ActivityTable::Share& share) const {
  const model::Scope* scope = scope_of(share);
  if (scope == nullptr || scope->layer == kNone || first_layer_[share.trace] == kNone) return kNone;
  return first_layer_[share.trace] + scope->layer;
}

std::vector<ActivityRow> ActivityRows::layers() {
  std::vector<Row> rows;
  first_layer_.assign(recording_.traces.size(), kNone);
  const auto models = std::count_if(recording_.traces.begin(), recording_.traces.end(),
                                    [](const auto& trace) { return !trace.layers.empty(); });
  for (std::size_t t = 0; t < recording_.traces.size(); ++t) {
    if (recording_.traces[t].layers.empty() || !uses_device_[t]) continue;
    if (models < 2) {
      add_layers(t, rows);
      continue;
    }
    // With layers of several processes, each process has a row that holds its layers.
    const auto process = static_cast<std::uint32_t>(rows.size());
    rows.emplace_back().name = process_name(recording_.traces[t]);
    add_layers(t, rows);
    for (std::size_t i = process + 1; i < rows.size(); ++i) {
      if (rows[i].parent == kNone) rows[i].parent = process;
    }
  }
  if (rows.empty()) return rows;
  rows.emplace_back().name = "(outside of layers)";
  rows = filled(std::move(rows), [this](const auto& share) { return layer_row(share); });
  if (rows.back().launches == 0) rows.pop_back();
  return rows;
}

std::uint32_t ActivityRows::range_row(const ActivityTable::Share& share) const {
  const model::Scope* scope = scope_of(share);
  if (scope == nullptr || scope->range == kNone) return kNone;
  return range_rows_[share.trace][scope->range];
}

std::vector<ActivityRow> ActivityRows::ranges() {
  std::vector<Row> rows;
  range_rows_.assign(recording_.traces.size(), {});
  // The same range of several processes is one row.
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known;
  for (std::size_t t = 0; t < recording_.traces.size(); ++t) {
    if (!uses_device_[t]) continue;
    for (const auto& range : recording_.traces[t].ranges) {
      const std::uint32_t parent = range.parent == kNone ? kNone : range_rows_[t][range.parent];
      const auto [at, is_new] =
          known.try_emplace({parent, range.name}, static_cast<std::uint32_t>(rows.size()));
      if (is_new) {
        Row row;
        row.name = range.name;
        row.parent = parent;
        rows.push_back(std::move(row));
      }
      range_rows_[t].push_back(at->second);
    }
  }
  if (rows.empty()) return rows;
  rows.emplace_back().name = "(outside of ranges)";
  rows = filled(std::move(rows), [this](const auto& share) { return range_row(share); });
  if (rows.back().launches == 0) rows.pop_back();
  return rows;
}

model::Phase ActivityRows::phase_of(const ActivityTable::Share& share) const {
  const model::Scope* scope = scope_of(share);
  return scope == nullptr ? model::Phase::kNone : scope->phase;
}

// Phases in which nothing ran have no row.
std::uint32_t ActivityRows::phase_row(const ActivityTable::Share& share,
                                      const std::vector<ActivityRow>& phases) const {
  const auto name = model::phase_name(phase_of(share));
  for (std::uint32_t i = 0; i < phases.size(); ++i) {
    if (phases[i].name == name) return i;
  }
  return kNone;
}

std::vector<ActivityRow> ActivityRows::phases() const {
  std::vector<Row> rows;
  for (const auto phase :
       {model::Phase::kForward, model::Phase::kBackward, model::Phase::kOptimizer}) {
    rows.emplace_back().name = model::phase_name(phase);
  }
  rows.emplace_back().name = "(no phase)";
  rows = filled(std::move(rows), [this](const auto& share) {
    const auto phase = phase_of(share);
    return phase == model::Phase::kNone ? kNone : static_cast<std::uint32_t>(phase) - 1;
  });
  std::erase_if(rows, [](const Row& row) { return row.launches == 0; });
  return rows;
}

std::vector<model::ActivityStack> ActivityRows::stacks() const {
  std::map<std::array<std::uint32_t, 4>, model::ActivityStack> sums;
  for (const Portion& portion : portions_) {
    const auto phase = phase_of(*portion.share);
    const std::uint32_t kernel = kernel_rows_[portion.share->kernel_class];
    const std::uint32_t layer = layer_row(*portion.share);
    const std::uint32_t range = range_row(*portion.share);
    model::ActivityStack& sum = sums[{static_cast<std::uint32_t>(phase), layer, range, kernel}];
    sum.phase = phase;
    sum.layer = layer;
    sum.range = range;
    sum.kernel = kernel;
    sum.launches += portion.share->launches;
    sum.busy += duration_of(portion.used.sum().busy);
    sum.energy += portion.used.energy;
  }
  std::vector<model::ActivityStack> out;
  for (auto& [key, sum] : sums) out.push_back(sum);
  return out;
}

std::vector<model::ActivityProcess> ActivityRows::processes() const {
  std::vector<model::ActivityProcess> out;
  std::map<std::uint32_t, std::size_t> places;
  for (const Portion& portion : portions_) {
    const std::uint32_t trace = portion.share->trace;
    const auto [place, is_new] = places.try_emplace(trace, out.size());
    if (is_new) {
      out.emplace_back().trace = trace;
      out.back().pid = recording_.traces[trace].pid;
    }
    auto& process = out[place->second];
    process.launches += portion.share->launches;
    process.busy += duration_of(portion.used.sum().busy);
    process.kernels += portion.used.energy;
    // Portions are sorted by kernel signature.
    const std::uint32_t kernel = kernel_rows_[portion.share->kernel_class];
    auto& kernels = process.by_kernel;
    if (kernels.empty() || kernels.back().kernel != kernel) kernels.push_back({kernel, 0, {}, {}});
    kernels.back().launches += portion.share->launches;
    kernels.back().busy += duration_of(portion.used.sum().busy);
    kernels.back().energy += portion.used.energy;
  }
  return out;
}

}  // namespace jouleprof::analysis
