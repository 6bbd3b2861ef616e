// Turns the launches of one device, in about their order, into chunks of about equal length.
#pragma once

#include <cstdint>
#include <vector>

#include "model/activity/device_timeline.h"

namespace jouleprof::model {

// Puts launches in order and shares their time by DeviceTimeline's rule. Memory is bounded by the
// launches that begin within `patience`. Not thread-safe.
class ActivityBins {
 public:
  struct Options {
    std::uint32_t device = 0;                            // ActivityChunk::device
    Duration bin = std::chrono::milliseconds{1};         // Trace::bin
    Duration patience = std::chrono::milliseconds{500};  // how far launches may be out of order
    bool events = false;                                 // kEvents chunks, too
  };
  // Takes the finished chunks: of each interval kBins, kScopes, and kEvents where wanted.
  using Emit = DeviceTimeline::Emit;

  ActivityBins(const Options& options, Emit emit);

  // In about the order of their begins; later than `patience` is late (DeviceTimeline).
  // One that ends before it begins counts as a launch without time.
  void add(const Launch& launch);
  // Shares all time and emits everything. More launches may follow.
  void finish();

  std::uint64_t launches() const { return launches_; }
  std::uint64_t late() const { return late_; }

 private:
  void sweep(HostTime until);  // pending launches that begin before `until`

  Options options_;
  Emit emit_;
  DeviceTimeline timeline_;
  std::vector<Launch> pending_;
  HostTime oldest_{HostTime::max()};  // begins of pending_
  HostTime newest_{HostTime::min()};
  HostTime last_end_{HostTime::min()};  // of the launches in the timeline
  std::uint64_t launches_ = 0;
  std::uint64_t late_ = 0;
};

}  // namespace jouleprof::model
