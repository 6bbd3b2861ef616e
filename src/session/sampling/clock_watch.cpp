#include "session/sampling/clock_watch.h"

#include <fmt/format.h>

namespace jouleprof::session {
namespace {

// Between two looks. A clock being slewed changes by 0.5 ms a second at most.
constexpr Duration kStep = std::chrono::milliseconds{50};
constexpr Duration kSleep = std::chrono::milliseconds{100};

}  // namespace

ClockWatch::Observed ClockWatch::look(const ClockPoint& now) {
  Observed observed;
  if (last_) {
    const Duration slept = now.suspended - last_->suspended;
    const Duration host = now.host - last_->host;
    const Duration step = (now.real - last_->real) - host - slept;
    if (slept > kSleep) {
      observed.warning = fmt::format(
          "the machine was suspended for {:.1f} s: nothing was measured meanwhile", seconds(slept));
    } else if (std::chrono::abs(step) > kStep) {
      observed.warning =
          fmt::format("the wall clock was set {} by {:.3f} s while recording",
                      step > Duration{} ? "forward" : "back", seconds(std::chrono::abs(step)));
    }
    if (observed.warning && recorded_->host != last_->host) observed.points.push_back(*last_);
  }
  if (!recorded_ || observed.warning || now.host - recorded_->host >= period_) {
    observed.points.push_back(now);
    recorded_ = now;
  }
  last_ = now;
  return observed;
}

}  // namespace jouleprof::session
