// MachineService's part in sharing its sensors with local programs.
#include <algorithm>
#include <utility>

#include "session/machine/machine_service.h"

namespace jouleprof::session {

Result<void> MachineService::start_sharing() {
  if (!options_.share) return {};
  auto socket = HubSocket::create(options_.share->access);
  if (!socket) return forward_error(socket);
  HubOptions options;
  options.fastest = options.between_reads = options_.share->fastest;
  options.root = options_.share->root;
  auto started = HubServer::start(std::move(*socket), std::move(options), offered_,
                                  sampling_.sensors(), [this] {
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
  const HostTime next = reads_.serve(*share_, sampling_);
  if (!share_->has_programs()) return next;
  const HostTime now = HostClock::now();
  if (now >= delivered_ + delivery_) {
    sampling_.collect();
    delivered_ = now;
  }
  return std::min(delivered_ + delivery_, next);
}

void MachineService::set_pace(const std::optional<HubServer::Pace>& pace) {
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
