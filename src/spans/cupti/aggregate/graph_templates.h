// The nodes of launches of CUDA graphs that were recorded node by node, as templates for launches
// that are received as one record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "spans/cupti/aggregate/activity.h"

namespace jouleprof::cupti {

class GraphTemplates {
 public:
  // A node's record. The records of one launch make one template; of concurrent launches only the
  // first does.
  void observe(const Activity& node);

  // All records that had arrived by now have been observed. A launch becomes its graph's template
  // once no more of its records come. One with fewer nodes than known replaces the template only
  // where nothing was `dropped` since the last call.
  void settle(bool dropped);

  bool has(std::uint32_t graph) const { return templates_.contains(graph); }

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
    std::vector<Activity> nodes;        // start and end from the launch's start
    std::uint32_t launch_scope = 0;     // that `scopes` is for
    std::vector<std::uint32_t> scopes;  // empty: not yet made
  };

  void learn(std::uint32_t graph, std::vector<Activity>& nodes, bool dropped);

  std::unordered_map<std::uint32_t, Launch> seen_;
  std::unordered_map<std::uint32_t, Template> templates_;
  std::size_t nodes_ = 0;  // in all templates
  std::uint64_t launches_ = 0;
};

}  // namespace jouleprof::cupti
