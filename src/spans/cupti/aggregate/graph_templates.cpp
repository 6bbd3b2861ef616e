#include "spans/cupti/aggregate/graph_templates.h"

#include <algorithm>
#include <cmath>

#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

constexpr std::size_t kMostNodes = 500'000;  // 24 MB

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
  Template& known = templates_[graph];
  if (dropped && nodes.size() < known.nodes.size()) return;
  if (nodes_ - known.nodes.size() + nodes.size() > kMostNodes) {
    if (known.nodes.empty()) templates_.erase(graph);
    return;
  }
  nodes_ += nodes.size() - known.nodes.size();
  std::sort(nodes.begin(), nodes.end(),
            [](const Activity& a, const Activity& b) { return a.start < b.start; });
  const std::int64_t begin = nodes.front().start;
  std::int64_t end = begin;
  for (Activity& node : nodes) {
    end = std::max(end, node.end);
    node.start -= begin;
    node.end -= begin;
  }
  known.nodes = std::move(nodes);
  known.duration = end - begin;
  known.scopes.clear();
  ++launches_;
}

bool GraphTemplates::expand(const Activity& launch, std::vector<Activity>& into) {
  const auto found = templates_.find(launch.graph);
  if (found == templates_.end() || found->second.duration <= 0) return false;
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

}  // namespace jouleprof::cupti
