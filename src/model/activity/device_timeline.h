// Turns the launches of one device into encoded chunks: activity in bins, by scope and, where
// wanted, launch by launch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"
#include "model/activity/flat_sums.h"

namespace jouleprof::model {

// One launch, from its true begin to its true end.
struct Launch {
  HostTime begin{};
  HostTime end{};
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = kNone;
  std::uint32_t stream = 0;
  bool collective = false;  // its times are kept, for a comparison with those of other ranks
};

// Where several launches run at once, each instant is split equally among them; nanoseconds that do
// not divide go to those that began first, so that all shares of an instant sum to it exactly.
// Not thread-safe. Tens of nanoseconds a launch.
class DeviceTimeline {
 public:
  using Emit = std::function<void(ActivityChunk chunk)>;

  // `index`: the device's in Trace::devices. `bin`: above zero. After `fine` bins get wide (kWide),
  // which bounds the size of a day of tracing.
  DeviceTimeline(std::uint32_t index, Duration bin, Duration fine, bool events)
      : index_(index), bin_(bin.count()), fine_(fine.count()), events_(events) {}

  // In the order of `begin`; `end` is not before it. A launch that begins in time that was shared
  // already is late: it counts with its full time, as if nothing had overlapped it. Then false.
  bool add(const Launch& launch);

  // Shares time up to `until` and emits the chunks so far: kBins or kWideBins, kScopes, the
  // overlapped part of both, kCollectives, and kEvents where wanted. A bin around `until` is
  // emitted in parts.
  void emit_until(HostTime until, const Emit& emit);

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
  void widen();
  void emit_late(const Emit& emit);
  void emit_all_scopes(std::int64_t end, const Emit& emit);

  std::uint32_t index_;
  std::int64_t bin_;
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
};

}  // namespace jouleprof::model
