#include "analysis/activity/activity_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/activity/bin_lattice.h"
#include "analysis/activity/kernel_variants.h"
#include "analysis/activity/replay_loops.h"
#include "analysis/activity/replay_variants.h"
#include "analysis/activity/variant_mix.h"
#include "analysis/levels/traced_device.h"
#include "model/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using model::ActivityChunk;
using model::ChunkKind;

constexpr std::size_t kMostBins = 2'000'000;  // half an hour of 1 ms

struct ByKey {
  bool operator()(const model::KernelClass* a, const model::KernelClass* b) const {
    const auto key = [](const model::KernelClass& c) {
      return std::tie(c.kind, c.name, c.grid, c.block, c.bytes);
    };
    return key(*a) < key(*b);
  }
};

class Builder {
 public:
  Builder(const model::Recording& recording, const model::Domain& domain,
          std::optional<HostTime> from, std::optional<HostTime> to)
      : recording_(recording), domain_(domain), from_(from), to_(to) {}

  Result<ActivityTable> build() {
    make_lattice();
    for (const auto& trace : recording_.traces) {
      const bool here = std::any_of(trace.chunks.begin(), trace.chunks.end(),
                                    [&](const auto& chunk) { return is_here(trace, chunk); });
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
      if (!take(t)) return tl::unexpected(damaged(recording_.traces[t]));
    }
    mix_replays(recording_, variants_, table_.replays, mix_);
    finish_bins();
    finish_shares();
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
    return std::all_of(trace.chunks.begin(), trace.chunks.end(), [&](const auto& chunk) {
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

  // False: damaged.
  bool take(std::uint32_t index) {
    const model::Trace& trace = recording_.traces[index];
    const auto loops = replay_loops(trace, index, table_.time);
    if (!loops) return false;
    first_replay_ = table_.replays.size();
    table_.replays.insert(table_.replays.end(), loops->begin(), loops->end());
    bool any = false;
    for (const auto& chunk : trace.chunks) {
      if (!is_here(trace, chunk)) continue;
      any = true;
      const bool overlapped = model::is_overlapped_bins(chunk.kind);
      if (model::is_bins(chunk.kind) || overlapped) {
        model::ActivityDecoder decoder(chunk.bytes);
        const Duration bin = model::bin_of(chunk.kind, trace.bin);
        for (model::BinEntry e; decoder.next(e);) {
          if (e.kernel_class >= trace.classes.size()) return false;
          const std::uint32_t k = known_[index][e.kernel_class];
          const HostTime begin = chunk.begin + e.bin * bin;
          if (overlapped) {
            lattice_->add(table_.time.seconds_of(begin), seconds(bin),
                          BinLattice::kPartOfOthers + k, busy_of(e));
          } else {
            add(begin, bin, k, e);
          }
        }
        if (!decoder.ok()) return false;
      } else if (is_scopes(trace, chunk)) {
        const double middle = table_.time.seconds_of(chunk.begin + (chunk.end - chunk.begin) / 2);
        const bool ok = each_scope(index, chunk, [&](std::uint32_t k, const model::ScopeEntry& e) {
          const auto variant = variants_.of(k, index, e.scope);
          if (variant != model::kNone) mix_.add(middle, variant, busy_of(e));
          if (!counts(chunk)) return;
          auto& share = shares_[{k, index, e.scope}];
          share.launches += e.launches;
          share.busy += busy_of(e);
        });
        if (!ok) return false;
      } else if (is_scopes(trace, chunk, ChunkKind::kOverlappedScopes) && counts(chunk)) {
        const bool ok = each_scope(index, chunk, [&](std::uint32_t k, const model::ScopeEntry& e) {
          shares_[{k, index, e.scope}].overlapped += busy_of(e);
        });
        if (!ok) return false;
      }
    }
    if (any) {
      table_.dropped += trace.status.dropped;
      table_.graph_launches += trace.status.graph_launches;
      table_.graph_expanded += trace.status.graph_expanded;
    }
    if (!trace.status.problem.empty()) {
      table_.problems.push_back(
          fmt::format("{} (pid {}): {}", trace.program, trace.pid, trace.status.problem));
    }
    return true;
  }

  void add(HostTime at, Duration length, std::uint32_t kernel_class, const model::BinEntry& e) {
    const double busy = busy_of(e);
    if (in_part(at)) {
      table_.classes[kernel_class].launches += e.launches;
      table_.launches += e.launches;
    }
    if (table_.replay_time.holds(at)) {
      add_to_loop(std::span(table_.replays).subspan(first_replay_), table_.time.seconds_of(at),
                  kernel_class, {e.launches, busy});
    } else {
      table_.classes[kernel_class].whole_launches += e.launches;
      table_.classes[kernel_class].launches_busy += busy;
    }
    lattice_->add(table_.time.seconds_of(at), seconds(length), kernel_class, busy);
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

  void finish_bins() {
    lattice_->take([&](const BinLattice::Bin& bin) {
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
    });
  }

  void finish_shares() {
    for (auto& [key, share] : shares_) {
      std::tie(share.kernel_class, share.trace, share.scope) = key;
      share.variant = variants_.of(share.kernel_class, share.trace, share.scope);
      table_.shares.push_back(share);
    }
  }

  const model::Recording& recording_;
  const model::Domain& domain_;
  std::optional<HostTime> from_, to_;
  std::optional<BinLattice> lattice_;
  std::size_t first_replay_ = 0;  // of the current process
  ActivityTable table_;
  KernelVariants variants_;
  VariantMix mix_{variants_};
  std::vector<std::vector<std::uint32_t>> known_;  // by trace: of each of its signatures
  std::map<const model::KernelClass*, std::uint32_t, ByKey> by_key_;
  // By signature, trace and scope.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, ActivityTable::Share> shares_;
};

}  // namespace

Result<ActivityTable> activity_on(const model::Recording& recording, const model::Domain& domain,
                                  std::optional<HostTime> from, std::optional<HostTime> to) {
  return Builder(recording, domain, from, to).build();
}

}  // namespace jouleprof::analysis
