// Converts CUPTI's timestamps to host time.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/aggregate/kernel_classes.h"
#include "spans/cupti/cupti_api.h"
#include "spans/cupti/graph_mode.h"
#include "spans/cupti/record_buffers.h"

namespace jouleprof::cupti {

// Assumes a constant rate of the wall clock between the last two clock points, unless it was set in
// between.
class StampConverter {
 public:
  StampConverter() { point(ClockPoint::now()); }
  explicit StampConverter(const ClockPoint& first) { point(first); }

  void point(const ClockPoint& now);

  // Nanoseconds of CLOCK_REALTIME to nanoseconds of HostTime.
  std::int64_t host(std::uint64_t stamp) const {
    const auto real = static_cast<std::int64_t>(stamp);
    const std::int64_t since = real - real_;
    const bool before = step_ > 0 ? since < -step_ / 2 : step_ < 0 && since > 0;
    return host_ + since + static_cast<std::int64_t>(static_cast<double>(since) * drift_) +
           (before ? step_ : 0);
  }

 private:
  bool any_ = false;
  std::int64_t host_ = 0;  // the last point
  std::int64_t real_ = 0;
  double drift_ = 0;       // of host time against the wall clock
  std::int64_t step_ = 0;  // of the wall clock, forward, since the point before
};

// Reads CUPTI's buffers.

// Thread safety: one thread.
class RecordReader {
 public:
  RecordReader(const CuptiApi& api, const CorrelationTable& launches, const GraphNodes& nodes,
               KernelClasses& classes, ActivityAggregator& aggregator)
      : api_(api), launches_(launches), nodes_(nodes), classes_(classes), aggregator_(aggregator) {}

  // Passes the records of the buffer to the aggregator. `now`: no record ends later.
  void read(const FullBuffer& buffer, const StampConverter& stamps, HostTime now);

  // Records with missing or impossible times.
  std::uint64_t without_times() const { return without_times_; }
  // Launches outside of graphs whose scope was found, and those without a callback.
  std::uint64_t matched() const { return matched_; }
  std::uint64_t unmatched() const { return unmatched_; }

 private:
  void take(const abi::cupti::Activity& record);
  template <typename Record>
  bool place(const Record& record, Activity& activity);
  template <typename Record>
  void take_single(const Record& record, std::uint32_t kernel_class);
  void take_graph(const abi::cupti::ActivityGraphTrace& record);
  void take_device(const abi::cupti::ActivityDevice& record);

  const CuptiApi& api_;
  const CorrelationTable& launches_;
  const GraphNodes& nodes_;
  KernelClasses& classes_;
  ActivityAggregator& aggregator_;
  const StampConverter* stamps_ = nullptr;
  std::int64_t latest_ = 0;
  std::uint64_t without_times_ = 0;
  std::uint64_t matched_ = 0;
  std::uint64_t unmatched_ = 0;
};

}  // namespace jouleprof::cupti
