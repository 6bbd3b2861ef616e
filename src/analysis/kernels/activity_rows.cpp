#include "analysis/kernels/activity_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "analysis/activity/layer_time.h"
#include "analysis/processes/apportion.h"
#include "analysis/timeline/sensors/error_model.h"
#include "base/text.h"
#include "model/activity/activity_codec.h"
#include "model/record_fields.h"

namespace jouleprof::analysis {
namespace {

using model::ActivityRow;
using model::kNone;

std::string detail_of(const model::KernelClass& c) {
  if (c.kind == model::ActivityKind::kMemcpy || c.kind == model::ActivityKind::kMemset) {
    if (c.bytes == 0) return "";
    const int power = static_cast<int>(std::log2(static_cast<double>(c.bytes)));
    constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    return fmt::format("{} {} or more", c.bytes >> (power / 10 * 10), kUnits[power / 10]);
  }
  if (c.grid == std::array<std::uint32_t, 3>{}) return "";
  return fmt::format("grid {}x{}x{} block {}x{}x{}", c.grid[0], c.grid[1], c.grid[2], c.block[0],
                     c.block[1], c.block[2]);
}

}  // namespace

void ActivityRows::Used::add(const Used& other) {
  for (const auto& [key, more] : other.seconds) seconds[key].add(more);
  energy += other.energy;
}

ActivityRows::Used::Seconds ActivityRows::Used::sum() const {
  Seconds all;
  for (const auto& [key, more] : seconds) all.add(more);
  return all;
}

ActivityRows::ActivityRows(const model::Recording& recording, const ActivityTable& table,
                           const KernelModel& model, const model::ScaleError& scale,
                           const model::Measurement& like)
    : recording_(recording),
      table_(table),
      model_(model),
      gain_(scale.gain_half()),
      shift_(scale.gain_shift()),
      like_(like) {
  for (std::uint32_t k = 0; k < table_.classes.size(); ++k) {
    // What kernels at the same time draw less than in sum may exceed what a class draws.
    const double joules = model_.energy_of(model_.all_of(k)).joules;
    class_energy_.push_back(Energy::joules(std::max(joules, 0.0)));
  }
  uses_device_.resize(recording_.traces.size());
  for (const auto& total : table_.scope_totals) uses_device_[total.trace] = true;
  portions_ = portions();
}

void ActivityRows::fill(model::ActivityProfile& out) {
  out.by_kernel = kernels();
  out.by_layer = layers();
  out.by_range = ranges();
  out.by_phase = phases();
  out.stacks = stacks();
  out.by_process = processes();
}

ActivityRows::Used ActivityRows::all_of(std::uint32_t kernel_class) const {
  Used out;
  for (const auto& use : model_.all_of(kernel_class)) {
    out.seconds[{kernel_class, use.variant}] = {use.busy, use.overlapped};
  }
  out.energy = class_energy_[kernel_class];
  return out;
}

std::vector<KernelModel::Use> ActivityRows::uses_of(const Used& used) const {
  std::vector<KernelModel::Use> uses;
  for (const auto& [key, seconds] : used.seconds) {
    const auto& c = table_.classes[key.first];
    const double idle_between = c.busy > 0 ? c.idle_between * seconds.busy / c.busy : 0.0;
    uses.push_back({key.first, key.second, seconds.busy, seconds.overlapped, idle_between});
  }
  return uses;
}

model::Measurement ActivityRows::measurement(const Used& used) const {
  model::Measurement out = like_;
  out.method = "regression";
  out.energy = used.energy;
  // Above idle: an offset of the sensor is in the idle power.
  out.shift = shift_;
  out.offset = {};
  const double wide = kErrors.normal95 * model_.energy_of(uses_of(used)).sigma;
  out.repeatability = Energy::joules(wide);
  out.error = Energy::joules(std::hypot(wide, gain_ * used.energy.joules()));
  return out;
}

void ActivityRows::mark_unresolvable(ActivityRow& row) const {
  const auto& whole = row.inclusive ? row.inclusive : row.energy;
  if (whole && !model_.explains()) {
    row.resolvable = false;
    row.reason = "what ran when does not explain the readings";
    return;
  }
  const double most = model_.sampling_error() > 0 ? kErrors.unresolved_locked : kErrors.unresolved;
  if (!whole || whole->repeatability.joules() <= most * whole->energy.joules()) return;
  row.resolvable = false;
  if (row.reason.empty() && most < kErrors.unresolved) {
    row.reason = "the load repeats in step with the sensor, which sees few of its phases";
  }
  if (row.reason.empty()) row.reason = "not identifiable: collinear with other kernels";
}

std::vector<ActivityRow> ActivityRows::kernels() {
  std::vector<ActivityRow> rows;
  std::vector<std::uint32_t> class_of;  // by row
  std::vector<std::uint32_t> group_of(table_.classes.size(), kNone);
  const auto groups = model_.groups();
  std::vector<model::Measurement> together;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    Used sum;
    for (const std::uint32_t k : groups[g]) {
      group_of[k] = g;
      sum.add(all_of(k));
    }
    together.push_back(measurement(sum));
  }
  for (std::uint32_t k = 0; k < table_.classes.size(); ++k) {
    const auto& c = table_.classes[k];
    if (c.launches == 0 && c.busy == 0) continue;
    ActivityRow row;
    row.name = demangle(c.key.name);
    if (row.name != c.key.name) row.symbol = c.key.name;
    row.detail = detail_of(c.key);
    row.kernel = c.key;
    row.count = row.launches = c.launches;
    row.busy = duration_of(c.busy);
    row.overlapped = duration_of(c.overlapped);
    row.energy = row.inclusive = measurement(all_of(k));
    row.remembered = model_.rests_on_known(uses_of(all_of(k)));
    if (model_.is_pooled(k)) {
      row.reason = model_.is_above_cap(k) ? "too many kernel signatures: those with the least "
                                            "time share one power"
                                          : "too short to be identified: has the mean power of "
                                            "all such kernels";
    } else if (const auto bound = model_.bound_of(k)) {
      row.reason = fmt::format(
          "at a bound: the readings would put its power "
          "{} {:.1f} W above idle, {}",
          *bound > 0 ? "above" : "below", *bound,
          *bound > 0 ? "more than the board can draw" : "less than nothing");
    }
    if (group_of[k] != kNone) {
      row.group = group_of[k];
      row.group_energy = together[row.group];
      row.reason = fmt::format(
          "collinear: always runs in the same proportion "
          "as {} others; their sum is "
          "identifiable",
          groups[row.group].size() - 1);
    }
    mark_unresolvable(row);
    rows.push_back(std::move(row));
    class_of.push_back(k);
  }
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return rows[a].energy->energy > rows[b].energy->energy;
  });
  kernel_rows_.assign(table_.classes.size(), kNone);
  std::vector<ActivityRow> sorted;
  for (const std::size_t i : order) {
    kernel_rows_[class_of[i]] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(rows[i]));
  }
  return sorted;
}

std::vector<ActivityRows::Portion> ActivityRows::portions() const {
  std::vector<Portion> out;
  // Totals are sorted by kernel signature.
  for (std::size_t i = 0; i < table_.scope_totals.size();) {
    std::size_t j = i;
    const std::uint32_t k = table_.scope_totals[i].kernel_class;
    std::vector<double> weights;
    double all = 0;
    double overlapped = 0;
    for (; j < table_.scope_totals.size() && table_.scope_totals[j].kernel_class == k; ++j) {
      const auto& total = table_.scope_totals[j];
      weights.push_back(
          std::max(model_.joules_of({k, total.variant, total.busy, total.overlapped, 0}), 0.0));
      all += total.busy;
      overlapped += total.overlapped;
    }
    auto energies = apportion(class_energy_[k], weights);
    energies.resize(weights.size());
    for (std::size_t n = 0; i < j; ++i, ++n) {
      const auto& total = table_.scope_totals[i];
      Portion& portion = out.emplace_back();
      portion.total = &total;
      const auto& c = table_.classes[k];
      portion.used.seconds[{k, total.variant}] = {
          all > 0 ? c.busy * total.busy / all : 0.0,
          overlapped > 0 ? c.overlapped * total.overlapped / overlapped : 0.0};
      portion.used.energy = energies[n];
    }
  }
  return out;
}

const model::Scope* ActivityRows::scope_of(const ActivityTable::ScopeTotal& total) const {
  return total.scope == kNone ? nullptr : &recording_.traces[total.trace].scopes[total.scope];
}

std::vector<ActivityRow> ActivityRows::filled(std::vector<Row> rows, const RowOf& row_of) const {
  std::vector<Used> own(rows.size());
  for (const Portion& portion : portions_) {
    const std::uint32_t found = row_of(*portion.total);
    const std::size_t at = found == kNone ? rows.size() - 1 : found;
    rows[at].launches += portion.total->launches;
    own[at].add(portion.used);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].launches == 0) continue;
    const Used::Seconds sum = own[i].sum();
    rows[i].busy = duration_of(sum.busy);
    rows[i].overlapped = duration_of(sum.overlapped);
    rows[i].energy = measurement(own[i]);
  }
  // Parents come before their children: backwards, each row is complete before its parent adds it.
  for (std::size_t i = rows.size(); i-- > 0;) {
    if (!own[i].seconds.empty()) {
      rows[i].inclusive = measurement(own[i]);
      rows[i].remembered = model_.rests_on_known(uses_of(own[i]));
    }
    mark_unresolvable(rows[i]);
    if (rows[i].parent != kNone) own[rows[i].parent].add(own[i]);
  }
  return rows;
}

// --- The lists of an ActivityProfile other than its kernels ---

namespace {

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

std::uint32_t ActivityRows::layer_row(const ActivityTable::ScopeTotal& total) const {
  const model::Scope* scope = scope_of(total);
  if (scope == nullptr || scope->layer == kNone || first_layer_[total.trace] == kNone) return kNone;
  return first_layer_[total.trace] + scope->layer;
}

std::vector<ActivityRow> ActivityRows::layers() {
  std::vector<Row> rows;
  first_layer_.assign(recording_.traces.size(), kNone);
  const auto models = std::ranges::count_if(
      recording_.traces, [](const auto& trace) { return !trace.layers.empty(); });
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
  rows = filled(std::move(rows), [this](const auto& total) { return layer_row(total); });
  if (rows.back().launches == 0) rows.pop_back();
  return rows;
}

std::uint32_t ActivityRows::range_row(const ActivityTable::ScopeTotal& total) const {
  const model::Scope* scope = scope_of(total);
  if (scope == nullptr || scope->range == kNone) return kNone;
  return range_rows_[total.trace][scope->range];
}

std::vector<ActivityRow> ActivityRows::ranges() {
  std::vector<Row> rows;
  range_rows_.assign(recording_.traces.size(), {});
  // Ranges in which nothing was launched have no row: a compiler opens tens of thousands of them.
  std::vector<std::vector<bool>> used(recording_.traces.size());
  for (std::size_t t = 0; t < used.size(); ++t) used[t].resize(recording_.traces[t].ranges.size());
  for (const Portion& portion : portions_) {
    const model::Scope* scope = scope_of(*portion.total);
    const std::size_t t = portion.total->trace;
    for (std::uint32_t r = scope == nullptr ? kNone : scope->range; r != kNone && !used[t][r];
         r = recording_.traces[t].ranges[r].parent) {
      used[t][r] = true;
    }
  }
  // The same range of several processes is one row.
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known;
  for (std::size_t t = 0; t < recording_.traces.size(); ++t) {
    if (!uses_device_[t]) continue;
    for (std::size_t r = 0; r < used[t].size(); ++r) {
      if (!used[t][r]) {
        range_rows_[t].push_back(kNone);
        continue;
      }
      const model::Range& range = recording_.traces[t].ranges[r];
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
  rows = filled(std::move(rows), [this](const auto& total) { return range_row(total); });
  if (rows.back().launches == 0) rows.pop_back();
  return rows;
}

model::Phase ActivityRows::phase_of(const ActivityTable::ScopeTotal& total) const {
  const model::Scope* scope = scope_of(total);
  return scope == nullptr ? model::Phase::kNone : scope->phase;
}

// Phases in which nothing ran have no row.
std::uint32_t ActivityRows::phase_row(const ActivityTable::ScopeTotal& total,
                                      const std::vector<ActivityRow>& phases) const {
  const auto name = model::phase_name(phase_of(total));
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
  rows = filled(std::move(rows), [this](const auto& total) {
    const auto phase = phase_of(total);
    return phase == model::Phase::kNone ? kNone : static_cast<std::uint32_t>(phase) - 1;
  });
  std::erase_if(rows, [](const Row& row) { return row.launches == 0; });
  return rows;
}

std::vector<model::ActivityStack> ActivityRows::stacks() const {
  std::map<std::array<std::uint32_t, 4>, model::ActivityStack> sums;
  for (const Portion& portion : portions_) {
    const auto phase = phase_of(*portion.total);
    const std::uint32_t kernel = kernel_rows_[portion.total->kernel_class];
    const std::uint32_t layer = layer_row(*portion.total);
    const std::uint32_t range = range_row(*portion.total);
    model::ActivityStack& sum = sums[{static_cast<std::uint32_t>(phase), layer, range, kernel}];
    sum.phase = phase;
    sum.layer = layer;
    sum.range = range;
    sum.kernel = kernel;
    sum.launches += portion.total->launches;
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
    const std::uint32_t trace = portion.total->trace;
    const auto [place, is_new] = places.try_emplace(trace, out.size());
    if (is_new) {
      out.emplace_back().trace = trace;
      out.back().pid = recording_.traces[trace].pid;
    }
    auto& process = out[place->second];
    process.launches += portion.total->launches;
    process.busy += duration_of(portion.used.sum().busy);
    process.kernels += portion.used.energy;
    // Portions are sorted by kernel signature.
    const std::uint32_t kernel = kernel_rows_[portion.total->kernel_class];
    auto& kernels = process.by_kernel;
    if (kernels.empty() || kernels.back().kernel != kernel) kernels.push_back({kernel, 0, {}, {}});
    kernels.back().launches += portion.total->launches;
    kernels.back().busy += duration_of(portion.used.sum().busy);
    kernels.back().energy += portion.used.energy;
  }
  return out;
}

}  // namespace jouleprof::analysis
