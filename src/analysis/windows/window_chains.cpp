#include "analysis/windows/window_chains.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

constexpr int kGapPart = 1000;
constexpr std::size_t kMostLayers = 256;

}  // namespace

double WindowChain::share() const {
  return end > begin ? std::min(seconds(covered) / seconds(end - begin), 1.0) : 1.0;
}

double open_error(double joules, double share) {
  const double open = share - std::floor(share);
  return kErrors.normal95 * 1.15 * joules * open * (1 - open);
}

void WindowChains::add(HostTime begin, HostTime end, const Ended& ended) {
  // The layer with the latest end before `begin`: a window joins the chain that it continues.
  auto place = latest_.upper_bound(begin);
  if (place == latest_.begin() && latest_.size() < kMostLayers) {
    latest_.emplace(end, WindowChain{begin, end, end - begin, 1, latest_.size()});
    return;
  }
  if (place != latest_.begin()) --place;
  auto node = latest_.extract(place);
  WindowChain& chain = node.mapped();
  const Duration gap = begin - chain.end;
  if (chain.count > 0 && gap >= Duration{} && gap <= (end - begin) / kGapPart) {
    chain.end = end;
    chain.covered += end - begin;
    ++chain.count;
  } else {
    if (chain.count > 0) ended(chain);
    chain = {begin, end, end - begin, 1, chain.layer};
  }
  node.key() = chain.end;
  latest_.insert(std::move(node));
}

void WindowChains::end_if(const std::function<bool(const WindowChain&)>& is_over,
                          const Ended& ended) {
  for (auto& [end, chain] : latest_) {
    if (chain.count == 0 || !is_over(chain)) continue;
    ended(chain);
    chain.count = 0;  // its end stays: overlapping windows go to another layer
  }
}

void WindowChains::end_all(const Ended& ended) {
  end_if([](const WindowChain&) { return true; }, ended);
}

}  // namespace jouleprof::analysis
