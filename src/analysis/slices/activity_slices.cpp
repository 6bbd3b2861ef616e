#include "analysis/slices/activity_slices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/levels/domains.h"
#include "analysis/timeline/sensors/error_model.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using model::ActivityRow;
using model::kNone;

// The rows of one list of an ActivityProfile, slice by slice.
class SliceRows {
 public:
  // The `most` rows with the highest energies. `rows` outlives this.
  SliceRows(const std::vector<model::ActivityRow>& rows, std::size_t most);

  std::size_t size() const { return order_.size(); }

  // To the row, and to all that hold it. kNone: to none.
  void add(std::uint32_t row, const KernelModel::Use& use, double joules);

  // Ends a slice. `gain`: the sensor's relative error at 95 %.
  void finish(const KernelModel& model, double gain, std::vector<model::ActivitySlices::Row>& out);

 private:
  // What ran in the current slice, by signature and variant.
  using Uses = std::map<std::pair<std::uint32_t, std::uint32_t>, KernelModel::Use>;

  const std::vector<model::ActivityRow>& rows_;
  std::vector<std::uint32_t> order_;  // by place: the row
  std::vector<std::uint32_t> place_;  // by row; kNone: it has none
  std::vector<Uses> uses_;            // by place
  std::vector<double> joules_;        // by place
};

SliceRows::SliceRows(const std::vector<model::ActivityRow>& rows, std::size_t most) : rows_(rows) {
  order_.resize(rows.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::erase_if(order_, [&](std::uint32_t i) { return !rows[i].inclusive; });
  std::ranges::stable_sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    return rows[a].inclusive->energy > rows[b].inclusive->energy;
  });
  if (order_.size() > most) order_.resize(most);
  place_.assign(rows.size(), kNone);
  for (std::uint32_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
  uses_.resize(order_.size());
  joules_.resize(order_.size());
}

void SliceRows::add(std::uint32_t row, const KernelModel::Use& use, double joules) {
  for (; row != kNone; row = rows_[row].parent) {
    const std::uint32_t at = place_[row];
    if (at == kNone) continue;
    auto& sum = uses_[at][{use.kernel_class, use.variant}];
    sum.kernel_class = use.kernel_class;
    sum.variant = use.variant;
    sum.busy += use.busy;
    sum.overlapped += use.overlapped;
    sum.idle_between += use.idle_between;
    joules_[at] += joules;
  }
}

void SliceRows::finish(const KernelModel& model, double gain,
                       std::vector<model::ActivitySlices::Row>& out) {
  out.resize(order_.size());
  std::vector<KernelModel::Use> uses;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    uses.clear();
    for (const auto& [key, use] : uses_[i]) uses.push_back(use);
    const double wide = uses.empty() ? 0.0 : kErrors.normal95 * model.energy_of(uses).sigma;
    out[i].row = order_[i];
    out[i].energies.push_back(Energy::joules(joules_[i]));
    out[i].errors.push_back(Energy::joules(std::hypot(wide, gain * joules_[i])));
    uses_[i].clear();
    joules_[i] = 0;
  }
}

constexpr Duration kShortest = model::kScopeInterval;
constexpr Duration kShortestOfLongChunks = 1s;  // of older recordings
constexpr std::size_t kMostKernels = 100;
constexpr std::size_t kMostParts = 150;  // layers, ranges

// What has no row of its own is in the last one, named "(outside of ...)", where there is one.
std::uint32_t or_outside(std::uint32_t row, const std::vector<ActivityRow>& rows) {
  if (row != kNone || rows.empty() || !rows.back().name.starts_with('(')) return row;
  return static_cast<std::uint32_t>(rows.size() - 1);
}

class Slicer {
 public:
  Slicer(const model::Recording& recording, const ActivityTable& table, const KernelModel& model,
         const ActivityRows& rows, double gain, const model::ActivityProfile& profile)
      : recording_(recording),
        table_(table),
        model_(model),
        gain_(gain),
        domain_(profile.domain),
        lists_{SliceRows(profile.by_kernel, kMostKernels), SliceRows(profile.by_layer, kMostParts),
               SliceRows(profile.by_range, kMostParts), SliceRows(profile.by_phase, kMostParts)} {
    outside_ = {kNone, or_outside(kNone, profile.by_layer), or_outside(kNone, profile.by_range),
                or_outside(kNone, profile.by_phase)};
    first_variant_.assign(table.classes.size() + 1, 0);
    for (const auto& v : table.variants) ++first_variant_[v.kernel_class + 1];
    std::partial_sum(first_variant_.begin(), first_variant_.end(), first_variant_.begin());
    for (std::uint32_t k = 0; k < table.classes.size(); ++k) {
      kernel_rows_.push_back(rows.kernel_row(k));
    }
    for (std::size_t i = 0; i < table.scope_totals.size(); ++i) {
      const auto& total = table.scope_totals[i];
      number_[{total.kernel_class, total.trace, total.scope}] = i;
      rows_of_.push_back({rows.kernel_row(total.kernel_class),
                          or_outside(rows.layer_row(total), profile.by_layer),
                          or_outside(rows.range_row(total), profile.by_range),
                          or_outside(rows.phase_row(total, profile.by_phase), profile.by_phase)});
    }
    for (const auto& p : profile.by_process) {
      process_of_[p.trace] = processes_.size();
      processes_.push_back({p.trace, {}, {}});
    }
    find_chunks();
  }

  model::ActivitySlices run(const model::ActivityProfile& profile, const SliceRequest& request) {
    model::ActivitySlices out;
    out.domain = profile.domain.id;
    std::size_t rows = 0;
    for (const auto& list : lists_) rows += list.size();
    if (rows == 0) return out;
    const HostTime first = table_.time.host_of(table_.begin);
    const Duration length = table_.time.host_of(table_.end) - first;
    out.step = step_of(length, request.most_cells / rows, shortest());
    out.begin = edge_before(first, request.origin, out.step);
    for (HostTime edge = out.begin; edge < first + length; edge += out.step) {
      take_bins(edge + out.step);
      take_scopes(edge, edge + out.step);
      for (auto& p : processes_) {
        p.kernels.emplace_back();
        p.idle_between.emplace_back();
      }
      divide();
      lists_[0].finish(model_, gain_, out.by_kernel);
      lists_[1].finish(model_, gain_, out.by_layer);
      lists_[2].finish(model_, gain_, out.by_range);
      lists_[3].finish(model_, gain_, out.by_phase);
      ++out.count;
    }
    out.by_process = std::move(processes_);
    return out;
  }

 private:
  struct Class {
    double busy = 0;
    double overlapped = 0;
    double idle_between = 0;
  };
  struct Chunk {
    const model::ActivityChunk* chunk = nullptr;
    std::uint32_t trace = 0;
    bool overlapped = false;
  };

  // The length of most of the chunks, by time.
  Duration shortest() const {
    Duration within{};
    Duration beyond{};
    for (const auto& [chunk, trace, overlapped] : chunks_) {
      const Duration length = chunk->end - chunk->begin;
      const Duration longest = std::max(kShortest, recording_.traces[trace].bin);
      (length <= longest ? within : beyond) += length;
    }
    return within >= beyond ? kShortest : kShortestOfLongChunks;
  }

  void find_chunks() {
    const HostTime begin = table_.time.host_of(table_.begin);
    const HostTime end = table_.time.host_of(table_.end);
    for (std::uint32_t t = 0; t < recording_.traces.size(); ++t) {
      const auto& trace = recording_.traces[t];
      for (const auto& chunk : trace.chunks) {
        const bool overlapped = chunk.kind == model::ChunkKind::kOverlappedScopes;
        if (!overlapped && chunk.kind != model::ChunkKind::kScopes) continue;
        if (chunk.end <= begin || chunk.begin >= end) continue;
        if (table_.replay_time.holds(chunk.begin) || !is_on(recording_, trace, chunk, domain_)) {
          continue;
        }
        chunks_.push_back({&chunk, t, overlapped});
      }
    }
    std::ranges::stable_sort(
        chunks_, [](const Chunk& a, const Chunk& b) { return a.chunk->begin < b.chunk->begin; });
  }

  // The busy time of the bins up to `end`, from where the slice before ended.
  void take_bins(HostTime end) {
    classes_.assign(table_.classes.size(), {});
    variants_.assign(table_.variants.size(), 0.0);
    for (; bin_ < table_.bins.size(); ++bin_) {
      const auto& bin = table_.bins[bin_];
      const HostTime at = table_.time.host_of(bin.begin);
      if (at >= end || bin.begin >= table_.end) break;
      if (bin.begin < table_.begin || table_.replay_time.holds(at)) continue;
      take_bin(bin, std::span(table_.entries).subspan(bin.first, table_.end_of(bin_) - bin.first));
    }
  }

  void take_bin(const ActivityTable::Bin& bin, std::span<const ActivityTable::Entry> entries) {
    const std::size_t kinds = table_.classes.size();
    double all = 0;
    for (const auto& e : entries) all += e.kernel_class < kinds ? e.busy : 0.0;
    for (const auto& e : entries) {
      const double busy = e.busy;
      if (e.kernel_class < kinds) {
        classes_[e.kernel_class].busy += busy;
        if (all > 0) classes_[e.kernel_class].idle_between += (bin.width - all) * busy / all;
      } else if (e.kernel_class < kinds + table_.variants.size()) {
        variants_[e.kernel_class - kinds] += busy;
      } else {
        classes_[e.kernel_class - table_.overlapped(0)].overlapped += busy;
      }
    }
  }

  // Of each signature's time the parts of those who launched it: of the chunks that touch the
  // slice, as much as lies within it.
  void take_scopes(HostTime begin, HostTime end) {
    busy_.assign(table_.scope_totals.size(), 0.0);
    overlapped_.assign(table_.scope_totals.size(), 0.0);
    while (first_chunk_ < chunks_.size() && chunks_[first_chunk_].chunk->end <= begin) {
      ++first_chunk_;
    }
    for (std::size_t i = first_chunk_; i < chunks_.size(); ++i) {
      const auto& [chunk, trace, overlapped] = chunks_[i];
      if (chunk->begin >= end) break;
      const double length = seconds(chunk->end - chunk->begin);
      const double within = seconds(std::min(chunk->end, end) - std::max(chunk->begin, begin));
      if (length <= 0 || within <= 0) continue;
      const double part = 1e-9 * within / length;
      model::ActivityDecoder decoder(chunk->bytes);
      for (model::ScopeEntry e; decoder.next(e);) {
        const auto k = table_.numbers[trace][e.kernel_class];
        const auto found = number_.find({k, trace, e.scope});
        if (found == number_.end()) continue;
        auto& to = overlapped ? overlapped_ : busy_;
        to[found->second] += part * static_cast<double>(e.busy_nanoseconds);
      }
    }
  }

  std::vector<KernelModel::Use> uses_of(std::uint32_t k) const {
    const Class& c = classes_[k];
    double all = 0;
    for (auto v = first_variant_[k]; v < first_variant_[k + 1]; ++v) all += variants_[v];
    if (all <= 0) return {{k, kNone, c.busy, c.overlapped, c.idle_between}};
    std::vector<KernelModel::Use> uses;
    for (auto v = first_variant_[k]; v < first_variant_[k + 1]; ++v) {
      if (variants_[v] <= 0) continue;
      const double part = variants_[v] / all;
      uses.push_back({k, v, part * c.busy, part * c.overlapped, part * c.idle_between});
    }
    return uses;
  }

  // As ActivityRows does for all of the time.
  void divide() {
    for (std::size_t i = 0, j = 0; i < table_.scope_totals.size(); i = j) {
      const std::uint32_t k = table_.scope_totals[i].kernel_class;
      for (j = i; j < table_.scope_totals.size() && table_.scope_totals[j].kernel_class == k; ++j) {
      }
      divide_class(k, i, j);
    }
  }

  // `first` to `last`: the signature's totals.
  void divide_class(std::uint32_t k, std::size_t first, std::size_t last) {
    const Class& c = classes_[k];
    if (c.busy <= 0) return;
    double joules = 0;
    for (const auto& use : uses_of(k)) {
      const double own = model_.joules_of(use);
      lists_[0].add(kernel_rows_[k], use, own);
      joules += own;
    }
    double weight = 0;
    double busy = 0;
    double overlapped = 0;
    const auto weight_of = [&](std::size_t i) {
      return std::max(
          model_.joules_of({k, table_.scope_totals[i].variant, busy_[i], overlapped_[i], 0}), 0.0);
    };
    for (std::size_t i = first; i < last; ++i) {
      weight += weight_of(i);
      busy += busy_[i];
      overlapped += overlapped_[i];
    }
    if (weight <= 0 || busy <= 0) {
      const KernelModel::Use all{k, kNone, c.busy, c.overlapped, c.idle_between};
      for (std::size_t list = 1; list < lists_.size(); ++list) {
        lists_[list].add(outside_[list], all, joules);
      }
      // By the time of the whole run, where no scope of this slice has launched it.
      double whole = 0;
      for (std::size_t i = first; i < last; ++i) whole += table_.scope_totals[i].busy;
      for (std::size_t i = first; i < last && (busy > 0 || whole > 0); ++i) {
        const double part = busy > 0 ? busy_[i] / busy : table_.scope_totals[i].busy / whole;
        add_to_process(i, part, part * joules);
      }
      return;
    }
    for (std::size_t i = first; i < last; ++i) {
      if (busy_[i] <= 0) continue;
      const double part = busy_[i] / busy;
      const KernelModel::Use use{k, table_.scope_totals[i].variant, part * c.busy,
                                 overlapped > 0 ? c.overlapped * overlapped_[i] / overlapped : 0.0,
                                 part * c.idle_between};
      const double own = joules * weight_of(i) / weight;
      add_to_process(i, part, own);
      for (std::size_t list = 1; list < lists_.size(); ++list) {
        lists_[list].add(rows_of_[i][list], use, own);
      }
    }
  }

  // `part`: of the time of the total's signature in this slice.
  void add_to_process(std::size_t total, double part, double joules) {
    const auto& of = table_.scope_totals[total];
    auto& process = processes_[process_of_.at(of.trace)];
    process.kernels.back() += joules;
    process.idle_between.back() += part * classes_[of.kernel_class].idle_between;
  }

  const model::Recording& recording_;
  const ActivityTable& table_;
  const KernelModel& model_;
  double gain_;
  const model::Domain& domain_;
  std::array<SliceRows, 4> lists_;                     // kernel, layer, range, phase
  std::array<std::uint32_t, 4> outside_{};             // their last rows
  std::vector<std::array<std::uint32_t, 4>> rows_of_;  // by total: in each list
  std::vector<std::uint32_t> kernel_rows_;             // by signature
  std::vector<std::uint32_t> first_variant_;           // by signature, and one more
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t> number_;  // total
  std::vector<model::ActivitySlices::Process> processes_;
  std::map<std::uint32_t, std::size_t> process_of_;  // by trace
  std::vector<Chunk> chunks_;                        // in order of begin
  std::size_t first_chunk_ = 0;
  std::size_t bin_ = 0;
  // Of the current slice:
  std::vector<Class> classes_;
  std::vector<double> variants_;    // busy seconds
  std::vector<double> busy_;        // by total
  std::vector<double> overlapped_;  // by total
};

constexpr std::size_t kFewest = 12;  // slices of a long run, however many rows there are
constexpr std::size_t kMostSlices = 600;

}  // namespace

model::ActivitySlices activity_slices(const model::Recording& recording, const ActivityTable& table,
                                      const KernelModel& model, const ActivityRows& rows,
                                      double gain, const model::ActivityProfile& profile,
                                      const SliceRequest& request) {
  return Slicer(recording, table, model, rows, gain, profile).run(profile, request);
}

Duration round_step(Duration least) {
  if (least <= 500ms) return 500ms;
  for (const Duration unit : {Duration{1s}, Duration{10s}, Duration{60s}, Duration{600s}}) {
    for (const int factor : {1, 2, 5}) {
      if (factor * unit >= least) return factor * unit;
    }
  }
  return (least / Duration{1h} + 1) * Duration{1h};
}

Duration step_of(Duration length, std::size_t most, Duration shortest) {
  const auto slices = static_cast<std::int64_t>(std::clamp(most, kFewest, kMostSlices));
  return round_step(std::max(length / slices, shortest));
}

HostTime edge_before(HostTime t, HostTime origin, Duration step) {
  const Duration lead = t - origin;
  std::int64_t steps = lead / step;
  if (steps * step > lead) --steps;
  return origin + steps * step;
}

}  // namespace jouleprof::analysis
