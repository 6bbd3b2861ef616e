// Takes launches in about the order of time, and sends them to a sink in bins, by scope and, if
// wanted, one by one.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/activity/activity.h"
#include "model/activity/device_timeline.h"
#include "spans/cupti/aggregate/graph_templates.h"

namespace jouleprof::cupti {

struct AggregatorOptions {
  Duration bin = std::chrono::milliseconds{1};
  Duration fine = std::chrono::minutes{10};  // from then on bins are wide
  bool events = false;
  // The largest delay of a record behind others that began at the same time.
  Duration settle = std::chrono::seconds{1};
  std::size_t most_waiting = 1'000'000;  // 48 MB: beyond, late ones get a smaller share of time
};

// A launch of a graph that was received as one record is distributed over the graph's nodes, where
// an earlier launch was recorded node by node. One without a record gets its time from the launches
// around it (unrecorded_launches.h). Thread safety: one thread.
class ActivityAggregator {
 public:
  explicit ActivityAggregator(model::ActivitySink& sink, AggregatorOptions options = {});

  // Describes a device; ignored after the device was sent to the sink.
  void device(const model::TracedDevice& device);
  void add(const Activity& activity);
  void add(const UnrecordedLaunch& launch) { unrecorded_.push_back(launch); }

  // Orders what has waited long enough; `all`: everything. `dropped`: records may be missing.
  void settle(bool all, bool dropped);
  // Sends the sink the chunks that have ended by what was settled; after `all`, everything. The
  // scopes in them must have been defined before.
  void send();

  std::uint64_t activities() const { return activities_; }
  std::uint64_t late() const { return late_; }
  std::uint64_t graph_launches() const { return graph_launches_; }
  std::uint64_t graph_expanded() const { return graph_expanded_; }
  std::uint64_t unplaced() const { return unplaced_; }  // of an unknown device
  // Graphs that were launched, but never recorded node by node.
  std::size_t unknown_graphs() const { return unknown_graphs_.size(); }
  std::uint64_t node_launches() const { return templates_.launches(); }

 private:
  struct Order {
    std::int64_t start;
    std::uint32_t index;
  };

  model::DeviceTimeline& timeline(std::uint32_t ordinal);
  void take_nodes(bool dropped);
  void expand_graphs(std::int64_t until);
  void end_copies();
  std::int64_t watermark(bool all);

  model::ActivitySink& sink_;
  AggregatorOptions options_;
  std::unordered_map<std::uint32_t, model::TracedDevice> known_;  // by ordinal
  std::vector<std::uint32_t> indices_;                            // by ordinal; kNone: not sent
  std::vector<model::DeviceTimeline> timelines_;                  // in the order of sending
  GraphTemplates templates_;
  std::unordered_set<std::uint32_t> unknown_graphs_;
  std::vector<Activity> waiting_;
  std::vector<UnrecordedLaunch> unrecorded_;
  std::vector<Order> order_;
  std::vector<Activity> later_;
  std::size_t waiting_graphs_ = 0;
  std::size_t first_new_ = 0;  // in waiting_, since nodes were last taken ...
  bool new_nodes_ = false;     // ... and whether any is there
  std::int64_t newest_ = INT64_MIN;
  std::int64_t settled_ = INT64_MIN;
  bool is_all_ = false;  // what was settled last
  std::uint64_t activities_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t graph_launches_ = 0;
  std::uint64_t graph_expanded_ = 0;
  std::uint64_t unplaced_ = 0;
};

}  // namespace jouleprof::cupti
