#include "analysis/activity_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "model/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using model::ActivityChunk;
using model::ChunkKind;

constexpr std::size_t kMostBins = 2'000'000;  // half an hour of 1 ms

auto order_of(const model::KernelClass& c) {
  return std::tie(c.kind, c.name, c.grid, c.block, c.bytes);
}

struct ByKey {
  bool operator()(const model::KernelClass* a, const model::KernelClass* b) const {
    return order_of(*a) < order_of(*b);
  }
};

std::size_t count_gpus(const model::Recording& recording) {
  return static_cast<std::size_t>(std::count_if(
      recording.domains.begin(), recording.domains.end(),
      [](const auto& d) { return d.kind == model::DomainKind::kGpu && !d.parent && d.visible; }));
}

class Builder {
 public:
  Builder(const model::Recording& recording, const model::Domain& domain,
          std::optional<HostTime> from, std::optional<HostTime> to)
      : recording_(recording), domain_(domain), from_(from), to_(to) {}

  Result<ActivityTable> build() {
    table_.time.origin = first_begin();
    choose_width();
    for (const auto& trace : recording_.traces) {
      const bool here = std::any_of(trace.chunks.begin(), trace.chunks.end(),
                                    [&](const auto& chunk) { return is_here(trace, chunk); });
      if (here) table_.replay_time.add(trace);
    }
    for (std::size_t t = 0; t < recording_.traces.size(); ++t) {
      const auto taken = take(recording_.traces[t], static_cast<std::uint32_t>(t));
      if (!taken) return tl::unexpected(taken.error());
    }
    finish_bins();
    finish_shares();
    return std::move(table_);
  }

 private:
  bool is_here(const model::Trace& trace, const ActivityChunk& chunk) const {
    if (model::is_of_host(chunk.kind) || chunk.device >= trace.devices.size()) return false;
    const std::string& uuid = trace.devices[chunk.device].uuid;
    return uuid.empty() ? count_gpus(recording_) == 1 : uuid == domain_.uuid;
  }

  HostTime first_begin() const {
    HostTime first = HostTime::max();
    for (const auto& trace : recording_.traces) {
      for (const auto& chunk : trace.chunks) {
        if (is_here(trace, chunk)) first = std::min(first, chunk.begin);
      }
    }
    return first == HostTime::max() ? HostTime{} : first;
  }

  void choose_width() {
    Duration bin = std::chrono::milliseconds{1};
    HostTime last = table_.time.origin;
    for (const auto& trace : recording_.traces) {
      bin = std::max(bin, trace.bin);
      for (const auto& chunk : trace.chunks) {
        if (is_here(trace, chunk)) last = std::max(last, chunk.end);
      }
    }
    const auto bins = static_cast<std::size_t>((last - table_.time.origin) / bin);
    width_ = seconds(bin) * static_cast<double>(bins / kMostBins + 1);
  }

  static Error damaged(const model::Trace& trace) {
    return {Errc::kCorrupt, fmt::format("the activity that process {} ({}) recorded can't be read",
                                        trace.pid, trace.program)};
  }

  Result<void> take(const model::Trace& trace, std::uint32_t index) {
    std::vector<std::uint32_t> known(trace.classes.size(), model::kNone);
    const auto class_of = [&](std::uint32_t id) {
      if (known[id] == model::kNone) {
        const auto [at, is_new] = by_key_.try_emplace(
            &trace.classes[id], static_cast<std::uint32_t>(table_.classes.size()));
        if (is_new) table_.classes.emplace_back().key = trace.classes[id];
        known[id] = at->second;
      }
      return known[id];
    };
    if (!take_replays(trace, index)) return tl::unexpected(damaged(trace));
    bool any = false;
    for (const auto& chunk : trace.chunks) {
      if (!is_here(trace, chunk)) continue;
      any = true;
      model::ActivityDecoder decoder(chunk.bytes);
      if (model::is_bins(chunk)) {
        const Duration bin = model::bin_of(chunk, trace.bin);
        for (model::BinEntry e; decoder.next(e);) {
          if (e.kernel_class >= known.size()) return tl::unexpected(damaged(trace));
          add(chunk.begin + e.bin * bin, bin, class_of(e.kernel_class), e);
        }
      } else if (chunk.kind == ChunkKind::kScopes && !(from_ && chunk.end <= *from_) &&
                 !(to_ && chunk.begin >= *to_) && !table_.replay_time.holds(chunk.begin)) {
        for (model::ScopeEntry e; decoder.next(e);) {
          if (e.kernel_class >= known.size() ||
              (e.scope != model::kNone && e.scope >= trace.scopes.size())) {
            return tl::unexpected(damaged(trace));
          }
          auto& share = shares_[{class_of(e.kernel_class), index, e.scope}];
          share.launches += e.launches;
          share.busy += 1e-9 * static_cast<double>(e.busy_nanoseconds);
        }
      }
      if (!decoder.ok()) return tl::unexpected(damaged(trace));
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
    return {};
  }

  // False: damaged.
  bool take_replays(const model::Trace& trace, std::uint32_t index) {
    first_replay_ = table_.replays.size();
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != ChunkKind::kReplay) continue;
      model::ActivityDecoder decoder(chunk.bytes);
      for (model::LayerEntry e; decoder.next(e);) {
        if (e.layer >= trace.layers.size()) return false;
        table_.replays.push_back({index,
                                  e.layer,
                                  table_.time.seconds_of(chunk.begin),
                                  table_.time.seconds_of(chunk.end),
                                  {}});
      }
      if (!decoder.ok()) return false;
    }
    return true;
  }

  // The replay that this process was at then.
  ActivityTable::Replay* replay_at(double t) {
    for (std::size_t i = first_replay_; i < table_.replays.size(); ++i) {
      if (t >= table_.replays[i].begin && t < table_.replays[i].end) return &table_.replays[i];
    }
    return nullptr;
  }

  void add(HostTime at, Duration length, std::uint32_t kernel_class, const model::BinEntry& e) {
    const double busy = 1e-9 * static_cast<double>(e.busy_nanoseconds);
    if (in_part(at)) {
      table_.classes[kernel_class].launches += e.launches;
      table_.launches += e.launches;
    }
    if (table_.replay_time.holds(at)) {
      if (auto* replay = replay_at(table_.time.seconds_of(at))) {
        auto& ran = replay->ran[kernel_class];
        ran.launches += e.launches;
        ran.busy += busy;
      }
    }
    // A chunk's bins need not lie on the lattice of another process's.
    const double begin = table_.time.seconds_of(at);
    const double span = seconds(length);
    const auto first = static_cast<std::size_t>(std::max(begin / width_ + 1e-6, 0.0));
    for (std::size_t i = first;; ++i) {
      const double lo = std::max(begin, static_cast<double>(i) * width_);
      const double hi = std::min(begin + span, static_cast<double>(i + 1) * width_);
      if (hi - lo > 1e-6 * span) {
        raw_.push_back({i, kernel_class, static_cast<float>(busy * (hi - lo) / span)});
      }
      if (begin + span <= static_cast<double>(i + 1) * width_ + 1e-9) break;
    }
  }

  bool in_part(HostTime t) const {
    return !(from_ && t < *from_) && !(to_ && t >= *to_) && !table_.replay_time.holds(t);
  }

  void finish_bins() {
    std::sort(raw_.begin(), raw_.end(), [](const Raw& a, const Raw& b) {
      return std::tie(a.bin, a.kernel_class) < std::tie(b.bin, b.kernel_class);
    });
    for (std::size_t i = 0; i < raw_.size();) {
      const std::size_t bin = raw_[i].bin;
      double busy = 0;
      std::size_t j = i;
      for (; j < raw_.size() && raw_[j].bin == bin; ++j) busy += raw_[j].busy;
      const double scale = busy > width_ ? width_ / busy : 1.0;
      const double gap = width_ - busy * scale;
      const double begin = static_cast<double>(bin) * width_;
      const bool counts = in_part(table_.time.host_of(begin));
      table_.bins.push_back({begin, width_, table_.entries.size()});
      for (; i < j; ++i) {
        const auto k = raw_[i].kernel_class;
        const double own = scale * raw_[i].busy;
        if (table_.entries.size() > table_.bins.back().first &&
            table_.entries.back().kernel_class == k) {
          table_.entries.back().busy += static_cast<float>(own);
        } else {
          table_.entries.push_back({k, static_cast<float>(own)});
        }
        table_.classes[k].whole_busy += own;
        if (!counts) continue;
        table_.classes[k].busy += own;
        if (busy > 0) table_.classes[k].gap += gap * raw_[i].busy / busy;
      }
      table_.whole_busy += busy * scale;
      if (!counts) continue;
      if (table_.end == 0) table_.begin = begin;
      table_.end = begin + width_;
      table_.busy += busy * scale;
      table_.gap += gap;
    }
    raw_.clear();
    raw_.shrink_to_fit();
  }

  void finish_shares() {
    for (const auto& [key, share] : shares_) {
      table_.shares.push_back(
          {std::get<0>(key), std::get<1>(key), std::get<2>(key), share.launches, share.busy});
    }
  }

  struct Raw {
    std::size_t bin;
    std::uint32_t kernel_class;
    float busy;
  };
  struct Sum {
    std::uint64_t launches = 0;
    double busy = 0;
  };

  const model::Recording& recording_;
  const model::Domain& domain_;
  std::optional<HostTime> from_, to_;
  double width_ = 0.005;
  std::size_t first_replay_ = 0;  // of the process in hand
  ActivityTable table_;
  std::map<const model::KernelClass*, std::uint32_t, ByKey> by_key_;
  std::vector<Raw> raw_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Sum> shares_;
};

}  // namespace

Result<ActivityTable> activity_on(const model::Recording& recording, const model::Domain& domain,
                                  std::optional<HostTime> from, std::optional<HostTime> to) {
  return Builder(recording, domain, from, to).build();
}

}  // namespace jouleprof::analysis
