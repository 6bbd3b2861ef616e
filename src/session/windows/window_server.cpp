#include "session/windows/window_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kKept = 10s;  // of readings, before the first program connects
constexpr Duration kNoDescriptors = 1s;
constexpr Duration kOpenPeriod = 1s;  // between looks at the windows that are open
constexpr int kPacketsInTurn = 64;    // of one client, before the next one's turn
constexpr int kLastTurns = 16;        // more than a socket can hold
constexpr std::size_t kMostUnsent = 8192;

HostTime newest(const model::Readings& readings) {
  HostTime t{};
  if (!readings.counters.empty()) t = readings.counters.back().after;
  if (!readings.powers.empty()) t = std::max(t, readings.powers.back().at);
  return t;
}

bool may_serve(const ucred& peer) { return peer.uid == ::geteuid() && peer.pid > 0; }

}  // namespace

Result<std::unique_ptr<WindowServer>> WindowServer::start(std::vector<OfferedDomain> domains,
                                                          std::vector<model::Sensor> sensors,
                                                          std::function<void()> wake) {
  auto socket = SessionSocket::create();
  if (!socket) return forward_error(socket);
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    return fail(Errc::kUnavailable, system_error("cannot make an event descriptor", errno).message);
  }
  std::unique_ptr<WindowServer> server(new WindowServer(
      std::move(*socket), wake_fd, std::move(domains), std::move(sensors), std::move(wake)));
  auto* const self = server.get();
  auto thread =
      start_thread([self] { self->run(); }, [self](const char* why) { self->give_up(why); });
  if (!thread) return forward_error(thread);
  server->thread_ = std::move(*thread);
  return server;
}

WindowServer::WindowServer(SessionSocket socket, int wake_fd, std::vector<OfferedDomain> domains,
                           std::vector<model::Sensor> sensors, std::function<void()> wake)
    : socket_(std::move(socket)),
      wake_fd_(wake_fd),
      domains_(std::move(domains)),
      sensors_(std::move(sensors)),
      wake_(std::move(wake)),
      buffer_(kLongestPacket, '\0') {}

WindowServer::~WindowServer() {
  stop();
  ::close(wake_fd_);
}

void WindowServer::append(const model::Readings& readings) {
  if (readings.counters.empty() && readings.powers.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    readings_.push_back(readings);
    if (!in_use_) {
      const HostTime old = newest(readings_.back()) - kKept;
      while (newest(readings_.front()) < old) readings_.pop_front();
      return;
    }
  }
  wake_thread();
}

void WindowServer::take(std::vector<model::Window>& windows, std::vector<std::string>& warnings) {
  const std::lock_guard lock(mutex_);
  windows = std::exchange(windows_, {});
  warnings = std::exchange(warnings_, {});
}

std::vector<model::OpenWindow> WindowServer::open_windows() {
  const std::lock_guard lock(mutex_);
  return open_;
}

void WindowServer::admit(Joined answer) {
  {
    const std::lock_guard lock(mutex_);
    admitted_ = std::move(answer);
  }
  wake_thread();
}

std::vector<WindowServer::Member> WindowServer::take_members() {
  const std::lock_guard lock(mutex_);
  return std::exchange(members_, {});
}

void WindowServer::release_leaving() {
  {
    const std::lock_guard lock(mutex_);
    release_ = true;
    leaving_ = false;
  }
  wake_thread();
}

bool WindowServer::end_admission() {
  const std::lock_guard lock(mutex_);
  if (member_count_ > 0) return false;
  closed_ = true;
  return true;
}

bool WindowServer::has_members() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const auto& c) { return c.second.role != Client::kProgram; });
}

void WindowServer::serve_members() {
  std::vector<ClientId> done;
  bool any_new = false;
  {
    const std::lock_guard lock(mutex_);
    const bool release = std::exchange(release_, false);
    for (auto& [id, client] : clients_) {
      if (client.role == Client::kLeaving && release) done.push_back(id);
      if (client.role != Client::kAsking) continue;
      if (closed_) {
        client.unsent.push_back(
            encode(Refused{kWindowProtocol, "the recorder of the job takes no more processes"}));
        send_unsent(client);
        done.push_back(id);
      } else if (admitted_) {
        client.role = Client::kMember;
        client.unsent.push_back(encode(*admitted_));
        members_.push_back({client.pid, std::move(client.visible)});
        ++member_count_;
        any_new = true;
      }
    }
  }
  for (const ClientId id : done) drop(id);
  if (any_new) wake_();
}

void WindowServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_thread();
  if (thread_.joinable()) thread_.join();
}

void WindowServer::wake_thread() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd_, &one, sizeof one);
}

void WindowServer::run() {
  for (;;) {
    const bool go_on = wait();
    if (HostClock::now() >= accept_again_) accept_clients();
    if (service_) {
      take_in_readings();
      HostTime now = HostClock::now();
      // What is left in the sockets of programs that have ended is not lost.
      for (int turn = 0; turn < (go_on ? 1 : kLastTurns); ++turn) receive_all(now);
      if (has_members()) serve_members();
      service_->look(now = HostClock::now());
      if (!go_on) service_->answer_all();
      reply();
      hand_over();
      if (now >= next_open_look_) look_at_open_windows(now);
    }
    if (!go_on) break;
  }
  waiting_ = false;
  while (!clients_.empty()) drop(clients_.begin()->first, false);
  if (!service_) return;
  hand_over();
  look_at_open_windows(HostClock::now());  // of no client any more
}

// Programs see that their connection has ended; nothing waits for answers or for members any more.
void WindowServer::give_up(const char* why) {
  waiting_ = false;
  in_use_ = false;
  ::shutdown(socket_.fd(), SHUT_RDWR);  // refuses further ones
  for (const auto& [id, client] : clients_) {
    ::close(client.fd);
    if (client.rings >= 0) ::close(client.rings);
  }
  clients_.clear();
  {
    const std::lock_guard lock(mutex_);
    readings_.clear();
    member_count_ = 0;
    closed_ = true;
    warnings_.push_back(fmt::format(
        "windows of programs are missing from here on: the thread that takes them ended ({})",
        why));
  }
  wake_();
}

bool WindowServer::wait() {
  HostTime next = service_ ? std::min(service_->next_look(), next_open_look_) : HostTime::max();
  std::vector<pollfd> fds{{wake_fd_, POLLIN, 0}};
  if (HostClock::now() >= accept_again_) {
    fds.push_back({socket_.fd(), POLLIN, 0});
  } else {
    next = std::min(next, accept_again_);
  }
  for (const auto& [id, client] : clients_) {
    const bool has_unsent = !client.unsent.empty();
    fds.push_back({client.fd, static_cast<short>(has_unsent ? POLLIN | POLLOUT : POLLIN), 0});
  }
  ::poll(fds.data(), fds.size(), milliseconds_until(next));
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_fd_, &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return !stop_;
}

void WindowServer::accept_clients() {
  for (;;) {
    const int fd = ::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
      if (none_left) accept_again_ = HostClock::now() + kNoDescriptors;
      return;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || !may_serve(peer)) {
      ::close(fd);
      continue;
    }
    if (!service_) {
      service_.emplace(domains_, sensors_);
      in_use_ = true;
    }
    next_open_look_ = std::min(next_open_look_, HostClock::now() + kOpenPeriod);
    const ClientId id = next_client_++;
    clients_[id].fd = fd;
    clients_[id].pid = peer.pid;
    service_->add_client(id, peer.pid, HostClock::now());
    const std::lock_guard lock(mutex_);
    newcomers_.push_back(peer.pid);
  }
}

void WindowServer::take_in_readings() {
  std::deque<model::Readings> readings;
  {
    const std::lock_guard lock(mutex_);
    readings = std::exchange(readings_, {});
  }
  for (const auto& r : readings) service_->append(r);
}

void WindowServer::receive_all(HostTime now) {
  std::vector<ClientId> bad;
  for (auto& [id, client] : clients_) {
    if (!receive(id, client, now)) bad.push_back(id);
  }
  for (const ClientId id : bad) drop(id);
}

bool WindowServer::receive(ClientId id, Client& client, HostTime now) {
  for (int i = 0; i < kPacketsInTurn; ++i) {
    int descriptor = -1;
    const ssize_t n = receive_with_descriptor(client.fd, buffer_, descriptor);
    if (descriptor >= 0 && client.rings >= 0) {
      ::close(descriptor);
    } else if (descriptor >= 0) {
      client.rings = descriptor;
    }
    // Reported once for a program that ended without reading all; what it sent is still there.
    if (n < 0 && errno == ECONNRESET) continue;
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0 || static_cast<std::size_t>(n) > buffer_.size()) return false;
    auto message = decode_program_message({buffer_.data(), static_cast<std::size_t>(n)});
    if (!message) return false;
    if (auto* join = std::get_if<Join>(&*message)) {
      if (client.role != Client::kProgram) return false;
      client.role = Client::kAsking;
      client.visible = std::move(join->visible);
    } else if (std::holds_alternative<Leave>(*message)) {
      if (client.role != Client::kMember) return false;
      client.role = Client::kLeaving;
      leaving_ = true;
      wake_();
    } else if (!service_->take(id, std::move(*message), now)) {
      return false;
    }
  }
  return true;
}

void WindowServer::reply() {
  for (auto& reply : service_->take_replies()) {
    const auto client = clients_.find(reply.client);
    if (client == clients_.end()) continue;
    client->second.unsent.push_back(encode(reply.message));
    if (!std::holds_alternative<Refused>(reply.message)) continue;
    send_unsent(client->second);
    drop(reply.client);
  }
  std::vector<ClientId> bad;
  for (auto& [id, client] : clients_) {
    if (!send_unsent(client)) bad.push_back(id);
  }
  for (const ClientId id : bad) drop(id);
}

bool WindowServer::send_unsent(Client& client) {
  while (!client.unsent.empty()) {
    const std::string& packet = client.unsent.front();
    if (::send(client.fd, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EAGAIN || errno == EINTR) return client.unsent.size() <= kMostUnsent;
      client.unsent.clear();  // it is gone; what it sent before is still to be received
      break;
    }
    client.unsent.pop_front();
  }
  return true;
}

void WindowServer::drop(ClientId id, bool has_ended) {
  const Client& client = clients_.at(id);
  if (client.rings >= 0) {
    take_left(id, client.rings, has_ended);
    ::close(client.rings);
  }
  if (client.role == Client::kMember || client.role == Client::kLeaving) {
    const std::lock_guard lock(mutex_);
    --member_count_;
  }
  service_->remove_client(id);
  ::close(client.fd);
  const bool is_member = client.role != Client::kProgram;
  clients_.erase(id);
  if (is_member) wake_();
}

void WindowServer::take_left(ClientId id, int rings, bool has_ended) {
  const HostTime now = HostClock::now();
  const std::uint64_t overwritten = spans::read_left(
      rings, [&](std::uint32_t ring) { return service_->received(id, ring); },
      [&](pid_t thread, const spans::WindowRecord& window) {
        (void)service_->take(id, Windows{thread, {}, {window}}, now);
      });
  if (overwritten > 0) (void)service_->take(id, Lost{overwritten}, now);
  const auto open = spans::read_left_open(rings);
  service_->leave_open(id, open.windows, now,
                       open.closed ? "its monitor was closed"
                       : has_ended ? "the process ended"
                                   : "the recording ended");
}

// For the recording, in case that the tool dies.
void WindowServer::look_at_open_windows(HostTime now) {
  std::vector<model::OpenWindow> open;
  for (const auto& [id, client] : clients_) {
    if (client.rings < 0) continue;
    auto found = service_->named(id, spans::read_left_open(client.rings).windows, now);
    open.insert(open.end(), std::make_move_iterator(found.begin()),
                std::make_move_iterator(found.end()));
  }
  next_open_look_ = clients_.empty() ? HostTime::max() : now + kOpenPeriod;
  const std::lock_guard lock(mutex_);
  open_ = std::move(open);
}

std::vector<pid_t> WindowServer::take_newcomers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(newcomers_, {});
}

void WindowServer::hand_over() {
  auto windows = service_->take_windows();
  auto warnings = service_->take_warnings();
  {
    const std::lock_guard lock(mutex_);
    if (windows_.empty()) {
      windows_ = std::move(windows);
    } else {
      windows_.insert(windows_.end(), std::make_move_iterator(windows.begin()),
                      std::make_move_iterator(windows.end()));
    }
    std::move(warnings.begin(), warnings.end(), std::back_inserter(warnings_));
  }
  const bool request = service_->take_read_request();
  if (request) read_request_ = true;
  const bool was_waiting = waiting_.exchange(service_->is_waiting());
  if (request || (service_->is_waiting() && !was_waiting)) wake_();
}

}  // namespace jouleprof::session
