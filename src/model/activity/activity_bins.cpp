#include "model/activity/activity_bins.h"

#include <algorithm>
#include <utility>

namespace jouleprof::model {
namespace {

ActivityBins::Options in_whole_bins(ActivityBins::Options options) {
  options.bin = std::max(options.bin, Duration{1});
  const auto bins = std::max(options.chunk / options.bin, Duration::rep{1});
  options.chunk = bins * options.bin;
  return options;
}

}  // namespace

ActivityBins::ActivityBins(const Options& options, Emit emit)
    : options_(in_whole_bins(options)),
      emit_(std::move(emit)),
      timeline_(options_.device, options_.bin, Duration::max(), options_.events) {}

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
  if (!chunk_end_) return;
  close_chunks(last_end_);
  timeline_.emit_until(last_end_, emit_);
  chunk_end_.reset();
}

void ActivityBins::sweep(HostTime until) {
  const auto earlier = [](const Launch& a, const Launch& b) { return a.begin < b.begin; };
  if (!std::is_sorted(pending_.begin(), pending_.end(), earlier)) {
    std::stable_sort(pending_.begin(), pending_.end(), earlier);
  }
  const auto stop = std::find_if(pending_.begin(), pending_.end(),
                                 [until](const Launch& launch) { return launch.begin >= until; });
  for (auto it = pending_.begin(); it != stop; ++it) {
    close_chunks(it->begin);
    if (!timeline_.add(*it)) ++late_;
    last_end_ = std::max(last_end_, it->end);
  }
  pending_.erase(pending_.begin(), stop);
  oldest_ = pending_.empty() ? HostTime::max() : pending_.front().begin;
}

// Those that end by `until`; time in which nothing runs is in none.
void ActivityBins::close_chunks(HostTime until) {
  while (chunk_end_ && *chunk_end_ <= until) {
    timeline_.emit_until(*chunk_end_, emit_);
    if (last_end_ > *chunk_end_) {
      *chunk_end_ += options_.chunk;
    } else {
      chunk_end_.reset();
    }
  }
  if (chunk_end_) return;
  const Duration into_bin = until.time_since_epoch() % options_.bin;
  chunk_end_ = until - into_bin + options_.chunk;
}

}  // namespace jouleprof::model
