// Launches of CUDA graphs: the times of their nodes where the records lack them or have wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/activity/activity.h"

namespace jouleprof::cupti {

// One kernel, copy, memory set or graph launch on a device.
struct Activity {
  std::int64_t start = 0;  // HostTime, nanoseconds
  std::int64_t end = 0;
  std::uint32_t device = 0;  // CUDA's ordinal; model::kNone: not known
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = model::kNone;
  std::uint32_t stream = 0;
  std::uint32_t graph = 0;        // the executable graph that it belongs to; 0: none
  std::uint32_t correlation = 0;  // of the launch
  bool collective = false;        // and its times are its own
  bool whole_graph = false;       // a launch of a graph, received as one record
  bool copy = false;              // or a memory set, of no graph

  bool is_node() const { return graph != 0 && !whole_graph; }
};

// A launch of a graph without any record.
struct UnrecordedLaunch {
  std::int64_t begin = 0;  // of the call, HostTime, nanoseconds
  std::uint32_t scope = model::kNone;
  std::uint32_t graph = 0;
  std::uint32_t correlation = 0;
};

// The nodes of launches of CUDA graphs that were recorded node by node, as templates for launches
// that are received as one record.
class GraphTemplates {
 public:
  // A node's record. The records of one launch make one template; of concurrent launches only the
  // first does.
  void observe(const Activity& node);

  // All records that had arrived by now have been observed. A launch becomes its graph's template
  // once no more of its records come. One with fewer nodes than known replaces the template only
  // where nothing was `dropped` since the last call.
  //
  // Timestamps of two launches in one make its nodes seem to run at the same time. So a launch
  // whose nodes do becomes a template only after another one of its graph did the same, and
  // replaces none whose nodes run one by one.
  void settle(bool dropped);

  bool has(std::uint32_t graph) const {
    const auto found = templates_.find(graph);
    return found != templates_.end() && found->second.confirmed;
  }

  // How often launches of a graph should be recorded node by node once more: its template waits for
  // another launch that confirms it.
  std::uint64_t unconfirmed() const { return unconfirmed_; }

  // Appends the nodes of `launch`, received as one record: its graph's template, scaled to its
  // duration, if it has one.
  // False when its graph is not known.
  bool expand(const Activity& launch, std::vector<Activity>& into);

  std::uint64_t launches() const { return launches_; }  // that were taken as templates

 private:
  struct Launch {
    std::uint32_t correlation = 0;
    bool grew = false;
    std::vector<Activity> nodes;
  };
  struct Template {
    std::int64_t duration = 0;
    std::uint32_t correlation = 0;  // of its launch
    // Times of all nodes, of the duration: 1 at most where they run one by one.
    double together = 1;
    bool confirmed = false;
    std::vector<Activity> nodes;        // start and end from the launch's start
    std::uint32_t launch_scope = 0;     // that `scopes` is for
    std::vector<std::uint32_t> scopes;  // empty: not yet made
  };

  void learn(std::uint32_t graph, std::vector<Activity>& nodes, bool dropped);

  std::unordered_map<std::uint32_t, Launch> seen_;
  std::unordered_map<std::uint32_t, Template> templates_;
  std::size_t nodes_ = 0;  // in all templates
  std::uint64_t launches_ = 0;
  std::uint64_t unconfirmed_ = 0;
};

// Corrects launches of CUDA graphs whose nodes have timestamps of other launches.
// A graph's launches can be recorded node by node and then as a whole again. CUPTI then writes the
// timestamps of nodes of the later launches into the records of the last launch that was recorded
// node by node, until it hands these over (observed with CUPTI 13.0 and driver 580, not
// documented). The first node there keeps only its begin, and seems to run until a later launch,
// for up to a second. The launch without a record that follows (GraphMode) writes its stamps there,
// too; of it only the call is known.
//
// Replaces such nodes among waiting[first ...] by a whole launch, with the duration of the launch
// whose timestamps they have. Returns the valid nodes: those of other launches unchanged, and for
// these the nodes of the later launch, unless more of them than the first have begins of their own.
// An unrecorded launch whose stamps were found begins with them.
std::vector<Activity> mend_overwritten(std::vector<Activity>& waiting, std::size_t first,
                                       std::vector<UnrecordedLaunch>& unrecorded);

}  // namespace jouleprof::cupti
