#include "analysis/kernels/activity_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/processes/apportion.h"
#include "base/demangle.h"
#include "model/activity_codec.h"
#include "model/phase_name.h"

namespace jouleprof::analysis {
namespace {

using model::ActivityRow;
using model::kNone;

constexpr double kUnresolved = 0.5;  // of the energy, as a 95 % half-width

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

ActivityRows::ActivityRows(const model::Recording& recording, const ActivityTable& table,
                           const KernelModel& model, double gain, const model::Measurement& like)
    : recording_(recording), table_(table), model_(model), gain_(gain), like_(like) {
  for (std::uint32_t k = 0; k < table_.classes.size(); ++k) {
    class_energy_.push_back(Energy::joules(model_.energy_of(model_.all_of(k)).joules));
  }
}

ActivityRows::Used ActivityRows::all_of(std::uint32_t kernel_class) const {
  Used out;
  for (const auto& use : model_.all_of(kernel_class)) {
    out.seconds[{kernel_class, use.variant}] = {use.busy, use.overlapped};
  }
  out.energy = class_energy_[kernel_class];
  return out;
}

model::Measurement ActivityRows::measurement(const Used& used) const {
  std::vector<KernelModel::Use> uses;
  for (const auto& [key, seconds] : used.seconds) {
    const auto& c = table_.classes[key.first];
    const double gap = c.busy > 0 ? c.gap * seconds.busy / c.busy : 0.0;
    uses.push_back({key.first, key.second, seconds.busy, seconds.overlapped, gap});
  }
  model::Measurement out = like_;
  out.method = "regression";
  out.energy = used.energy;
  const double wide = 1.96 * model_.energy_of(uses).sigma;
  out.repeatability = Energy::joules(wide);
  out.error = Energy::joules(std::hypot(wide, gain_ * used.energy.joules()));
  return out;
}

void ActivityRows::judge(ActivityRow& row) {
  const auto& whole = row.inclusive ? row.inclusive : row.energy;
  if (!whole || whole->repeatability.joules() <= kUnresolved * whole->energy.joules()) return;
  row.resolvable = false;
  if (row.reason.empty()) row.reason = "the data can't tell it from what ran beside it";
}

std::vector<ActivityRow> ActivityRows::kernels() const {
  std::vector<ActivityRow> rows;
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
    if (model_.is_pooled(k)) row.reason = "too short to be told apart: has the power of all such";
    if (group_of[k] != kNone) {
      row.group = group_of[k];
      row.group_energy = together[row.group];
      row.reason =
          fmt::format("runs with {} others in the same proportion; together they are known",
                      groups[row.group].size() - 1);
    }
    judge(row);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ActivityRow& a, const ActivityRow& b) {
    return a.energy->energy > b.energy->energy;
  });
  return rows;
}

bool ActivityRows::in_part(const model::ActivityChunk& chunk) const {
  return table_.time.seconds_of(chunk.end) > table_.begin &&
         table_.time.seconds_of(chunk.begin) < table_.end && !table_.replay_time.holds(chunk.begin);
}

template <class Add>
void ActivityRows::deal(Add add) const {
  // Shares come by class.
  for (std::size_t i = 0; i < table_.shares.size();) {
    std::size_t j = i;
    const std::uint32_t k = table_.shares[i].kernel_class;
    std::vector<double> weights;
    double all = 0;
    double overlapped = 0;
    for (; j < table_.shares.size() && table_.shares[j].kernel_class == k; ++j) {
      const auto& share = table_.shares[j];
      weights.push_back(
          std::max(model_.joules_of({k, share.variant, share.busy, share.overlapped, 0}), 0.0));
      all += share.busy;
      overlapped += share.overlapped;
    }
    auto energies = apportion(class_energy_[k], weights);
    energies.resize(weights.size());
    for (std::size_t n = 0; i < j; ++i, ++n) {
      const auto& share = table_.shares[i];
      Used used;
      const auto& c = table_.classes[k];
      used.seconds[{k, share.variant}] = {
          all > 0 ? c.busy * share.busy / all : 0.0,
          overlapped > 0 ? c.overlapped * share.overlapped / overlapped : 0.0};
      used.energy = energies[n];
      add(table_.shares[i], used);
    }
  }
}

void ActivityRows::fill(std::vector<Row>& rows, std::vector<Used>& own) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].launches == 0) continue;
    Used::Seconds sum;
    for (const auto& [key, seconds] : own[i].seconds) sum.add(seconds);
    rows[i].busy = duration_of(sum.busy);
    rows[i].overlapped = duration_of(sum.overlapped);
    rows[i].energy = measurement(own[i]);
  }
  // A parent comes before its children, so that from the end on each is complete when it is added.
  for (std::size_t i = rows.size(); i-- > 0;) {
    if (!own[i].seconds.empty()) rows[i].inclusive = measurement(own[i]);
    judge(rows[i]);
    if (rows[i].parent != kNone) own[rows[i].parent].add(own[i]);
  }
}

std::vector<ActivityRow> ActivityRows::layers() const {
  std::vector<Row> rows;
  std::vector<std::uint32_t> first(recording_.traces.size(), kNone);
  for (std::size_t t = 0; t < recording_.traces.size(); ++t) {
    const auto& trace = recording_.traces[t];
    if (trace.layers.empty()) continue;
    first[t] = static_cast<std::uint32_t>(rows.size());
    for (const auto& layer : trace.layers) {
      Row row;
      row.name = layer.name;
      row.detail =
          layer.shapes.empty() ? layer.type : fmt::format("{} {}", layer.type, layer.shapes);
      if (layer.parent < rows.size() - first[t]) row.parent = first[t] + layer.parent;
      row.macs = layer.macs;
      row.parameters = layer.parameters;
      if (layer.compiled) row.reason = "compiled: layers within are not told apart";
      rows.push_back(std::move(row));
    }
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != model::ChunkKind::kLayers || !in_part(chunk)) continue;
      model::ActivityDecoder decoder(chunk.bytes);
      for (model::LayerEntry e; decoder.next(e);) {
        if (e.layer < trace.layers.size() && e.phase == model::Phase::kForward) {
          rows[first[t] + e.layer].count += e.calls;
        }
      }
    }
  }
  if (rows.empty()) return rows;
  const std::size_t outside = rows.size();
  rows.emplace_back().name = "(outside of layers)";
  std::vector<Used> own(rows.size());
  deal([&](const ActivityTable::Share& share, const Used& used) {
    std::size_t at = outside;
    if (share.scope != kNone && first[share.trace] != kNone) {
      const auto& scope = recording_.traces[share.trace].scopes[share.scope];
      if (scope.layer != kNone) at = first[share.trace] + scope.layer;
    }
    rows[at].launches += share.launches;
    own[at].add(used);
  });
  fill(rows, own);
  if (rows[outside].launches == 0) rows.pop_back();
  return rows;
}

std::vector<ActivityRow> ActivityRows::ranges() const {
  std::vector<Row> rows;
  std::vector<std::vector<std::uint32_t>> row_of(recording_.traces.size());
  // The same range of several processes is one row.
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> known;
  for (std::size_t t = 0; t < recording_.traces.size(); ++t) {
    for (const auto& range : recording_.traces[t].ranges) {
      const std::uint32_t parent = range.parent == kNone ? kNone : row_of[t][range.parent];
      const auto [at, is_new] =
          known.try_emplace({parent, range.name}, static_cast<std::uint32_t>(rows.size()));
      if (is_new) {
        Row row;
        row.name = range.name;
        row.parent = parent;
        rows.push_back(std::move(row));
      }
      row_of[t].push_back(at->second);
    }
  }
  if (rows.empty()) return rows;
  const std::size_t outside = rows.size();
  rows.emplace_back().name = "(outside of ranges)";
  std::vector<Used> own(rows.size());
  deal([&](const ActivityTable::Share& share, const Used& used) {
    std::size_t at = outside;
    if (share.scope != kNone) {
      const auto& scope = recording_.traces[share.trace].scopes[share.scope];
      if (scope.range != kNone) at = row_of[share.trace][scope.range];
    }
    rows[at].launches += share.launches;
    own[at].add(used);
  });
  fill(rows, own);
  if (rows[outside].launches == 0) rows.pop_back();
  return rows;
}

std::vector<ActivityRow> ActivityRows::phases() const {
  constexpr std::size_t kPhases = 4;
  std::vector<Row> rows(kPhases);
  std::vector<Used> own(kPhases);
  deal([&](const ActivityTable::Share& share, const Used& used) {
    auto phase = model::Phase::kNone;
    if (share.scope != kNone) phase = recording_.traces[share.trace].scopes[share.scope].phase;
    const auto at = static_cast<std::size_t>(phase);
    rows[at].launches += share.launches;
    own[at].add(used);
  });
  fill(rows, own);
  for (std::size_t i = 0; i < kPhases; ++i) {
    rows[i].name = model::phase_name(static_cast<model::Phase>(i));
    if (rows[i].name.empty()) rows[i].name = "(no phase)";
  }
  std::erase_if(rows, [](const Row& row) { return row.launches == 0; });
  std::rotate(rows.begin(),
              std::find_if(rows.begin(), rows.end(), [](auto& r) { return r.name[0] != '('; }),
              rows.end());
  return rows;
}

}  // namespace jouleprof::analysis
