// Launches of one device, in: its activity in bins and by scope (and each launch, where wanted),
// out, as encoded chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "model/activity.h"
#include "model/activity_codec.h"

namespace jouleprof::model {

// One launch, from its true begin to its true end.
struct Launch {
  HostTime begin{};
  HostTime end{};
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = kNone;
  std::uint32_t stream = 0;
};

// Where n launches run at once, each is busy for 1/n of that time, to the nanosecond: over any
// stretch the busy times sum exactly to the time in which anything ran. Memory is bounded by the
// launches that begin within `patience`. Not thread-safe. Tens of nanoseconds a launch.
class ActivityBins {
 public:
  struct Options {
    std::uint32_t device = 0;                            // ActivityChunk::device
    Duration bin = std::chrono::milliseconds{1};         // Trace::bin
    Duration chunk = std::chrono::seconds{1};            // the longest span of one chunk
    Duration patience = std::chrono::milliseconds{500};  // how far launches may be out of order
    bool events = false;                                 // kEvents chunks, too
  };
  // Takes chunks as they are done: of each span kBins, kScopes, and kEvents where wanted.
  using Emit = std::function<void(ActivityChunk chunk)>;

  ActivityBins(const Options& options, Emit emit);

  // In about the order of their begins. One that begins before all that has been shared out already
  // is late: it counts as a launch, and only what is left of its time is shared. One that ends
  // before it begins counts as a launch without time.
  void add(const Launch& launch);
  // Shares out and emits everything. More launches may follow.
  void finish();

  std::uint64_t launches() const { return launches_; }
  std::uint64_t late() const { return late_; }

 private:
  struct Cell {
    std::uint64_t busy = 0;
    std::uint64_t launches = 0;
  };
  struct Running {
    HostTime end{};
    std::uint32_t kernel_class = 0;
    std::uint32_t scope = 0;
    std::uint64_t busy = 0;  // not yet in scopes_
  };

  void sweep(HostTime until);  // pending launches that begin before `until`
  void begin(const Launch& launch);
  void run_until(HostTime time);
  void share(std::uint64_t nanoseconds);
  Cell& cell(std::uint32_t kernel_class);
  Cell& total(const Running& running);
  void enter_bin(HostTime time);
  void close_bin();
  void close_chunk();

  Options options_;
  Emit emit_;
  std::vector<Launch> pending_;
  HostTime oldest_{HostTime::max()};  // begins of pending_
  HostTime newest_{HostTime::min()};
  HostTime settled_{HostTime::min()};
  bool started_ = false;
  HostTime now_{};
  HostTime bin_end_{};
  HostTime chunk_begin_{};
  bool chunk_open_ = false;
  std::vector<Running> running_;
  std::vector<Cell> cells_;                         // of the open bin, by class
  std::vector<std::uint32_t> touched_;              // classes in cells_
  std::unordered_map<std::uint64_t, Cell> scopes_;  // of the open chunk, by class and scope
  std::vector<std::uint64_t> scope_order_;
  ActivityEncoder bins_;
  ActivityEncoder events_;
  std::uint64_t launches_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t turn_ = 0;  // who gets the nanosecond that does not divide
};

}  // namespace jouleprof::model
