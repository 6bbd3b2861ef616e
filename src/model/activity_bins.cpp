#include "model/activity_bins.h"

#include <algorithm>
#include <utility>

namespace jouleprof::model {

ActivityBins::ActivityBins(const Options& options, Emit emit)
    : options_(options), emit_(std::move(emit)) {
  options_.bin = std::max(options_.bin, Duration{1});
}

void ActivityBins::add(const Launch& launch) {
  ++launches_;
  oldest_ = std::min(oldest_, launch.begin);
  newest_ = std::max(newest_, launch.begin);
  pending_.push_back(launch);
  // Sorting twice the patience at a time: each launch is looked at about twice.
  if (newest_ - oldest_ > 2 * options_.patience) sweep(newest_ - options_.patience);
}

void ActivityBins::finish() {
  sweep(HostTime::max());
  HostTime last = now_;
  for (const Running& r : running_) last = std::max(last, r.end);
  run_until(last);
  close_chunk();
  started_ = false;
  newest_ = HostTime::min();
}

void ActivityBins::sweep(HostTime until) {
  const auto earlier = [](const Launch& a, const Launch& b) { return a.begin < b.begin; };
  if (!std::is_sorted(pending_.begin(), pending_.end(), earlier)) {
    std::stable_sort(pending_.begin(), pending_.end(), earlier);
  }
  const auto stop = std::find_if(pending_.begin(), pending_.end(),
                                 [until](const Launch& launch) { return launch.begin >= until; });
  for (auto it = pending_.begin(); it != stop; ++it) begin(*it);
  pending_.erase(pending_.begin(), stop);
  oldest_ = pending_.empty() ? HostTime::max() : pending_.front().begin;
}

void ActivityBins::begin(const Launch& launch) {
  HostTime at = launch.begin;
  if (!started_) {
    if (at < settled_) ++late_;
    now_ = at = std::max(at, settled_);
    started_ = true;
    enter_bin(at);
  } else if (at < now_) {
    ++late_;
    at = now_;
  }
  run_until(at);
  ++cell(launch.kernel_class).launches;
  const HostTime end = std::max(launch.end, at);
  running_.push_back({end, launch.kernel_class, launch.scope, 0});
  ++total(running_.back()).launches;
  if (end == at) running_.pop_back();
  if (options_.events) {
    // A late launch may begin before the chunk does: its offset is negative then.
    events_.add(EventEntry{
        (launch.begin - chunk_begin_).count(),
        static_cast<std::uint64_t>(std::max(launch.end - launch.begin, Duration{}).count()),
        launch.kernel_class, launch.scope, launch.stream});
  }
}

void ActivityBins::run_until(HostTime time) {
  while (now_ < time) {
    if (running_.empty()) {
      now_ = time;
      if (now_ >= bin_end_) {
        close_bin();
        enter_bin(now_);
      }
      return;
    }
    HostTime next = std::min(time, bin_end_);
    for (const Running& r : running_) next = std::min(next, r.end);
    share(static_cast<std::uint64_t>((next - now_).count()));
    now_ = next;
    std::erase_if(running_, [&](const Running& r) {
      if (r.end > next) return false;
      total(r).busy += r.busy;
      return true;
    });
    if (now_ == bin_end_) {
      close_bin();
      enter_bin(now_);
    }
  }
}

void ActivityBins::share(std::uint64_t nanoseconds) {
  const std::size_t n = running_.size();
  if (n == 1) {
    running_.front().busy += nanoseconds;
    cell(running_.front().kernel_class).busy += nanoseconds;
    return;
  }
  const std::uint64_t part = nanoseconds / n;
  const std::uint64_t over = nanoseconds % n;
  for (std::size_t i = 0; i < n; ++i) {
    Running& r = running_[i];
    const std::uint64_t mine = part + ((i + turn_) % n < over ? 1 : 0);
    r.busy += mine;
    cell(r.kernel_class).busy += mine;
  }
  ++turn_;
}

ActivityBins::Cell& ActivityBins::cell(std::uint32_t kernel_class) {
  if (kernel_class >= cells_.size()) cells_.resize(std::size_t{kernel_class} + 1);
  Cell& c = cells_[kernel_class];
  // May list a class twice while both are zero; close_bin() passes over the second.
  if (c.busy == 0 && c.launches == 0) touched_.push_back(kernel_class);
  return c;
}

ActivityBins::Cell& ActivityBins::total(const Running& running) {
  const std::uint64_t key = std::uint64_t{running.kernel_class} << 32 | running.scope;
  const auto [it, is_new] = scopes_.try_emplace(key);
  if (is_new) scope_order_.push_back(key);
  return it->second;
}

void ActivityBins::enter_bin(HostTime time) {
  if (chunk_open_ && time - chunk_begin_ >= options_.chunk) close_chunk();
  if (!chunk_open_) {
    chunk_begin_ = time - time.time_since_epoch() % options_.bin;
    if (chunk_begin_ > time) chunk_begin_ -= options_.bin;
    chunk_open_ = true;
  }
  bin_end_ = chunk_begin_ + ((time - chunk_begin_) / options_.bin + 1) * options_.bin;
}

void ActivityBins::close_bin() {
  const auto bin = static_cast<std::uint32_t>((bin_end_ - chunk_begin_) / options_.bin - 1);
  for (const std::uint32_t kernel_class : touched_) {
    Cell& c = cells_[kernel_class];
    if (c.busy != 0 || c.launches != 0) {
      bins_.add(BinEntry{bin, kernel_class, c.busy, c.launches});
    }
    c = {};
  }
  touched_.clear();
}

void ActivityBins::close_chunk() {
  if (!chunk_open_) return;
  close_bin();
  for (Running& r : running_) {
    total(r).busy += r.busy;
    r.busy = 0;
  }
  // The bin that is open or was just left is the chunk's last.
  const HostTime end = std::max(bin_end_, chunk_begin_ + options_.bin);
  settled_ = std::max(settled_, end);
  const auto put = [&](ChunkKind kind, std::string bytes) {
    if (!bytes.empty()) {
      emit_({kind, options_.device, chunk_begin_, end, std::move(bytes)});
    }
  };
  put(ChunkKind::kBins, bins_.take());
  ActivityEncoder scopes;
  for (const std::uint64_t key : scope_order_) {
    const Cell& c = scopes_[key];
    if (c.busy == 0 && c.launches == 0) continue;
    scopes.add(ScopeEntry{static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key),
                          c.launches, c.busy});
  }
  put(ChunkKind::kScopes, scopes.take());
  put(ChunkKind::kEvents, events_.take());
  scopes_.clear();
  scope_order_.clear();
  chunk_open_ = false;
}

}  // namespace jouleprof::model
