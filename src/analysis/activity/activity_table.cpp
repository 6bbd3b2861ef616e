#include "analysis/activity/activity_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/activity/bin_lattice.h"
#include "analysis/activity/kernel_variants.h"
#include "analysis/levels/domains.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

// The re-runs of one trace, without launches. Absent: its chunks are damaged.
std::optional<std::vector<ActivityTable::Replay>> replay_loops(const model::Trace& trace,
                                                               std::uint32_t index,
                                                               const TimeBase& time) {
  std::vector<ActivityTable::Replay> out;
  for (const auto& chunk : trace.chunks) {
    if (chunk.kind != model::ChunkKind::kReplay) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::KernelRerun e; decoder.next(e);) {
      ActivityTable::Replay& loop = out.emplace_back();
      loop.trace = index;
      loop.clock = 1e3 * static_cast<double>(e.clock_kilohertz);
      loop.of_program = e.launches;
      loop.begin = time.seconds_of(chunk.begin);
      loop.end = time.seconds_of(chunk.end);
    }
    if (!decoder.ok()) return std::nullopt;
  }
  return out;
}

// Adds launches of a signature to the re-run at time `t` in seconds, if there is one.
void add_to_loop(std::span<ActivityTable::Replay> loops, double t, std::uint32_t kernel_class,
                 const ActivityTable::Replay::Ran& more) {
  const auto at = std::ranges::find_if(
      loops, [t](const auto& loop) { return t >= loop.begin && t < loop.end; });
  if (at == loops.end()) return;
  const auto slot = static_cast<std::size_t>((t - at->begin) / ActivityTable::Replay::kSlot);
  if (at->slots.size() <= slot) at->slots.resize(slot + 1);
  for (auto* ran : {&at->ran[kernel_class], &at->slots[slot][kernel_class]}) {
    ran->launches += more.launches;
    ran->busy += more.busy;
  }
}

using model::ActivityChunk;
using model::ChunkKind;

constexpr std::size_t kMostBins = 2'000'000;  // half an hour of 1 ms
constexpr std::size_t kLeastBytes = 4;        // of an entry of a bin

struct ByKey {
  bool operator()(const model::KernelClass* a, const model::KernelClass* b) const {
    const auto key = [](const model::KernelClass& c) {
      return std::tie(c.kind, c.name, c.grid, c.block, c.bytes);
    };
    return key(*a) < key(*b);
  }
};

// A chunk of bins.
struct Bins {
  const ActivityChunk* chunk = nullptr;
  std::uint32_t trace = 0;
  bool overlapped = false;
};

class Builder {
 public:
  Builder(const model::Recording& recording, const model::Domain& domain,
          std::optional<HostTime> from, std::optional<HostTime> to)
      : recording_(recording), domain_(domain), from_(from), to_(to) {}

  Result<ActivityTable> build() {
    make_lattice();
    for (const auto& trace : recording_.traces) {
      const bool here = std::ranges::any_of(
          trace.chunks, [&](const auto& chunk) { return is_here(trace, chunk); });
      if (here) table_.replay_time.add(trace);
    }
    const auto traces = static_cast<std::uint32_t>(recording_.traces.size());
    for (std::uint32_t t = 0; t < traces; ++t) {
      number_classes(recording_.traces[t]);
      if (!find_variants(t)) return tl::unexpected(damaged(recording_.traces[t]));
    }
    variants_.find();
    for (const auto& v : variants_.all()) table_.variants.push_back({v.kernel_class, 0, v.launch});
    for (std::uint32_t t = 0; t < traces; ++t) {
      if (!take_scopes(t)) return tl::unexpected(damaged(recording_.traces[t]));
    }
    find_bins();
    for (const Bins& bins : bins_) {
      if (!take_loops(bins)) return tl::unexpected(damaged(recording_.traces[bins.trace]));
    }
    for (auto& loop : table_.replays) leave_out_preparations(loop);
    mix_replays(variants_, table_.replays, mix_);
    for (const Bins& bins : bins_) {
      const auto finish = [&](const BinLattice::Bin& bin) { finish_bin(bin); };
      lattice_->take_before(table_.time.seconds_of(bins.chunk->begin), finish);
      if (!take_bins(bins)) return tl::unexpected(damaged(recording_.traces[bins.trace]));
    }
    lattice_->take([&](const BinLattice::Bin& bin) { finish_bin(bin); });
    finish_totals();
    table_.numbers = std::move(known_);
    return std::move(table_);
  }

 private:
  bool is_here(const model::Trace& trace, const ActivityChunk& chunk) const {
    return is_on(recording_, trace, chunk, domain_);
  }

  // Sets the time's origin, and the lattice from there on.
  void make_lattice() {
    Duration bin = std::chrono::milliseconds{1};
    HostTime first = HostTime::max();
    HostTime last = HostTime::min();
    for (const auto& trace : recording_.traces) {
      bin = std::max(bin, trace.bin);
      for (const auto& chunk : trace.chunks) {
        if (!is_here(trace, chunk)) continue;
        first = std::min(first, chunk.begin);
        last = std::max(last, chunk.end);
      }
    }
    if (last < first) first = last = HostTime{};
    table_.time.origin = first;
    const auto bins = static_cast<std::size_t>((last - first) / bin);
    lattice_.emplace(seconds(bin) * static_cast<double>(bins / kMostBins + 1));
  }

  static Error damaged(const model::Trace& trace) {
    return {Errc::kCorrupt, fmt::format("the recorded activity of process {} ({}) is damaged",
                                        trace.pid, trace.program)};
  }

  void number_classes(const model::Trace& trace) {
    auto& known = known_.emplace_back();
    for (const auto& key : trace.classes) {
      const auto [at, is_new] =
          by_key_.try_emplace(&key, static_cast<std::uint32_t>(table_.classes.size()));
      if (is_new) table_.classes.emplace_back().key = key;
      known.push_back(at->second);
    }
  }

  // Calls use(signature, entry) for each scope's entry of a chunk. False: damaged.
  template <class Use>
  bool each_scope(std::uint32_t index, const ActivityChunk& chunk, Use use) const {
    const model::Trace& trace = recording_.traces[index];
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::ScopeEntry e; decoder.next(e);) {
      if (e.kernel_class >= trace.classes.size() ||
          (e.scope != model::kNone && e.scope >= trace.scopes.size())) {
        return false;
      }
      use(known_[index][e.kernel_class], e);
    }
    return decoder.ok();
  }

  bool is_scopes(const model::Trace& trace, const ActivityChunk& chunk,
                 ChunkKind kind = ChunkKind::kScopes) const {
    return chunk.kind == kind && is_here(trace, chunk) && !table_.replay_time.holds(chunk.begin);
  }

  bool counts(const ActivityChunk& chunk) const {
    return !(from_ && chunk.end <= *from_) && !(to_ && chunk.begin >= *to_);
  }

  // In the whole recording, not only in the requested part. False: damaged.
  bool find_variants(std::uint32_t index) {
    const model::Trace& trace = recording_.traces[index];
    return std::ranges::all_of(trace.chunks, [&](const auto& chunk) {
      return !is_scopes(trace, chunk) ||
             each_scope(index, chunk, [&](std::uint32_t k, const model::ScopeEntry& e) {
               if (table_.classes[k].key.kind != model::ActivityKind::kKernel) return;
               variants_.add(k, index, e.scope, e.launches, busy_of(e));
             });
    });
  }

  template <class Entry>
  static double busy_of(const Entry& e) {
    return 1e-9 * static_cast<double>(e.busy_nanoseconds);
  }

  // All but bins. False: damaged.
  bool take_scopes(std::uint32_t index) {
    const model::Trace& trace = recording_.traces[index];
    const auto loops = replay_loops(trace, index, table_.time);
    if (!loops) return false;
    first_replay_.push_back(table_.replays.size());
    table_.replays.insert(table_.replays.end(), loops->begin(), loops->end());
    bool any = false;
    for (const auto& chunk : trace.chunks) {
      if (!is_here(trace, chunk)) continue;
      any = true;
      if (is_scopes(trace, chunk)) {
        const double middle = table_.time.seconds_of(chunk.begin + (chunk.end - chunk.begin) / 2);
        const bool ok = each_scope(index, chunk, [&](std::uint32_t k, const model::ScopeEntry& e) {
          const auto variant = variants_.of(k, index, e.scope);
          if (variant != model::kNone) mix_.add(middle, variant, busy_of(e));
          if (!counts(chunk)) return;
          auto& total = totals_[{k, index, e.scope}];
          total.launches += e.launches;
          total.busy += busy_of(e);
        });
        if (!ok) return false;
      } else if (is_scopes(trace, chunk, ChunkKind::kOverlappedScopes) && counts(chunk)) {
        const bool ok = each_scope(index, chunk, [&](std::uint32_t k, const model::ScopeEntry& e) {
          totals_[{k, index, e.scope}].overlapped += busy_of(e);
        });
        if (!ok) return false;
      }
    }
    if (any) {
      table_.dropped += trace.status.dropped;
      table_.graph_launches += trace.status.graph_launches;
      table_.graph_expanded += trace.status.graph_expanded;
      table_.memsets_left_out += trace.status.memsets_left_out;
    }
    if (!trace.status.problem.empty()) {
      table_.problems.push_back(
          fmt::format("{} (pid {}): {}", trace.program, trace.pid, trace.status.problem));
    }
    return true;
  }

  // In order of their begins, so that bins are complete soon.
  void find_bins() {
    std::size_t bytes = 0;
    for (std::uint32_t t = 0; t < recording_.traces.size(); ++t) {
      const model::Trace& trace = recording_.traces[t];
      for (const auto& chunk : trace.chunks) {
        const bool overlapped = model::is_overlapped_bins(chunk.kind);
        if ((!model::is_bins(chunk.kind) && !overlapped) || !is_here(trace, chunk)) continue;
        bins_.push_back({&chunk, t, overlapped});
        bytes += chunk.bytes.size();
      }
    }
    std::ranges::stable_sort(
        bins_, [](const Bins& a, const Bins& b) { return a.chunk->begin < b.chunk->begin; });
    table_.entries.reserve(bytes / kLeastBytes);
  }

  // Calls use(begin of the bin, signature, entry) for each entry. False: damaged.
  template <class Use>
  bool each_bin(const Bins& bins, Use use) const {
    const auto& known = known_[bins.trace];
    const Duration length = bin_of(bins);
    model::ActivityDecoder decoder(bins.chunk->bytes);
    for (model::BinEntry e; decoder.next(e);) {
      if (e.kernel_class >= known.size()) return false;
      use(bins.chunk->begin + e.bin * length, known[e.kernel_class], e);
    }
    return decoder.ok();
  }

  Duration bin_of(const Bins& bins) const {
    return model::bin_of(bins.chunk->kind, recording_.traces[bins.trace].bin);
  }

  // The launches in isolated re-runs. False: damaged.
  bool take_loops(const Bins& bins) {
    const auto& spans = table_.replay_time.spans();
    if (bins.overlapped || spans.empty() || bins.chunk->end < spans.front().begin) return true;
    const std::size_t first = first_replay_[bins.trace];
    const std::size_t last = bins.trace + 1 < first_replay_.size() ? first_replay_[bins.trace + 1]
                                                                   : table_.replays.size();
    const auto loops = std::span(table_.replays).subspan(first, last - first);
    return each_bin(bins, [&](HostTime at, std::uint32_t k, const model::BinEntry& e) {
      if (!table_.replay_time.holds(at)) return;
      add_to_loop(loops, table_.time.seconds_of(at), k, {e.launches, busy_of(e)});
    });
  }

  // In a kernel's loop, copies and sets only prepare its memory; in that of a memset, copies do.
  void leave_out_preparations(ActivityTable::Replay& loop) const {
    const auto kind = [&](const auto& ran) { return table_.classes[ran.first].key.kind; };
    const auto ran = std::ranges::any_of(
        loop.ran, [&](const auto& one) { return kind(one) == model::ActivityKind::kKernel; });
    const auto wanted = ran ? model::ActivityKind::kKernel : model::ActivityKind::kMemset;
    const auto is_other = [&](const auto& one) { return kind(one) != wanted; };
    std::erase_if(loop.ran, is_other);
    for (auto& slot : loop.slots) std::erase_if(slot, is_other);
  }

  // False: damaged.
  bool take_bins(const Bins& bins) {
    const double length = seconds(bin_of(bins));
    HostTime bin = HostTime::min();  // of the entry before
    double begin = 0;
    bool counts = false;
    bool in_rerun = false;
    return each_bin(bins, [&](HostTime at, std::uint32_t k, const model::BinEntry& e) {
      if (at != bin) {
        bin = at;
        begin = table_.time.seconds_of(at);
        counts = in_part(at);
        in_rerun = table_.replay_time.holds(at);
      }
      const double busy = busy_of(e);
      if (bins.overlapped) {
        lattice_->add(begin, length, BinLattice::kPartOfOthers + k, busy);
        return;
      }
      auto& c = table_.classes[k];
      if (counts) {
        c.launches += e.launches;
        table_.launches += e.launches;
      }
      if (!in_rerun) {
        c.whole_launches += e.launches;
        c.launches_busy += busy;
      }
      lattice_->add(begin, length, k, busy);
    });
  }

  bool in_part(HostTime t) const {
    return !(from_ && t < *from_) && !(to_ && t >= *to_) && !table_.replay_time.holds(t);
  }

  void add_variants(std::uint32_t kernel_class, double busy, double begin, bool counts) {
    const auto parts = mix_.parts(kernel_class, begin);
    const std::uint32_t first = variants_.of_class(kernel_class).first;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] <= 0) continue;
      const double own = busy * parts[i];
      const auto variant = first + static_cast<std::uint32_t>(i);
      table_.entries.push_back(
          {static_cast<std::uint32_t>(table_.classes.size()) + variant, static_cast<float>(own)});
      if (counts) table_.variants[variant].busy += own;
    }
  }

  void add_overlapped(std::uint32_t kernel_class, double busy, bool counts) {
    table_.entries.push_back(
        {static_cast<std::uint32_t>(table_.overlapped(kernel_class)), static_cast<float>(busy)});
    table_.classes[kernel_class].whole_overlapped += busy;
    if (counts) table_.classes[kernel_class].overlapped += busy;
  }

  void finish_bin(const BinLattice::Bin& bin) {
    const bool counts = in_part(table_.time.host_of(bin.begin));
    const double idle_between = lattice_->width() - bin.busy;
    table_.bins.push_back({bin.begin, lattice_->width(), table_.entries.size()});
    for (const auto& [k, own] : bin.classes) {
      if (k >= BinLattice::kPartOfOthers) {
        add_overlapped(k - BinLattice::kPartOfOthers, own, counts);
        continue;
      }
      table_.entries.push_back({k, static_cast<float>(own)});
      add_variants(k, own, bin.begin, counts);
      table_.classes[k].whole_busy += own;
      if (!counts) continue;
      table_.classes[k].busy += own;
      if (bin.busy > 0) table_.classes[k].idle_between += idle_between * own / bin.busy;
    }
    table_.whole_busy += bin.busy;
    if (!counts) return;
    if (table_.end == 0) table_.begin = bin.begin;
    table_.end = bin.begin + lattice_->width();
    table_.busy += bin.busy;
    table_.idle_between += idle_between;
  }

  void finish_totals() {
    for (auto& [key, total] : totals_) {
      std::tie(total.kernel_class, total.trace, total.scope) = key;
      total.variant = variants_.of(total.kernel_class, total.trace, total.scope);
      table_.scope_totals.push_back(total);
    }
  }

  const model::Recording& recording_;
  const model::Domain& domain_;
  std::optional<HostTime> from_, to_;
  std::optional<BinLattice> lattice_;
  std::vector<std::size_t> first_replay_;  // by trace
  std::vector<Bins> bins_;
  ActivityTable table_;
  KernelVariants variants_;
  VariantMix mix_{variants_};
  std::vector<std::vector<std::uint32_t>> known_;  // by trace: of each of its signatures
  std::map<const model::KernelClass*, std::uint32_t, ByKey> by_key_;
  // By signature, trace and scope.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, ActivityTable::ScopeTotal>
      totals_;
};

}  // namespace

Result<ActivityTable> activity_on(const model::Recording& recording, const model::Domain& domain,
                                  std::optional<HostTime> from, std::optional<HostTime> to) {
  return Builder(recording, domain, from, to).build();
}

}  // namespace jouleprof::analysis
