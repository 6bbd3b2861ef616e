#include "session/windows/run_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include "base/process/threads.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPeriod = 200ms;  // of sending windows
constexpr Duration kGrace = 500ms;   // for an answer on its way
constexpr Duration kLastSend = 1s;
constexpr std::size_t kMostWaiting = 1'000'000;  // windows, while the tool does not take them
constexpr std::uint32_t kNamesInPacket = 16;
constexpr std::size_t kLongestName = 500;  // bytes; escaped, they still fit into a packet

constexpr const char* kToolIsGone =
    "the `jouleprof run` that measured this program has ended or was killed; a monitor opened now "
    "measures by itself";

}  // namespace

RunLink::RunLink(int fd, std::unique_ptr<spans::SharedRings> rings)
    : fd_(fd),
      rings_(std::move(rings)),
      inbox_([this](const auto& origin, const auto& window) { take_in(origin, window); },
             rings_.get(), rings_->open()),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  auto thread = start_thread([this] { work(); }, [this](const char* why) { lose(why); });
  if (thread) {
    thread_ = std::move(*thread);
  } else {
    lose(thread.error().message.c_str());
  }
}

RunLink::~RunLink() {
  {
    const std::lock_guard lock(answers_mutex_);
    stop_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd_.number, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  try {
    const std::lock_guard lock(sending_);
    (void)send_waiting(HostClock::now() + kLastSend);
  } catch (const std::exception&) {  // no memory for the last windows
  }
  if (rings_->open() != nullptr) rings_->open()->close();
}

RunLink::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

std::uint32_t RunLink::name(std::string_view text) {
  const std::uint32_t before = names_.size();
  const std::uint32_t number = names_.number(text);
  if (number < before) return number;
  const std::lock_guard lock(sending_);
  (void)send_names(HostClock::now());
  return number;
}

void RunLink::add(const spans::WindowRecord& window) noexcept {
  if (!gone_.load(std::memory_order_relaxed)) inbox_.push(window);
}

void RunLink::take_in(const spans::WindowInbox::Origin& origin, const spans::WindowRecord& window) {
  const std::lock_guard lock(waiting_mutex_);
  if (gone_) return;
  if (waiting_windows_ >= kMostWaiting) {
    ++lost_;
    return;
  }
  if (waiting_.empty() || waiting_.back().origin.thread != origin.thread ||
      waiting_.back().windows.size() == kMostWindowsInPacket) {
    waiting_.push_back({origin, {}});
  }
  waiting_.back().windows.push_back(window);
  ++waiting_windows_;
}

bool RunLink::send_waiting(HostTime deadline) {
  inbox_.drain();
  // Names that its windows have are there by now.
  if (!send_names(deadline)) return false;
  for (;;) {
    Batch batch;
    {
      const std::lock_guard lock(waiting_mutex_);
      if (waiting_.empty()) break;
      batch = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_windows_ -= batch.windows.size();
      lost_ += batch.windows.size();  // if there is no memory to send them
    }
    const auto count = batch.windows.size();
    const bool is_sent =
        send(encode_windows(batch.origin.thread, batch.origin.ring, batch.windows), deadline);
    const std::lock_guard lock(waiting_mutex_);
    if (!is_sent) waiting_.push_front(std::move(batch));
    lost_ -= count;
    if (is_sent) continue;
    waiting_windows_ += count;
    return false;
  }
  return send_lost(deadline);
}

bool RunLink::send_names(HostTime deadline) {
  for (;;) {
    Names names{reported_names_, {}};
    const auto end = std::min(names_.size(), reported_names_ + kNamesInPacket);
    for (auto number = reported_names_; number < end; ++number) {
      names.names.push_back(names_.text(number).substr(0, kLongestName));
    }
    if (names.names.empty()) return true;
    if (!send(encode(names), deadline)) return false;
    reported_names_ = end;
  }
}

bool RunLink::send_lost(HostTime deadline) {
  std::uint64_t lost = 0;
  {
    const std::lock_guard lock(waiting_mutex_);
    lost = std::exchange(lost_, 0);
  }
  if (lost == 0 || send(encode(Lost{lost}), deadline)) return true;
  const std::lock_guard lock(waiting_mutex_);
  lost_ += lost;
  return false;
}

bool RunLink::send(const std::string& packet, HostTime deadline) {
  for (;;) {
    if (gone_) return false;
    if (::send(fd_.number, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
      return true;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      lose(kToolIsGone);
      return false;
    }
    pollfd poll{fd_.number, POLLOUT, 0};
    if (HostClock::now() >= deadline) return false;
    ::poll(&poll, 1, milliseconds_until(deadline));
  }
}

Result<FoundEnergies> RunLink::ask(std::uint64_t id, const std::string& question,
                                   HostTime deadline) {
  const auto late = [] {
    return fail(Errc::kTimeout, "the `jouleprof run` that measures this program did not answer");
  };
  {
    const std::lock_guard lock(answers_mutex_);
    answers_[id];
  }
  bool sent = false;
  {
    const std::lock_guard lock(sending_);
    sent = send_waiting(deadline + kGrace) && send(question, deadline + kGrace);
  }
  std::unique_lock lock(answers_mutex_);
  if (sent) {
    answered_.wait_until(lock, steady(deadline + kGrace),
                         [&] { return gone_ || answers_.at(id).has_value(); });
  }
  auto answer = std::move(answers_.at(id));
  answers_.erase(id);
  if (answer) return std::move(*answer);
  if (gone_) return fail(Errc::kUnavailable, lost_because_);
  return late();
}

void RunLink::work() {
  HostTime next = HostClock::now() + kPeriod;
  while (!gone_) {
    pollfd fds[] = {{fd_.number, POLLIN, 0}, {wake_fd_.number, POLLIN, 0}};
    ::poll(fds, 2, milliseconds_until(next));
    {
      const std::lock_guard lock(answers_mutex_);
      if (stop_) return;
    }
    const bool is_due = HostClock::now() >= next;
    try {
      receive();
      // A question that waits to be sent sends all this itself.
      std::unique_lock lock(sending_, std::defer_lock);
      if (is_due && lock.try_lock()) (void)send_waiting(HostClock::now());
    } catch (const std::exception&) {  // no memory: an answer comes too late, or not at all
    }
    if (is_due) next = HostClock::now() + kPeriod;
  }
}

void RunLink::receive() {
  std::string buffer(kLongestPacket, '\0');
  for (;;) {
    const ssize_t n = ::recv(fd_.number, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0 || static_cast<std::size_t>(n) > buffer.size()) return lose(kToolIsGone);
    auto message = decode_tool_message({buffer.data(), static_cast<std::size_t>(n)});
    if (!message || !std::holds_alternative<Answer>(*message)) return lose(kToolIsGone);
    auto& answer = std::get<Answer>(*message);
    const std::lock_guard lock(answers_mutex_);
    const auto awaited = answers_.find(answer.id);
    if (awaited != answers_.end()) awaited->second = std::move(answer.found);
    answered_.notify_all();
  }
}

void RunLink::lose(const char* why) {
  {
    const std::lock_guard lock(answers_mutex_);
    if (!gone_) lost_because_ = why;
    gone_ = true;
    answered_.notify_all();
  }
  const std::lock_guard lock(waiting_mutex_);
  waiting_.clear();
  waiting_windows_ = 0;
}

}  // namespace jouleprof::session
