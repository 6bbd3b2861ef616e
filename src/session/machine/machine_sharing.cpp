// MachineService's part in sharing its sensors with local programs.
#include <algorithm>
#include <chrono>
#include <utility>

#include "session/machine/machine_service.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPoll = 5ms;        // while a program waits for a read
constexpr Duration kLongestRead = 2s;  // of all sensors: a meter may hang

}  // namespace

Result<void> MachineService::start_sharing() {
  if (!options_.share) return {};
  auto started = ShareServer::start(*options_.share, offered_, sampling_.sensors(), [this] {
    const std::lock_guard lock(mutex_);
    is_asked_ = true;
    woken_.notify_all();
  });
  if (!started) return forward_error(started);
  share_ = std::move(*started);
  return {};
}

// Returns when to call it next, unless a program asks before.
HostTime MachineService::serve_programs() {
  if (!share_) return HostTime::max();
  if (auto problem = share_->take_problem(); !problem.empty()) sampling_.warn(std::move(problem));
  if (const auto pace = share_->take_pace()) set_pace(*pace);
  const HostTime now = HostClock::now();
  if (!read_ && share_->take_read_request(now)) {
    read_ = Read{sampling_.read_soon(), now + kLongestRead};
  }
  if (read_) {
    const bool is_done = sampling_.has_read(read_->numbers) || now >= read_->deadline;
    sampling_.collect();
    if (!is_done) return now + kPoll;
    read_.reset();
    share_->finish_read();
  }
  if (!share_->has_programs()) return HostTime::max();
  if (now >= delivered_ + delivery_) {
    sampling_.collect();
    delivered_ = now;
  }
  return std::min(delivered_ + delivery_, share_->next_read());
}

void MachineService::set_pace(const std::optional<ShareServer::Pace>& pace) {
  const Duration own = std::min(options_.tick, process_period());
  if (!pace) {
    sampling_.set_pace(options_.demand, own);
    return;
  }
  delivery_ = pace->delivery;
  const bool has_period = pace->process_period > Duration{};
  sampling_.set_pace(meters::joined_demand(options_.demand, pace->demand),
                     has_period ? std::min(own, pace->process_period) : own);
}

}  // namespace jouleprof::session
