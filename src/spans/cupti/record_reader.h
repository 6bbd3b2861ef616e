// Reads CUPTI's buffers.
#pragma once

#include <cstdint>

#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/aggregate/kernel_classes.h"
#include "spans/cupti/buffer_pool.h"
#include "spans/cupti/correlation_table.h"
#include "spans/cupti/cupti_api.h"
#include "spans/cupti/graph_nodes.h"
#include "spans/cupti/stamp_converter.h"

namespace jouleprof::cupti {

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
