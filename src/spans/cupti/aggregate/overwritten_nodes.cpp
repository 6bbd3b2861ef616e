#include "spans/cupti/aggregate/overwritten_nodes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace jouleprof::cupti {
namespace {

constexpr std::int64_t kSlack = 100'000;  // nanoseconds: a launch ends after its last node

// One launch, node by node.
struct Launch {
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
  std::vector<Activity> nodes;
  const Activity* writer = nullptr;  // the later launch whose stamps its nodes have
  std::int64_t next = INT64_MAX;     // begin of the first later one
};

using Launches = std::map<std::pair<std::uint32_t, std::uint32_t>, Launch>;  // graph, correlation

Launches launches_of(const std::vector<Activity>& waiting, std::size_t first) {
  Launches out;
  for (std::size_t i = first; i < waiting.size(); ++i) {
    const Activity& a = waiting[i];
    if (!a.is_node()) continue;
    Launch& launch = out[{a.graph, a.correlation}];
    launch.begin = std::min(launch.begin, a.start);
    launch.end = std::max(launch.end, a.end);
    launch.nodes.push_back(a);
  }
  return out;
}

// Launches of one graph run one after the other, so that one that reaches beyond the middle of a
// later one is not as it was recorded.
void find_writers(const std::vector<Activity>& waiting, Launches& launches) {
  for (const Activity& a : waiting) {
    if (!a.whole_graph) continue;
    for (auto at = launches.lower_bound({a.graph, 0});
         at != launches.end() && at->first.first == a.graph; ++at) {
      Launch& launch = at->second;
      const auto after = static_cast<std::int32_t>(a.correlation - at->first.second);
      if (after <= 0 || a.start < launch.begin) continue;
      launch.next = std::min(launch.next, a.start);
      if (a.start + (a.end - a.start) / 2 >= launch.end) continue;
      if (launch.writer == nullptr || launch.writer->start < a.start) launch.writer = &a;
    }
  }
}

}  // namespace

std::vector<Activity> mend_overwritten(std::vector<Activity>& waiting, std::size_t first) {
  Launches launches = launches_of(waiting, first);
  if (launches.empty()) return {};
  find_writers(waiting, launches);
  std::vector<Activity> judged;
  std::vector<Activity> whole;
  for (auto& [key, launch] : launches) {
    const Activity* writer = launch.writer;
    if (writer != nullptr) {
      Activity& mended = whole.emplace_back(*writer);
      mended.correlation = key.second;
      mended.start = launch.begin;
      mended.end = std::min(launch.begin + (writer->end - writer->start), launch.next);
      if (launch.end > writer->end + kSlack) continue;  // of yet another launch
      for (Activity& node : launch.nodes) {
        node.start = std::max(node.start, writer->start);
        node.end = std::max(node.end, node.start);
      }
    }
    judged.insert(judged.end(), launch.nodes.begin(), launch.nodes.end());
  }
  if (whole.empty()) return judged;
  std::erase_if(waiting, [&](const Activity& a) {
    if (!a.is_node()) return false;
    const auto at = launches.find({a.graph, a.correlation});
    return at != launches.end() && at->second.writer != nullptr;
  });
  waiting.insert(waiting.end(), whole.begin(), whole.end());
  return judged;
}

}  // namespace jouleprof::cupti
