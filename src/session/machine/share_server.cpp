#include "session/machine/share_server.h"

#include <fmt/format.h>
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
#include "session/machine/share_access.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostClients = 64;
constexpr std::size_t kMostClientsOfUser = 16;
constexpr std::size_t kMostUnsent = std::size_t{4} << 20;  // bytes
constexpr std::size_t kMostWanted = 8;                     // requests of one program
constexpr Duration kSilent = 5s;  // a program may be so before its first message
constexpr Duration kNoDescriptors = 1s;
constexpr int kPacketsInTurn = 16;

template <typename Message>
auto packet_of(const Message& message) {
  return std::make_shared<const std::string>(meters::encode(meters::ServiceMessage(message)));
}

}  // namespace

Result<std::unique_ptr<ShareServer>> ShareServer::start(ShareOptions options,
                                                        std::vector<model::Domain> domains,
                                                        std::vector<model::Sensor> sensors,
                                                        std::function<void()> wake) {
  auto socket = ShareSocket::create(options.access);
  if (!socket) return forward_error(socket);
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    return fail(Errc::kUnavailable, system_error("cannot make an event descriptor", errno).message);
  }
  std::unique_ptr<ShareServer> server(new ShareServer(std::move(options), std::move(*socket),
                                                      wake_fd, std::move(domains),
                                                      std::move(sensors), std::move(wake)));
  auto* const self = server.get();
  auto thread =
      start_thread([self] { self->run(); }, [self](const char* why) { self->give_up(why); });
  if (!thread) return forward_error(thread);
  server->thread_ = std::move(*thread);
  return server;
}

ShareServer::ShareServer(ShareOptions options, ShareSocket socket, int wake_fd,
                         std::vector<model::Domain> domains, std::vector<model::Sensor> sensors,
                         std::function<void()> wake)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      wake_fd_(wake_fd),
      domains_(std::move(domains)),
      sensors_(std::move(sensors)),
      wake_(std::move(wake)),
      buffer_(meters::kLongestServicePacket, '\0') {}

ShareServer::~ShareServer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_thread();
  if (thread_.joinable()) thread_.join();
  while (!clients_.empty()) drop(clients_.begin()->first);
  ::close(wake_fd_);
}

void ShareServer::wake_thread() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd_, &one, sizeof one);
}

std::optional<std::optional<ShareServer::Pace>> ShareServer::take_pace() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(pace_changed_, false)) return std::nullopt;
  return pace_;
}

HostTime ShareServer::next_read() {
  const std::lock_guard lock(mutex_);
  return wanted_.empty() ? HostTime::max() : last_read_ + options_.fastest;
}

bool ShareServer::take_read_request(HostTime now) {
  const std::lock_guard lock(mutex_);
  if (wanted_.empty() || now < last_read_ + options_.fastest) return false;
  last_read_ = now;
  being_read_.insert(being_read_.end(), wanted_.begin(), wanted_.end());
  wanted_.clear();
  return true;
}

void ShareServer::finish_read() {
  {
    const std::lock_guard lock(mutex_);
    outbox_.emplace_back(std::exchange(being_read_, {}));
  }
  wake_thread();
}

void ShareServer::append(const Sampled& sampled) {
  if (!has_programs()) return;
  auto packets = meters::encode_readings(sampled.readings);
  if (packets.empty() && sampled.gpu_processes.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (auto& packet : packets) {
      outbox_.emplace_back(std::make_shared<const std::string>(std::move(packet)));
    }
    if (!sampled.gpu_processes.empty()) outbox_.emplace_back(sampled.gpu_processes);
  }
  wake_thread();
}

// Programs see that their connection has ended, and sample by themselves.
void ShareServer::give_up(const char* why) {
  ::shutdown(socket_.fd(), SHUT_RDWR);  // refuses further ones
  for (const auto& [id, client] : clients_) ::close(client.fd);
  clients_.clear();
  programs_ = 0;
  {
    const std::lock_guard lock(mutex_);
    outbox_.clear();
    wanted_.clear();
    pace_.reset();
    pace_changed_ = true;
    problem_ = fmt::format(
        "local programs are no longer given what the sensors read: the thread that sends it ended "
        "({}); restart the service",
        why);
  }
  wake_();
}

std::string ShareServer::take_problem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

void ShareServer::run() {
  while (wait()) {
    distribute();
    if (HostClock::now() >= accept_again_) accept_clients();
    std::vector<ClientId> bad;
    for (auto& [id, client] : clients_) {
      if (!receive(id, client) || !send_unsent(client)) bad.push_back(id);
    }
    for (const ClientId id : bad) drop(id);
  }
}

bool ShareServer::wait() {
  HostTime next = HostTime::max();
  std::vector<pollfd> fds{{wake_fd_, POLLIN, 0}};
  if (HostClock::now() >= accept_again_) {
    fds.push_back({socket_.fd(), POLLIN, 0});
  } else {
    next = accept_again_;
  }
  for (const auto& [id, client] : clients_) {
    if (!client.hello) next = std::min(next, client.since + kSilent);
    const bool has_unsent = !client.unsent.empty();
    fds.push_back({client.fd, static_cast<short>(has_unsent ? POLLIN | POLLOUT : POLLIN), 0});
  }
  ::poll(fds.data(), fds.size(), milliseconds_until(next));
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_fd_, &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return !stop_;
}

void ShareServer::accept_clients() {
  for (;;) {
    const int fd = ::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      add_client(fd);
      continue;
    }
    const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (none_left) accept_again_ = HostClock::now() + kNoDescriptors;
    return;
  }
}

void ShareServer::add_client(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool is_known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  const auto of_user = std::count_if(clients_.begin(), clients_.end(),
                                     [&](const auto& c) { return c.second.uid == peer.uid; });
  if (!is_known || clients_.size() >= kMostClients ||
      static_cast<std::size_t>(of_user) >= kMostClientsOfUser) {
    const auto refusal = packet_of(
        meters::ServiceRefusal{meters::kServiceProtocol, "it serves as many programs as it can"});
    (void)::send(fd, refusal->data(), refusal->size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    ::close(fd);
    return;
  }
  Client& client = clients_[next_client_++];
  client.fd = fd;
  client.uid = peer.uid;
  client.since = HostClock::now();
}

bool ShareServer::receive(ClientId id, Client& client) {
  for (int i = 0; i < kPacketsInTurn; ++i) {
    const ssize_t n = ::recv(client.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      return client.hello || HostClock::now() < client.since + kSilent;
    }
    if (n <= 0 || static_cast<std::size_t>(n) > buffer_.size()) return false;
    const auto message =
        meters::decode_program_message({buffer_.data(), static_cast<std::size_t>(n)});
    if (!message || !take(id, client, *message)) return false;
  }
  return true;
}

bool ShareServer::take(ClientId id, Client& client, const meters::ProgramMessage& message) {
  if (const auto* hello = std::get_if<meters::ServiceHello>(&message)) {
    if (client.hello) return false;
    post(client, packet_of(meters::ServiceWelcome{meters::kServiceProtocol, HostClock::now(),
                                                  options_.fastest}));
    if (hello->protocol != meters::kServiceProtocol) {
      send_unsent(client);
      return false;
    }
    client.hello = *hello;
    greet(client);
    change_pace();
    return true;
  }
  if (!client.hello) return false;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = std::count_if(wanted_.begin(), wanted_.end(),
                                       [id](const auto& wanted) { return wanted.first == id; });
    if (static_cast<std::size_t>(waiting) >= kMostWanted) return false;
    wanted_.emplace_back(id, std::get<meters::ReadRequest>(message).id);
  }
  wake_();
  return true;
}

void ShareServer::greet(Client& client) {
  for (const auto& domain : domains_) post(client, packet_of(domain));
  for (const auto& sensor : sensors_) post(client, packet_of(sensor));
  post(client, packet_of(meters::ServiceReady{}));
}

void ShareServer::distribute() {
  decltype(outbox_) outbox;
  {
    const std::lock_guard lock(mutex_);
    outbox = std::exchange(outbox_, {});
  }
  for (auto& item : outbox) {
    if (const auto* uses = std::get_if<meters::GpuUses>(&item)) {
      distribute(*uses);
    } else if (const auto* done = std::get_if<Done>(&item)) {
      for (const auto& [id, request] : *done) {
        const auto client = clients_.find(id);
        if (client != clients_.end()) post(client->second, packet_of(meters::ReadDone{request}));
      }
    } else {
      for (auto& [id, client] : clients_) {
        if (client.hello) post(client, std::get<Packet>(item));
      }
    }
  }
}

void ShareServer::distribute(const meters::GpuUses& uses) {
  std::map<pid_t, std::optional<uid_t>> users;
  for (const auto& use : uses) users.try_emplace(use.pid, user_of(use.pid, options_.root));
  for (auto& [id, client] : clients_) {
    if (!client.hello || client.hello->process_period == Duration{}) continue;
    const auto seen = uses_seen_by(client.uid, uses, [&users](pid_t pid) { return users.at(pid); });
    for (auto& packet : meters::encode_uses(seen)) {
      post(client, std::make_shared<const std::string>(std::move(packet)));
    }
  }
}

void ShareServer::post(Client& client, Packet packet) {
  client.unsent_bytes += packet->size();
  client.unsent.push_back(std::move(packet));
}

bool ShareServer::send_unsent(Client& client) {
  while (!client.unsent.empty()) {
    const std::string& packet = *client.unsent.front();
    if (::send(client.fd, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      const bool is_full = errno == EAGAIN || errno == EINTR;
      return is_full && client.unsent_bytes <= kMostUnsent;
    }
    client.unsent_bytes -= packet.size();
    client.unsent.pop_front();
  }
  return true;
}

void ShareServer::drop(ClientId id) {
  const auto client = clients_.find(id);
  const bool was_greeted = client->second.hello.has_value();
  ::close(client->second.fd);
  clients_.erase(client);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [id](const auto& wanted) { return wanted.first == id; });
  }
  if (was_greeted) change_pace();
}

void ShareServer::change_pace() {
  std::optional<Pace> pace;
  std::size_t programs = 0;
  for (const auto& [id, client] : clients_) {
    if (!client.hello) continue;
    ++programs;
    const meters::Demand demand = meters::bounded_demand(client.hello->demand, options_.fastest);
    const Duration period = client.hello->process_period;
    const Duration process_period =
        period > Duration{} ? std::max(period, options_.fastest) : Duration{};
    const Duration delivery = meters::delivery_period(demand);
    if (!pace) {
      pace = {demand, process_period, delivery};
      continue;
    }
    pace->demand = meters::joined_demand(pace->demand, demand);
    pace->delivery = std::min(pace->delivery, delivery);
    if (pace->process_period == Duration{}) {
      pace->process_period = process_period;
    } else if (process_period > Duration{}) {
      pace->process_period = std::min(pace->process_period, process_period);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    pace_ = pace;
    pace_changed_ = true;
  }
  programs_ = programs;
  wake_();
}

}  // namespace jouleprof::session
