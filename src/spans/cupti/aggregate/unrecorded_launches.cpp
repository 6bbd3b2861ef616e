#include "spans/cupti/aggregate/unrecorded_launches.h"

#include <algorithm>
#include <map>

namespace jouleprof::cupti {
namespace {

// A launch of the same graph, recorded whole or node by node.
struct Neighbour {
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
  const Activity* record = nullptr;

  void add(const Activity& a) {
    begin = std::min(begin, a.start);
    end = std::max(end, a.end);
    record = &a;
  }
  std::int64_t duration() const { return end - begin; }
};

Activity placed(const UnrecordedLaunch& launch, const std::vector<Activity>& waiting) {
  std::map<std::int32_t, Neighbour> others;  // by the number of calls after it
  for (const Activity& a : waiting) {
    if (a.graph != launch.graph) continue;
    others[static_cast<std::int32_t>(a.correlation - launch.correlation)].add(a);
  }
  Activity out;
  out.start = out.end = launch.begin;
  out.device = model::kNone;
  out.scope = launch.scope;
  out.graph = launch.graph;
  out.correlation = launch.correlation;
  out.whole_graph = true;
  const auto after = others.upper_bound(0);
  if (after != others.begin()) out.start = std::max(out.start, std::prev(after)->second.end);
  const Neighbour* alike = after != others.end()     ? &after->second
                           : after != others.begin() ? &std::prev(after)->second
                                                     : nullptr;
  if (alike == nullptr) return out;
  out.device = alike->record->device;
  out.stream = alike->record->stream;
  out.kernel_class = alike->record->kernel_class;
  out.end = out.start + alike->duration();
  if (after != others.end()) out.end = std::max(std::min(out.end, after->second.begin), out.start);
  return out;
}

}  // namespace

std::vector<Activity> place_unrecorded(std::vector<UnrecordedLaunch>& unrecorded,
                                       const std::vector<Activity>& waiting, std::int64_t until) {
  std::vector<Activity> out;
  std::erase_if(unrecorded, [&](const UnrecordedLaunch& launch) {
    if (launch.begin >= until) return false;
    out.push_back(placed(launch, waiting));
    return true;
  });
  return out;
}

}  // namespace jouleprof::cupti
