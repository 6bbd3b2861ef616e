#include "session/windows/window_handover.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/process/local_socket.h"
#include "base/process/threads.h"
#include "meters/shared/shared_meter.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLastSend = 1s;
constexpr std::size_t kMostWaiting = 1'000'000;  // windows, while the hub does not take them
constexpr std::uint32_t kNamesInPacket = 16;
constexpr std::size_t kLongestName = 500;  // bytes; escaped, they still fit into a packet

}  // namespace

Result<std::unique_ptr<WindowHandover>> WindowHandover::connect(
    const std::filesystem::path& socket, std::vector<model::DomainId> domains) {
  std::unique_ptr<WindowHandover> handover(new WindowHandover);
  auto link = meters::HubLink::connect(socket, {.readings = false}, handover->rings_.fd());
  if (!link) return forward_error(link);
  if (auto sent = link->send(meters::Devices{std::move(domains)}); !sent) {
    return forward_error(sent);
  }
  handover->fd_ = link->release();
  return handover;
}

WindowHandover::~WindowHandover() {
  if (fd_ >= 0) disconnect(fd_);
}

bool WindowHandover::take_in(const spans::WindowInbox::Origin& origin,
                             const spans::WindowRecord& window) {
  const std::lock_guard lock(waiting_mutex_);
  if (gone_) return false;
  if (waiting_windows_ >= kMostWaiting) {
    ++lost_;
    return true;
  }
  if (waiting_.empty() || waiting_.back().origin.thread != origin.thread ||
      waiting_.back().origin.ring != origin.ring ||
      waiting_.back().windows.size() == meters::kMostWindowsInPacket) {
    waiting_.push_back({origin, {}});
  }
  waiting_.back().windows.push_back(window);
  return ++waiting_windows_ >= meters::kMostWindowsInPacket;
}

void WindowHandover::send_names(const NameTable& names) {
  const std::lock_guard lock(sending_);
  (void)send_names(names, HostClock::now());
}

void WindowHandover::send(const NameTable& names, HostTime deadline) {
  const std::lock_guard lock(sending_);
  // Names that its windows have are there by now.
  if (send_names(names, deadline) && send_windows(deadline)) (void)send_lost(deadline);
}

void WindowHandover::close(const NameTable& names) {
  send(names, HostClock::now() + kLastSend);
  if (rings_.open() != nullptr) rings_.open()->close();
}

bool WindowHandover::send_names(const NameTable& names, HostTime deadline) {
  for (;;) {
    meters::Names more{reported_names_, {}};
    const auto end = std::min(names.size(), reported_names_ + kNamesInPacket);
    for (auto number = reported_names_; number < end; ++number) {
      more.names.push_back(names.text(number).substr(0, kLongestName));
    }
    if (more.names.empty()) return true;
    if (!send_packet(encode(meters::ProgramMessage(std::move(more))), deadline)) return false;
    reported_names_ = end;
  }
}

bool WindowHandover::send_windows(HostTime deadline) {
  for (;;) {
    Batch batch;
    {
      const std::lock_guard lock(waiting_mutex_);
      if (waiting_.empty()) return true;
      batch = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_windows_ -= batch.windows.size();
      lost_ += batch.windows.size();  // if there is no memory to send them
    }
    const auto count = batch.windows.size();
    const bool is_sent = send_packet(
        meters::encode_windows(batch.origin.thread, batch.origin.ring, batch.windows), deadline);
    const std::lock_guard lock(waiting_mutex_);
    lost_ -= std::min<std::uint64_t>(lost_, count);
    if (is_sent) continue;
    if (gone_) return false;
    waiting_.push_front(std::move(batch));
    waiting_windows_ += count;
    return false;
  }
}

bool WindowHandover::send_lost(HostTime deadline) {
  std::uint64_t lost = 0;
  {
    const std::lock_guard lock(waiting_mutex_);
    lost = std::exchange(lost_, 0);
  }
  if (lost == 0 || send_packet(encode(meters::ProgramMessage(meters::Lost{lost})), deadline)) {
    return true;
  }
  const std::lock_guard lock(waiting_mutex_);
  lost_ += lost;
  return false;
}

bool WindowHandover::send_packet(const std::string& packet, HostTime deadline) {
  while (fd_ >= 0) {
    const bool is_open = is_connected(fd_);
    if (is_open && ::send(fd_, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
      return true;
    if (is_open && errno == EINTR) continue;
    if (!is_open || errno != EAGAIN) {
      disconnect(std::exchange(fd_, -1));
      const std::lock_guard lock(waiting_mutex_);
      gone_ = true;
      waiting_.clear();
      waiting_windows_ = 0;
      break;
    }
    pollfd poll{fd_, POLLOUT, 0};
    if (HostClock::now() >= deadline) return false;
    ::poll(&poll, 1, milliseconds_until(deadline));
  }
  return false;
}

}  // namespace jouleprof::session
