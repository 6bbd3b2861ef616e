// The launches of one device as encoded chunks: activity in bins, by scope and launch by launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::model {

// Sums by a 64-bit key, cheap enough for each kernel.
class FlatSums {
 public:
  struct Sum {
    std::uint64_t key = 0;
    std::uint64_t launches = 0;
    std::uint64_t busy = 0;  // nanoseconds
  };

  void add(std::uint64_t key, std::uint64_t launches, std::uint64_t busy) {
    Sum& sum = at(key);
    sum.launches += launches;
    sum.busy += busy;
  }

  const std::vector<Sum>& sums() const { return sums_; }  // by first use
  void clear();

 private:
  static std::size_t hash(std::uint64_t key) {
    key *= 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(key >> 32 ^ key >> 51);
  }

  Sum& at(std::uint64_t key) {
    if (last_ < sums_.size() && sums_[last_].key == key) return sums_[last_];
    if (sums_.size() * 2 >= slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash(key) & mask;
    while (slots_[i] != 0 && sums_[slots_[i] - 1].key != key) i = (i + 1) & mask;
    if (slots_[i] == 0) {
      sums_.push_back({key, 0, 0});
      slots_[i] = static_cast<std::uint32_t>(sums_.size());
    }
    last_ = slots_[i] - 1;
    return sums_[last_];
  }

  void grow();

  std::vector<Sum> sums_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64);  // index + 1; 0: free
  std::size_t last_ = 0;
};

// One launch, from its true begin to its true end.
struct Launch {
  HostTime begin{};
  HostTime end{};
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = kNone;
  std::uint32_t stream = 0;
  bool collective = false;  // its times are kept, for a comparison with those of other ranks
};

// Turns the launches of one device into encoded chunks: activity in bins, by scope and, where
// wanted, launch by launch.
//
// Where several launches run at once, each instant is split equally among them; nanoseconds that do
// not divide go to those that began first, so that all shares of an instant sum to it exactly.
// Not thread-safe. Tens of nanoseconds a launch.
class DeviceTimeline {
 public:
  using Emit = std::function<void(ActivityChunk chunk)>;

  // `index`: the device's in Trace::devices. `bin`: above zero. Chunks end at multiples of
  // kScopeInterval, in whole bins. After `fine` bins get wide (kWide) and chunks end only where
  // they are emitted, which bounds the size of a day of tracing.
  DeviceTimeline(std::uint32_t index, Duration bin, Duration fine, bool events)
      : index_(index),
        bin_(bin.count()),
        chunk_bins_(std::max<std::int64_t>(kScopeInterval / bin, 1)),
        fine_(fine.count()),
        events_(events) {}

  // In the order of `begin`; `end` is not before it. A launch that begins in time that was shared
  // already is late: it counts with its full time, as if nothing had overlapped it. Then false.
  bool add(const Launch& launch);

  // Shares time up to `until` and emits the chunks so far: kBins or kWideBins, kScopes, the
  // overlapped part of both, kCollectives, and kEvents where wanted. A bin around `until` is
  // emitted in parts.
  void emit_until(HostTime until, const Emit& emit);
  // Only the chunks that end by `until`, while bins are not wide.
  void emit_ended(HostTime until, const Emit& emit);

 private:
  struct Running {
    std::int64_t end = 0;
    std::uint64_t busy = 0;        // not yet summed by scope
    std::uint64_t overlapped = 0;  // of it, while other launches ran
    std::uint64_t launches = 1;    // not yet summed by scope: 1 or 0
    std::uint32_t kernel_class = 0;
    std::uint32_t scope = 0;
  };
  struct ClassSum {
    std::uint64_t busy = 0;
    std::uint64_t overlapped = 0;
    std::uint64_t launches = 0;
  };

  void advance(std::int64_t until);
  void share(std::int64_t until);
  void end_finished();
  void sum_scope(Running& running);
  void put(std::uint32_t kernel_class, const ClassSum& more);
  void enter_bin(std::int64_t bin);
  void close_bin();
  void end_chunks(std::int64_t until);
  void end_chunk();
  void end_scopes(std::int64_t end);
  void end_late();
  bool is_long() const { return first_ != INT64_MAX && now_ - first_ > fine_; }
  void widen();
  void send(const Emit& emit);

  std::uint32_t index_;
  std::int64_t bin_;
  std::int64_t chunk_bins_;  // the longest chunk, while bins are not wide
  std::int64_t fine_;
  bool events_;
  bool wide_ = false;
  std::int64_t first_ = INT64_MAX;  // begin of all
  std::int64_t now_ = INT64_MIN;    // all before is shared
  std::int64_t current_bin_ = 0;
  std::int64_t bin_end_ = INT64_MIN;
  std::int64_t first_bin_ = 0;  // of the chunk
  bool chunk_open_ = false;
  std::vector<Running> running_;  // by begin
  std::vector<ClassSum> sums_;    // of the current bin, by class
  std::vector<std::uint32_t> touched_;
  ActivityEncoder bins_;
  ActivityEncoder overlapped_bins_;
  ActivityEncoder event_entries_;
  ActivityEncoder collective_entries_;
  FlatSums scopes_;  // class << 32 | scope
  FlatSums overlapped_scopes_;
  std::vector<Launch> late_;
  std::vector<ActivityChunk> ended_;  // not yet emitted
};

// Turns the launches of one device, in about their order, into chunks of about equal length.
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
