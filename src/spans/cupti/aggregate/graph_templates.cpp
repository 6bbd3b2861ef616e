#include "spans/cupti/aggregate/graph_templates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

constexpr std::size_t kMostNodes = 500'000;  // 24 MB
constexpr double kOneByOne = 1.05;           // of the duration: nodes that hardly overlap
constexpr double kAlike = 1.25;              // between launches whose nodes overlap by as much

}  // namespace

void GraphTemplates::observe(const Activity& node) {
  Launch& launch = seen_[node.graph];
  if (launch.nodes.empty()) {
    launch.correlation = node.correlation;
  } else if (launch.correlation != node.correlation) {
    return;
  }
  launch.nodes.push_back(node);
  launch.grew = true;
}

void GraphTemplates::settle(bool dropped) {
  for (auto place = seen_.begin(); place != seen_.end();) {
    Launch& launch = place->second;
    if (launch.grew) {
      launch.grew = false;
      // A first template is wanted at once, and may grow by what is still to come.
      if (!templates_.contains(place->first)) {
        auto nodes = launch.nodes;
        learn(place->first, nodes, dropped);
      }
      ++place;
      continue;
    }
    learn(place->first, launch.nodes, dropped);
    place = seen_.erase(place);
  }
}

void GraphTemplates::learn(std::uint32_t graph, std::vector<Activity>& nodes, bool dropped) {
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
  std::int64_t sum = 0;
  for (const Activity& node : nodes) {
    begin = std::min(begin, node.start);
    end = std::max(end, node.end);
    sum += node.end - node.start;
  }
  const double together =
      end > begin ? static_cast<double>(sum) / static_cast<double>(end - begin) : 1.0;
  const std::uint32_t correlation = nodes.front().correlation;
  Template& known = templates_[graph];
  if (dropped && nodes.size() < known.nodes.size()) return;
  const bool has_more = !known.nodes.empty() && known.correlation == correlation;  // records
  bool confirmed = together <= kOneByOne;
  if (!confirmed && !known.nodes.empty() && !has_more) {
    const double ratio = together / known.together;
    if (known.confirmed && ratio > kOneByOne) return;
    confirmed = known.confirmed || std::max(ratio, 1 / ratio) <= kAlike;
  }
  if (nodes_ - known.nodes.size() + nodes.size() > kMostNodes) {
    if (known.nodes.empty()) templates_.erase(graph);
    return;
  }
  nodes_ += nodes.size() - known.nodes.size();
  std::ranges::sort(nodes, {}, &Activity::start);
  for (Activity& node : nodes) {
    node.start -= begin;
    node.end -= begin;
  }
  known.nodes = std::move(nodes);
  known.duration = end - begin;
  if (!confirmed && (!has_more || known.confirmed)) ++unconfirmed_;
  known.correlation = correlation;
  known.together = together;
  known.confirmed = confirmed;
  known.scopes.clear();
  ++launches_;
}

bool GraphTemplates::expand(const Activity& launch, std::vector<Activity>& into) {
  const auto found = templates_.find(launch.graph);
  if (!has(launch.graph) || found->second.duration <= 0) return false;
  Template& known = found->second;
  if (known.scopes.empty() || known.launch_scope != launch.scope) {
    known.launch_scope = launch.scope;
    known.scopes.clear();
    for (const Activity& node : known.nodes) {
      known.scopes.push_back(scopes::merged(node.scope, launch.scope));
    }
  }
  const std::int64_t duration =
      launch.end > launch.start ? launch.end - launch.start : known.duration;
  const double scale = static_cast<double>(duration) / static_cast<double>(known.duration);
  const auto at = [&](std::int64_t offset) {
    const auto scaled =
        static_cast<std::int64_t>(std::llround(static_cast<double>(offset) * scale));
    return launch.start + std::min(duration, scaled);
  };
  for (std::size_t i = 0; i != known.nodes.size(); ++i) {
    Activity node = known.nodes[i];
    node.start = at(node.start);
    node.end = at(node.end);
    node.scope = known.scopes[i];
    node.stream = launch.stream;
    node.correlation = launch.correlation;
    into.push_back(node);
  }
  return true;
}

namespace {

constexpr std::int64_t kSlack = 100'000;  // nanoseconds: a launch ends after its last node

// One launch, node by node.
struct Launch {
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
  std::vector<Activity> nodes;
  std::optional<Activity> writer;  // the later launch whose stamps its nodes have, as a whole
  std::int64_t next = INT64_MAX;   // begin of the first later one
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
      if (!launch.writer || launch.writer->start < a.start) launch.writer = a;
    }
  }
}

// When the launch's first node, whose begin is the only stamp of its own, would have begun in a
// launch that was called at `call`: after what ran before it in its stream.
std::int64_t begin_of(const Launch& launch, const Activity& first, std::int64_t call,
                      const std::vector<Activity>& waiting) {
  std::int64_t begin = std::max(call, launch.begin);
  for (const Activity& a : waiting) {
    const bool before = a.stream == first.stream && a.device == first.device && a.end <= first.end;
    if (before && (a.graph != first.graph || a.correlation != first.correlation)) {
      begin = std::max(begin, a.end);
    }
  }
  return begin;
}

// An unrecorded launch writes its stamps, too. It is taken for the writer where all nodes but the
// first begin after its call, and the first has run for longer before the call than all do after
// it: a launch that was called so early would have ended long before.
void find_unrecorded_writer(const std::vector<Activity>& waiting,
                            std::vector<UnrecordedLaunch>& unrecorded,
                            const std::pair<std::uint32_t, std::uint32_t>& key, Launch& launch) {
  const auto begins_first = [](const Activity& a, const Activity& b) { return a.start < b.start; };
  for (UnrecordedLaunch& later : unrecorded) {
    const auto after = static_cast<std::int32_t>(later.correlation - key.second);
    if (later.graph != key.first || after <= 0) continue;
    const std::int64_t call = later.begin;
    if (call - launch.begin <= std::max<std::int64_t>(launch.end - call, 0)) continue;
    const auto first = std::ranges::min_element(launch.nodes, begins_first);
    const auto early = std::ranges::count_if(
        launch.nodes, [&](const Activity& node) { return node.start < call; });
    if (early != 1 || first->end <= call) continue;
    launch.writer = *first;
    launch.writer->whole_graph = true;
    launch.writer->start = begin_of(launch, *first, call, waiting);
    launch.writer->end = launch.end;
    launch.next = later.begin = launch.writer->start;
    return;
  }
}

}  // namespace

std::vector<Activity> mend_overwritten(std::vector<Activity>& waiting, std::size_t first,
                                       std::vector<UnrecordedLaunch>& unrecorded) {
  Launches launches = launches_of(waiting, first);
  if (launches.empty()) return {};
  find_writers(waiting, launches);
  std::vector<Activity> judged;
  std::vector<Activity> whole;
  for (auto& [key, launch] : launches) {
    if (!launch.writer) find_unrecorded_writer(waiting, unrecorded, key, launch);
    if (const auto& writer = launch.writer) {
      Activity& mended = whole.emplace_back(*writer);
      mended.correlation = key.second;
      mended.start = launch.begin;
      mended.end = std::min(launch.begin + (writer->end - writer->start), launch.next);
      const auto own_begins = std::ranges::count_if(
          launch.nodes, [&](const Activity& node) { return node.start < writer->start; });
      if (own_begins > 1) continue;                     // stamps of both launches
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
    return at != launches.end() && at->second.writer;
  });
  waiting.insert(waiting.end(), whole.begin(), whole.end());
  return judged;
}

}  // namespace jouleprof::cupti
