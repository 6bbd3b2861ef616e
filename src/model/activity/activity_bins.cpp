#include "model/activity/activity_bins.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace jouleprof::model {

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
  if (!std::is_sorted(pending_.begin(), pending_.end(), earlier)) {
    std::stable_sort(pending_.begin(), pending_.end(), earlier);
  }
  const auto stop = std::find_if(pending_.begin(), pending_.end(),
                                 [until](const Launch& launch) { return launch.begin >= until; });
  for (auto it = pending_.begin(); it != stop; ++it) {
    if (!timeline_.add(*it)) ++late_;
    last_end_ = std::max(last_end_, it->end);
  }
  if (stop != pending_.begin()) timeline_.emit_ended(std::prev(stop)->begin, emit_);
  pending_.erase(pending_.begin(), stop);
  oldest_ = pending_.empty() ? HostTime::max() : pending_.front().begin;
}

}  // namespace jouleprof::model
