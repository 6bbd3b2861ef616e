#include "spans/cupti/device_timeline.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace jouleprof::cupti {
namespace {

HostTime host(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

// Rounded down, also below zero.
std::int64_t bin_of(std::int64_t t, std::int64_t bin) { return t / bin - (t % bin < 0 ? 1 : 0); }

std::uint64_t scope_key(std::uint32_t kernel_class, std::uint32_t scope) {
  return std::uint64_t{kernel_class} << 32 | scope;
}

model::EventEntry event_entry(const Activity& a, std::int64_t begin) {
  return {a.start - begin, static_cast<std::uint64_t>(a.end - a.start), a.kernel_class, a.scope,
          a.stream};
}

std::string scope_entries(const FlatSums& sums) {
  model::ActivityEncoder entries;
  for (const Sum& sum : sums.sums()) {
    entries.add(model::ScopeEntry{static_cast<std::uint32_t>(sum.key >> 32),
                                  static_cast<std::uint32_t>(sum.key), sum.launches, sum.busy});
  }
  return entries.take();
}

}  // namespace

bool DeviceTimeline::add(const Activity& activity) {
  if (activity.start < now_) {
    late_.push_back(activity);
    return false;
  }
  advance(activity.start);
  first_ = std::min(first_, activity.start);
  if (!chunk_open_) {
    chunk_open_ = true;
    first_bin_ = current_bin_;
  }
  put(activity.kernel_class, 0, 1);
  if (events_) put_event(activity);
  running_.push_back({activity.end, 0, 1, activity.kernel_class, activity.scope});
  if (activity.end <= now_) end_finished();
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
      put(running_[0].kernel_class, length, 0);
    } else {
      std::uint64_t over = length % n;
      for (Running& r : running_) {
        const std::uint64_t part = length / n + (over > 0 ? 1 : 0);
        if (over > 0) --over;
        r.busy += part;
        put(r.kernel_class, part, 0);
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
    scopes_.add(scope_key(running.kernel_class, running.scope), running.launches, running.busy);
  }
  running.launches = 0;
  running.busy = 0;
}

void DeviceTimeline::put(std::uint32_t kernel_class, std::uint64_t busy, std::uint64_t launches) {
  if (kernel_class >= sums_.size()) sums_.resize(kernel_class + std::size_t{1} + kernel_class / 4);
  ClassSum& sum = sums_[kernel_class];
  if ((sum.busy | sum.launches) == 0) {
    if ((busy | launches) == 0) return;
    touched_.push_back(kernel_class);
  }
  sum.busy += busy;
  sum.launches += launches;
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
    bins_.add(model::BinEntry{static_cast<std::uint32_t>(current_bin_ - first_bin_), kernel_class,
                              sum.busy, sum.launches});
    sum = {};
  }
  touched_.clear();
}

void DeviceTimeline::put_event(const Activity& activity) {
  event_entries_.add(event_entry(activity, first_bin_ * bin_));
}

void DeviceTimeline::tell(std::int64_t until, model::ActivitySink& sink) {
  if (until > now_ && now_ != INT64_MIN) advance(until);
  for (Running& r : running_) sum_scope(r);
  if (chunk_open_) {
    close_bin();
    // Rounded up: the last bin may be told in parts.
    const std::int64_t end = bin_of(now_ + bin_ - 1, bin_) * bin_;
    const HostTime begin = host(first_bin_ * bin_);
    if (!bins_.empty()) {
      sink.add({bins_kind(), index_, begin, host(end), bins_.take()});
    }
    if (!event_entries_.empty()) {
      sink.add({model::ChunkKind::kEvents, index_, begin, host(end), event_entries_.take()});
    }
    tell_scopes(end, sink);
    chunk_open_ = !running_.empty();
    first_bin_ = current_bin_;
  }
  tell_late(sink);
  if (!wide_ && first_ != INT64_MAX && now_ - first_ > fine_) widen();
}

// Between two chunks.
void DeviceTimeline::widen() {
  wide_ = true;
  bin_ *= model::kWide;
  current_bin_ = first_bin_ = bin_of(now_, bin_);
  bin_end_ = (current_bin_ + 1) * bin_;
}

model::ChunkKind DeviceTimeline::bins_kind() const {
  return wide_ ? model::ChunkKind::kWideBins : model::ChunkKind::kBins;
}

void DeviceTimeline::tell_scopes(std::int64_t end, model::ActivitySink& sink) {
  std::string entries = scope_entries(scopes_);
  scopes_.clear();
  if (entries.empty()) return;
  sink.add(
      {model::ChunkKind::kScopes, index_, host(first_bin_ * bin_), host(end), std::move(entries)});
}

void DeviceTimeline::tell_late(model::ActivitySink& sink) {
  if (late_.empty()) return;
  std::sort(late_.begin(), late_.end(),
            [](const Activity& a, const Activity& b) { return a.start < b.start; });
  std::map<std::pair<std::int64_t, std::uint32_t>, ClassSum> sums;
  FlatSums scopes;
  std::int64_t last = late_.front().end;
  const std::int64_t first = bin_of(late_.front().start, bin_);
  model::ActivityEncoder events;
  for (const Activity& a : late_) {
    last = std::max(last, a.end);
    ++sums[{bin_of(a.start, bin_), a.kernel_class}].launches;
    for (std::int64_t t = a.start; t < a.end;) {
      const std::int64_t bin = bin_of(t, bin_);
      const std::int64_t step = std::min(a.end, (bin + 1) * bin_);
      sums[{bin, a.kernel_class}].busy += static_cast<std::uint64_t>(step - t);
      t = step;
    }
    const auto length = static_cast<std::uint64_t>(a.end - a.start);
    scopes.add(scope_key(a.kernel_class, a.scope), 1, length);
    if (events_) events.add(event_entry(a, first * bin_));
  }
  model::ActivityEncoder bins;
  for (const auto& [key, sum] : sums) {
    bins.add(model::BinEntry{static_cast<std::uint32_t>(key.first - first), key.second, sum.busy,
                             sum.launches});
  }
  const HostTime begin = host(first * bin_);
  const HostTime end = host(bin_of(last + bin_ - 1, bin_) * bin_);
  sink.add({bins_kind(), index_, begin, end, bins.take()});
  if (!events.empty()) {
    sink.add({model::ChunkKind::kEvents, index_, begin, end, events.take()});
  }
  if (std::string entries = scope_entries(scopes); !entries.empty()) {
    sink.add({model::ChunkKind::kScopes, index_, begin, end, std::move(entries)});
  }
  late_.clear();
}

}  // namespace jouleprof::cupti
