// One device's activity, put into bins and summed by scope.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/activity_codec.h"
#include "model/activity_sink.h"
#include "spans/cupti/activity.h"
#include "spans/cupti/flat_sums.h"

namespace jouleprof::cupti {

// Where several launches run at once, each instant is split equally among them; nanoseconds that do
// not divide go to those that began first, so that all shares of an instant sum to it exactly.
class DeviceTimeline {
 public:
  // `index`: the device's in Trace::devices. `bin`: nanoseconds. After `fine` nanoseconds bins get
  // wide (model::kWide), so that a day of tracing stays small.
  DeviceTimeline(std::uint32_t index, std::int64_t bin, std::int64_t fine, bool events)
      : index_(index), bin_(bin), fine_(fine), events_(events) {}

  // Calls come in order of `start`. One that starts before what has been told already is late: it
  // is counted with its own full time, whatever ran beside it; false.
  bool add(const Activity& activity);

  // Shares time up to `until` and tells the sink what has come together.
  void tell(std::int64_t until, model::ActivitySink& sink);

  std::int64_t now() const { return now_; }

 private:
  struct Running {
    std::int64_t end = 0;
    std::uint64_t busy = 0;      // not yet summed by scope
    std::uint64_t launches = 1;  // the same: 1 or 0
    std::uint32_t kernel_class = 0;
    std::uint32_t scope = 0;
  };
  struct ClassSum {
    std::uint64_t busy = 0;
    std::uint64_t launches = 0;
  };

  void advance(std::int64_t until);
  void share(std::int64_t until);
  void end_finished();
  void sum_scope(Running& running);
  void put(std::uint32_t kernel_class, std::uint64_t busy, std::uint64_t launches);
  void enter_bin(std::int64_t bin);
  void close_bin();
  void widen();
  model::ChunkKind bins_kind() const;
  void put_event(const Activity& activity);
  void tell_late(model::ActivitySink& sink);
  void tell_scopes(std::int64_t end, model::ActivitySink& sink);

  std::uint32_t index_;
  std::int64_t bin_;
  std::int64_t fine_;
  bool events_;
  bool wide_ = false;
  std::int64_t first_ = INT64_MAX;  // begin of all
  std::int64_t now_ = INT64_MIN;    // all before is shared
  std::int64_t told_ = INT64_MIN;   // all before is told
  std::int64_t current_bin_ = 0;
  std::int64_t bin_end_ = INT64_MIN;
  std::int64_t first_bin_ = 0;  // of the chunk
  bool chunk_open_ = false;
  std::vector<Running> running_;  // by begin
  std::vector<ClassSum> sums_;    // of the current bin, by class
  std::vector<std::uint32_t> touched_;
  model::ActivityEncoder bins_;
  model::ActivityEncoder event_entries_;
  FlatSums scopes_;  // class << 32 | scope
  std::vector<Activity> late_;
};

}  // namespace jouleprof::cupti
