#include "model/activity/device_timeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace jouleprof::model {
namespace {

HostTime host(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

// Rounded down, also below zero.
std::int64_t bin_of(std::int64_t t, std::int64_t bin) { return t / bin - (t % bin < 0 ? 1 : 0); }

std::uint64_t scope_key(std::uint32_t kernel_class, std::uint32_t scope) {
  return std::uint64_t{kernel_class} << 32 | scope;
}

std::int64_t nanoseconds_of(HostTime t) { return t.time_since_epoch().count(); }

EventEntry event_entry(const Launch& l, std::int64_t begin) {
  return {nanoseconds_of(l.begin) - begin, static_cast<std::uint64_t>((l.end - l.begin).count()),
          l.kernel_class, l.scope, l.stream};
}

std::string scope_entries(const FlatSums& sums) {
  ActivityEncoder entries;
  for (const FlatSums::Sum& sum : sums.sums()) {
    entries.add(ScopeEntry{static_cast<std::uint32_t>(sum.key >> 32),
                           static_cast<std::uint32_t>(sum.key), sum.launches, sum.busy});
  }
  return entries.take();
}

}  // namespace

bool DeviceTimeline::add(const Launch& launch) {
  const std::int64_t start = nanoseconds_of(launch.begin);
  const std::int64_t end = nanoseconds_of(launch.end);
  if (start < now_) {
    late_.push_back(launch);
    return false;
  }
  end_chunks(start);
  advance(start);
  first_ = std::min(first_, start);
  if (!chunk_open_) {
    chunk_open_ = true;
    first_bin_ = current_bin_;
  }
  put(launch.kernel_class, {.launches = 1});
  if (events_) event_entries_.add(event_entry(launch, first_bin_ * bin_));
  if (launch.collective) collective_entries_.add(event_entry(launch, first_bin_ * bin_));
  running_.push_back({.end = end, .kernel_class = launch.kernel_class, .scope = launch.scope});
  if (end <= now_) end_finished();
  return true;
}

void DeviceTimeline::advance(std::int64_t until) {
  while (!running_.empty() && now_ < until) {
    std::int64_t step = until;
    for (const Running& r : running_) step = std::min(step, r.end);
    share(step);
    end_finished();
  }
  if (now_ < until) now_ = until;
  enter_bin(now_);
}

void DeviceTimeline::share(std::int64_t until) {
  const auto n = static_cast<std::uint64_t>(running_.size());
  while (now_ < until) {
    const std::int64_t step = std::min(until, bin_end_);
    const auto length = static_cast<std::uint64_t>(step - now_);
    if (n == 1) {
      running_[0].busy += length;
      put(running_[0].kernel_class, {.busy = length});
    } else {
      std::uint64_t over = length % n;
      for (Running& r : running_) {
        const std::uint64_t part = length / n + (over > 0 ? 1 : 0);
        if (over > 0) --over;
        r.busy += part;
        r.overlapped += part;
        put(r.kernel_class, {.busy = part, .overlapped = part});
      }
    }
    now_ = step;
    enter_bin(now_);
  }
}

void DeviceTimeline::end_finished() {
  std::size_t kept = 0;
  for (Running& r : running_) {
    if (r.end > now_) {
      running_[kept++] = r;
    } else {
      sum_scope(r);
    }
  }
  running_.resize(kept);
}

void DeviceTimeline::sum_scope(Running& running) {
  if ((running.launches | running.busy) != 0) {
    const std::uint64_t key = scope_key(running.kernel_class, running.scope);
    scopes_.add(key, running.launches, running.busy);
    if (running.overlapped != 0) overlapped_scopes_.add(key, 0, running.overlapped);
  }
  running.launches = running.busy = running.overlapped = 0;
}

void DeviceTimeline::put(std::uint32_t kernel_class, const ClassSum& more) {
  if (kernel_class >= sums_.size()) sums_.resize(kernel_class + std::size_t{1} + kernel_class / 4);
  ClassSum& sum = sums_[kernel_class];
  if ((sum.busy | sum.launches) == 0) {
    if ((more.busy | more.launches) == 0) return;
    touched_.push_back(kernel_class);
  }
  sum.busy += more.busy;
  sum.overlapped += more.overlapped;
  sum.launches += more.launches;
}

void DeviceTimeline::enter_bin(std::int64_t t) {
  if (t < bin_end_) return;
  close_bin();
  current_bin_ = bin_of(t, bin_);
  bin_end_ = (current_bin_ + 1) * bin_;
}

void DeviceTimeline::close_bin() {
  for (const std::uint32_t kernel_class : touched_) {
    ClassSum& sum = sums_[kernel_class];
    const auto bin = static_cast<std::uint32_t>(current_bin_ - first_bin_);
    bins_.add(BinEntry{bin, kernel_class, sum.busy, sum.launches});
    if (sum.overlapped != 0) overlapped_bins_.add(BinEntry{bin, kernel_class, sum.overlapped, 0});
    sum = {};
  }
  touched_.clear();
}

void DeviceTimeline::emit_until(HostTime until, const Emit& emit) {
  const std::int64_t stop = nanoseconds_of(until);
  end_chunks(stop);
  if (stop > now_ && now_ != INT64_MIN) advance(stop);
  end_chunk();
  send(emit);
  if (!wide_ && is_long()) widen();
}

void DeviceTimeline::emit_ended(HostTime until, const Emit& emit) {
  if (wide_ || is_long()) return emit_until(until, emit);
  end_chunks(nanoseconds_of(until));
  send(emit);
}

void DeviceTimeline::send(const Emit& emit) {
  end_late();
  for (ActivityChunk& chunk : ended_) emit(std::move(chunk));
  ended_.clear();
}

// At each edge up to `until`; time in which nothing runs has none.
void DeviceTimeline::end_chunks(std::int64_t until) {
  while (chunk_open_ && !wide_) {
    const std::int64_t edge = (bin_of(first_bin_, chunk_bins_) + 1) * chunk_bins_ * bin_;
    if (edge > until) return;
    advance(edge);
    end_chunk();
  }
}

void DeviceTimeline::end_chunk() {
  for (Running& r : running_) sum_scope(r);
  if (!chunk_open_) return;
  // The last bin may be in two chunks.
  const bool begun = !touched_.empty() || now_ > current_bin_ * bin_;
  close_bin();
  const std::int64_t end = (current_bin_ + (begun ? 1 : 0)) * bin_;
  const auto put = [&](ActivityEncoder& entries, ChunkKind kind) {
    if (entries.empty()) return;
    ended_.push_back({kind, index_, host(first_bin_ * bin_), host(end), entries.take()});
  };
  put(bins_, wide_ ? ChunkKind::kWideBins : ChunkKind::kBins);
  put(overlapped_bins_, wide_ ? ChunkKind::kWideOverlappedBins : ChunkKind::kOverlappedBins);
  put(event_entries_, ChunkKind::kEvents);
  put(collective_entries_, ChunkKind::kCollectives);
  end_scopes(end);
  chunk_open_ = !running_.empty();
  first_bin_ = current_bin_;
}

// Between two chunks.
void DeviceTimeline::widen() {
  wide_ = true;
  bin_ *= kWide;
  current_bin_ = first_bin_ = bin_of(now_, bin_);
  bin_end_ = (current_bin_ + 1) * bin_;
}

void DeviceTimeline::end_scopes(std::int64_t end) {
  const auto put = [&](FlatSums& sums, ChunkKind kind) {
    std::string entries = scope_entries(sums);
    sums.clear();
    if (entries.empty()) return;
    ended_.push_back({kind, index_, host(first_bin_ * bin_), host(end), std::move(entries)});
  };
  put(scopes_, ChunkKind::kScopes);
  put(overlapped_scopes_, ChunkKind::kOverlappedScopes);
}

void DeviceTimeline::end_late() {
  if (late_.empty()) return;
  std::ranges::sort(late_, {}, &Launch::begin);
  std::map<std::pair<std::int64_t, std::uint32_t>, ClassSum> sums;
  FlatSums scopes;
  std::int64_t last = nanoseconds_of(late_.front().begin) + 1;
  const std::int64_t first = bin_of(last - 1, bin_);
  ActivityEncoder events;
  ActivityEncoder collectives;
  for (const Launch& l : late_) {
    const std::int64_t start = nanoseconds_of(l.begin);
    const std::int64_t end = nanoseconds_of(l.end);
    last = std::max({last, start + 1, end});
    ++sums[{bin_of(start, bin_), l.kernel_class}].launches;
    for (std::int64_t t = start; t < end;) {
      const std::int64_t bin = bin_of(t, bin_);
      const std::int64_t step = std::min(end, (bin + 1) * bin_);
      sums[{bin, l.kernel_class}].busy += static_cast<std::uint64_t>(step - t);
      t = step;
    }
    scopes.add(scope_key(l.kernel_class, l.scope), 1, static_cast<std::uint64_t>(end - start));
    if (events_) events.add(event_entry(l, first * bin_));
    if (l.collective) collectives.add(event_entry(l, first * bin_));
  }
  ActivityEncoder bins;
  for (const auto& [key, sum] : sums) {
    bins.add(BinEntry{static_cast<std::uint32_t>(key.first - first), key.second, sum.busy,
                      sum.launches});
  }
  const HostTime begin = host(first * bin_);
  const HostTime end = host(bin_of(last + bin_ - 1, bin_) * bin_);
  const auto put = [&](ChunkKind kind, std::string entries) {
    if (!entries.empty()) ended_.push_back({kind, index_, begin, end, std::move(entries)});
  };
  put(wide_ ? ChunkKind::kWideBins : ChunkKind::kBins, bins.take());
  put(ChunkKind::kEvents, events.take());
  put(ChunkKind::kCollectives, collectives.take());
  put(ChunkKind::kScopes, scope_entries(scopes));
  late_.clear();
}

void FlatSums::clear() {
  // A table that one busy second blew up is not cleared every second from then on.
  if (slots_.size() > 64 && sums_.size() * 16 < slots_.size()) {
    slots_.assign(slots_.size() / 2, 0);
  } else {
    std::ranges::fill(slots_, 0);
  }
  sums_.clear();
  last_ = 0;
}

void FlatSums::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t n = 0; n != sums_.size(); ++n) {
    std::size_t i = hash(sums_[n].key) & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<std::uint32_t>(n + 1);
  }
}

ActivityBins::ActivityBins(const Options& options, Emit emit)
    : options_(options),
      emit_(std::move(emit)),
      timeline_(options.device, std::max(options.bin, Duration{1}), Duration::max(),
                options.events) {}

void ActivityBins::add(const Launch& launch) {
  ++launches_;
  oldest_ = std::min(oldest_, launch.begin);
  newest_ = std::max(newest_, launch.begin);
  pending_.push_back(launch);
  pending_.back().end = std::max(launch.begin, launch.end);
  // Sorting twice the patience at a time: each launch is looked at about twice.
  if (newest_ - oldest_ > 2 * options_.patience) sweep(newest_ - options_.patience);
}

void ActivityBins::finish() {
  sweep(HostTime::max());
  newest_ = HostTime::min();
  timeline_.emit_until(last_end_, emit_);
}

void ActivityBins::sweep(HostTime until) {
  const auto earlier = [](const Launch& a, const Launch& b) { return a.begin < b.begin; };
  if (!std::ranges::is_sorted(pending_, earlier)) {
    std::ranges::stable_sort(pending_, earlier);
  }
  const auto stop = std::ranges::find_if(
      pending_, [until](const Launch& launch) { return launch.begin >= until; });
  for (auto it = pending_.begin(); it != stop; ++it) {
    if (!timeline_.add(*it)) ++late_;
    last_end_ = std::max(last_end_, it->end);
  }
  if (stop != pending_.begin()) timeline_.emit_ended(std::prev(stop)->begin, emit_);
  pending_.erase(pending_.begin(), stop);
  oldest_ = pending_.empty() ? HostTime::max() : pending_.front().begin;
}

}  // namespace jouleprof::model
