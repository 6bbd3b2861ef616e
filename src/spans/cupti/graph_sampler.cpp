#include "spans/cupti/graph_sampler.h"

#include <algorithm>

namespace jouleprof::cupti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirst = milliseconds{20};
constexpr Duration kShortest = milliseconds{5};
constexpr Duration kLongest = milliseconds{100};
constexpr Duration kRarest = seconds{60};

}  // namespace

bool GraphSampler::begin(HostTime now, const Seen& seen) {
  nodes_ = true;
  begun_ = now;
  launches_before_ = seen.launches;
  next_ = now + kShortest;
  return true;
}

bool GraphSampler::end(HostTime now) {
  nodes_ = false;
  next_ = now + interval_;
  interval_ = std::min<Duration>(interval_ * 2, kRarest);
  return false;
}

bool GraphSampler::nodes(HostTime now, const Seen& seen) {
  if (!next_) {
    if (seen.launches == 0) return false;
    next_ = now + kFirst;
  }
  if (nodes_) {
    if (now < *next_) return true;
    // One launch must have begun within; a program that launches none is not waited for.
    if (seen.launches > launches_before_ || now - begun_ >= kLongest) return end(now);
    next_ = now + kShortest;
    return true;
  }
  if (seen.unknown_graphs > unknown_before_) {
    interval_ = seconds{1};
    next_ = std::min(*next_, std::max(now, begun_ + interval_));
  }
  unknown_before_ = seen.unknown_graphs;
  return now >= *next_ ? begin(now, seen) : false;
}

}  // namespace jouleprof::cupti
