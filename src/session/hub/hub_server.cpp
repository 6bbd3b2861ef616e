#include "session/hub/hub_server.h"

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
#include "base/process/local_socket.h"
#include "base/process/threads.h"
#include "session/hub/hub_socket.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostClients = 64;  // of a hub that any user may reach
constexpr std::size_t kMostClientsOfUser = 16;
constexpr std::size_t kMostUnsent = std::size_t{4} << 20;  // bytes
constexpr std::size_t kMostWanted = 8;                     // requests of one program
constexpr Duration kSilent = 5s;  // a program may be so before its first message
constexpr Duration kNoDescriptors = 1s;
constexpr Duration kOpenPeriod = 1s;  // between looks at the windows that are open
constexpr int kPacketsInTurn = 64;    // of one client, before the next one's turn
constexpr int kLastTurns = 16;        // more than a socket can hold

template <typename Message>
auto packet_of(Message&& message) {
  return std::make_shared<const std::string>(
      meters::encode(meters::HubMessage(std::forward<Message>(message))));
}

std::vector<model::DomainId> measured(const std::vector<meters::OfferedDomain>& domains) {
  std::vector<model::DomainId> ids;
  for (const auto& [domain, is_measured] : domains) {
    if (is_measured) ids.push_back(domain.id);
  }
  return ids;
}

HostTime newest(const model::Readings& readings) {
  HostTime t{};
  if (!readings.counters.empty()) t = readings.counters.back().after;
  if (!readings.powers.empty()) t = std::max(t, readings.powers.back().at);
  if (!readings.gauges.empty()) t = std::max(t, readings.gauges.back().at);
  return t;
}

constexpr Duration kPoll = 5ms;        // while a program waits for a read
constexpr Duration kLongestRead = 2s;  // of all sensors: a meter may hang

}  // namespace

Result<std::unique_ptr<HubServer>> HubServer::start(HubSocket socket, HubOptions options,
                                                    std::vector<meters::OfferedDomain> domains,
                                                    std::vector<model::Sensor> sensors,
                                                    std::function<void()> wake) {
  Descriptor wake_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_fd) {
    return fail(Errc::kUnavailable, system_error("cannot make an event descriptor", errno).message);
  }
  std::unique_ptr<HubServer> server(new HubServer(std::move(socket), std::move(wake_fd),
                                                  std::move(options), std::move(domains),
                                                  std::move(sensors), std::move(wake)));
  auto* const self = server.get();
  auto thread =
      start_thread([self] { self->run(); }, [self](const char* why) { self->give_up(why); });
  if (!thread) return forward_error(thread);
  server->thread_ = std::move(*thread);
  return server;
}

HubServer::HubServer(HubSocket socket, Descriptor wake_fd, HubOptions options,
                     std::vector<meters::OfferedDomain> domains, std::vector<model::Sensor> sensors,
                     std::function<void()> wake)
    : socket_(std::move(socket)),
      wake_fd_(std::move(wake_fd)),
      options_(std::move(options)),
      domains_(std::move(domains)),
      sensors_(std::move(sensors)),
      wake_(std::move(wake)),
      windows_(measured(domains_)),
      buffer_(meters::kLongestPacket, '\0') {}

HubServer::~HubServer() { stop(); }

void HubServer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_thread();
  if (thread_.joinable()) thread_.join();
}

void HubServer::wake_thread() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd_.get(), &one, sizeof one);
}

std::optional<std::optional<HubServer::Pace>> HubServer::take_pace() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(pace_changed_, false)) return std::nullopt;
  return pace_;
}

HostTime HubServer::next_read() {
  const std::lock_guard lock(mutex_);
  return wanted_.empty() ? HostTime::max() : last_read_ + options_.between_reads;
}

bool HubServer::take_read_request(HostTime now) {
  const std::lock_guard lock(mutex_);
  if (wanted_.empty() || now < last_read_ + options_.between_reads) return false;
  last_read_ = now;
  being_read_.insert(being_read_.end(), wanted_.begin(), wanted_.end());
  wanted_.clear();
  return true;
}

void HubServer::finish_read() {
  {
    const std::lock_guard lock(mutex_);
    outbox_.emplace_back(std::exchange(being_read_, {}));
  }
  wake_thread();
}

void HubServer::append(const Sampled& sampled) {
  const bool is_read = has_programs();
  if (!is_read && options_.history == Duration{}) return;
  {
    const std::lock_guard lock(mutex_);
    if (!sampled.readings.empty()) outbox_.emplace_back(sampled.readings);
    if (is_read && !sampled.gpu_processes.empty()) outbox_.emplace_back(sampled.gpu_processes);
    const HostTime old = newest(sampled.readings) - options_.history;
    while (!is_read && !outbox_.empty()) {
      const auto* readings = std::get_if<model::Readings>(&outbox_.front());
      if (readings != nullptr && newest(*readings) >= old) break;
      outbox_.pop_front();
    }
  }
  if (is_read) wake_thread();
}

std::vector<pid_t> HubServer::take_newcomers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(newcomers_, {});
}

void HubServer::admit(meters::Joined answer) {
  members_.admit(std::move(answer));
  wake_thread();
}

void HubServer::release_leaving() {
  members_.release_leaving();
  wake_thread();
}

// Programs see that their connection has ended, and sample by themselves.
void HubServer::give_up(const char* why) {
  ::shutdown(socket_.fd(), SHUT_RDWR);  // refuses further ones
  for (auto& [id, client] : clients_) {
    client.fd.close();
    members_.remove(id);
    try {
      windows_.remove(id, HostClock::now(), false);
    } catch (const std::exception&) {  // no memory for what its rings hold
    }
  }
  clients_.clear();
  try {
    windows_.look_at_open_windows(HostClock::now());  // of those above, none is any more
  } catch (const std::exception&) {
  }
  programs_ = 0;
  (void)members_.end_admission();
  {
    const std::lock_guard lock(mutex_);
    outbox_.clear();
    wanted_.clear();
    pace_.reset();
    pace_changed_ = true;
    problem_ = fmt::format(
        "local programs are no longer given what the sensors read, and their windows are missing "
        "from here on: the thread that serves them ended ({})",
        why);
  }
  wake_();
}

std::string HubServer::take_problem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

void HubServer::run() {
  for (;;) {
    const bool go_on = wait();
    if (HostClock::now() >= accept_again_) accept_clients();
    distribute();
    // What is left in the sockets of programs that have ended is not lost.
    for (int turn = 0; turn < (go_on || !options_.records ? 1 : kLastTurns); ++turn) receive_all();
    answer_members();
    send_all();
    const HostTime now = HostClock::now();
    if (now >= next_open_look_) {
      windows_.look_at_open_windows(now);
      next_open_look_ = clients_.empty() ? HostTime::max() : now + kOpenPeriod;
    }
    if (!go_on) break;
  }
  while (!clients_.empty()) drop(clients_.begin()->first, false);
  windows_.look_at_open_windows(HostClock::now());  // of no client any more
}

bool HubServer::wait() {
  HostTime next = next_open_look_;
  std::vector<pollfd> fds{{wake_fd_.get(), POLLIN, 0}};
  if (HostClock::now() >= accept_again_) {
    fds.push_back({socket_.fd(), POLLIN, 0});
  } else {
    next = std::min(next, accept_again_);
  }
  for (const auto& [id, client] : clients_) {
    if (!client.hello) next = std::min(next, client.since + kSilent);
    const bool has_unsent = !client.unsent.empty();
    fds.push_back({client.fd.get(), static_cast<short>(has_unsent ? POLLIN | POLLOUT : POLLIN), 0});
  }
  ::poll(fds.data(), fds.size(), milliseconds_until(next));
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_fd_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return !stop_;
}

void HubServer::accept_clients() {
  for (;;) {
    Descriptor fd(::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      add_client(std::move(fd));
      continue;
    }
    const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (none_left) accept_again_ = HostClock::now() + kNoDescriptors;
    if (none_left && options_.records && !std::exchange(has_refused_, true)) {
      windows_.warn(
          "this tool has no file descriptors or memory left for further programs, whose windows "
          "are "
          "missing; `ulimit -n` says how many it may have");
    }
    return;
  }
}

void HubServer::add_client(Descriptor fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool is_known = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (options_.records && (!is_known || peer.uid != ::geteuid() || peer.pid <= 0)) return;
  const auto of_user =
      std::ranges::count_if(clients_, [&](const auto& c) { return c.second.uid == peer.uid; });
  const bool is_full =
      clients_.size() >= kMostClients || static_cast<std::size_t>(of_user) >= kMostClientsOfUser;
  if (!is_known || (is_full && !options_.records)) {
    const auto refusal =
        packet_of(meters::Refused{meters::kHubProtocol, "it serves as many programs as it can"});
    (void)::send(fd.get(), refusal->data(), refusal->size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  Client& client = clients_[next_client_++];
  client.fd = std::move(fd);
  client.uid = peer.uid;
  client.pid = peer.pid;
  client.since = HostClock::now();
}

void HubServer::receive_all() {
  std::vector<ClientId> bad;
  for (auto& [id, client] : clients_) {
    if (!receive(id, client)) bad.push_back(id);
  }
  for (const ClientId id : bad) drop(id);
}

bool HubServer::receive(ClientId id, Client& client) {
  for (int i = 0; i < kPacketsInTurn; ++i) {
    Descriptor descriptor;
    const ssize_t n = receive_with_descriptor(client.fd.get(), buffer_, descriptor);
    // Reported once for a program that ended without reading all; what it sent is still there.
    if (n < 0 && errno == ECONNRESET) continue;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      return client.hello || HostClock::now() < client.since + kSilent;
    }
    bool is_valid = n > 0 && static_cast<std::size_t>(n) <= buffer_.size();
    if (is_valid) {
      auto message = meters::decode_program_message({buffer_.data(), static_cast<std::size_t>(n)});
      is_valid = message && take(id, client, *message, descriptor);
    }
    if (!is_valid) return false;
  }
  return true;
}

bool HubServer::take(ClientId id, Client& client, meters::ProgramMessage& message,
                     Descriptor& descriptor) {
  if (const auto* hello = std::get_if<meters::Hello>(&message)) {
    return greet(id, client, *hello, descriptor);
  }
  if (!client.hello) return false;
  const HostTime now = HostClock::now();
  return std::visit(
      [&](auto&& m) {
        using Message = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<Message, meters::ReadRequest>) {
          {
            const std::lock_guard lock(mutex_);
            const auto waiting = std::ranges::count_if(
                wanted_, [id](const auto& wanted) { return wanted.first == id; });
            if (static_cast<std::size_t>(waiting) >= kMostWanted) return false;
            wanted_.emplace_back(id, m.id);
          }
          wake_();
          return true;
        } else if constexpr (std::is_same_v<Message, meters::Join>) {
          return options_.records && members_.ask(id, client.pid, std::move(m));
        } else if constexpr (std::is_same_v<Message, meters::Leave>) {
          const bool is_member = members_.leave(id);
          if (is_member) wake_();
          return is_member;
        } else if constexpr (std::is_same_v<Message, meters::Hello>) {
          return false;
        } else {
          return options_.records && windows_.take(id, std::move(m), now);
        }
      },
      std::move(message));
}

bool HubServer::greet(ClientId id, Client& client, const meters::Hello& hello,
                      Descriptor& descriptor) {
  if (client.hello) return false;
  post(client,
       packet_of(meters::Welcome{meters::kHubProtocol, HostClock::now(), options_.fastest}));
  if (hello.protocol != meters::kHubProtocol) {
    send_unsent(client);
    return false;
  }
  client.hello = hello;
  for (const auto& domain : domains_) post(client, packet_of(domain));
  for (const auto& sensor : sensors_) post(client, packet_of(sensor));
  post(client, packet_of(meters::Ready{}));
  if (options_.records) {
    windows_.add(id, client.pid, std::move(descriptor));
    next_open_look_ = std::min(next_open_look_, HostClock::now() + kOpenPeriod);
    const std::lock_guard lock(mutex_);
    newcomers_.push_back(client.pid);
  }
  if (hello.readings) {
    for (const auto& past : history_) {
      for (const auto& packet : past.packets) post(client, packet);
    }
    change_pace();
  } else {
    wake_();
  }
  return true;
}

void HubServer::distribute() {
  decltype(outbox_) outbox;
  {
    const std::lock_guard lock(mutex_);
    outbox = std::exchange(outbox_, {});
  }
  for (auto& item : outbox) {
    if (const auto* done = std::get_if<Done>(&item)) {
      for (const auto& [id, request] : *done) {
        const auto client = clients_.find(id);
        if (client != clients_.end()) post(client->second, packet_of(meters::ReadDone{request}));
      }
    } else if (const auto* uses = std::get_if<meters::GpuUses>(&item)) {
      distribute(*uses);
    } else {
      distribute(std::get<model::Readings>(item));
    }
  }
}

void HubServer::distribute(const model::Readings& readings) {
  Past part{newest(readings), {}};
  for (auto& packet : meters::encode_readings(readings)) {
    part.packets.push_back(std::make_shared<const std::string>(std::move(packet)));
  }
  for (auto& [id, client] : clients_) {
    if (!client.wants_readings()) continue;
    for (const auto& packet : part.packets) post(client, packet);
  }
  if (options_.history == Duration{}) return;
  history_.push_back(std::move(part));
  const HostTime old = history_.back().newest - options_.history;
  while (history_.front().newest < old) history_.pop_front();
}

void HubServer::distribute(const meters::GpuUses& uses) {
  std::map<pid_t, std::optional<uid_t>> users;
  for (const auto& use : uses) users.try_emplace(use.pid, user_of(use.pid, options_.root));
  for (auto& [id, client] : clients_) {
    if (!client.wants_readings() || client.hello->process_period == Duration{}) continue;
    const auto seen = uses_seen_by(client.uid, uses, [&users](pid_t pid) { return users.at(pid); });
    for (auto& packet : meters::encode_uses(seen)) {
      post(client, std::make_shared<const std::string>(std::move(packet)));
    }
  }
}

void HubServer::answer_members() {
  bool has_new = false;
  for (auto& answer : members_.take_answers()) {
    const auto client = clients_.find(answer.client);
    if (client == clients_.end()) continue;
    if (answer.message) post(client->second, packet_of(std::move(*answer.message)));
    has_new = has_new || !answer.end;
    if (!answer.end) continue;
    send_unsent(client->second);
    drop(answer.client);
  }
  if (has_new) wake_();
}

void HubServer::post(Client& client, Packet packet) {
  client.unsent_bytes += packet->size();
  client.unsent.push_back(std::move(packet));
}

void HubServer::send_all() {
  std::vector<ClientId> bad;
  for (auto& [id, client] : clients_) {
    if (!send_unsent(client)) bad.push_back(id);
  }
  for (const ClientId id : bad) drop(id);
}

bool HubServer::send_unsent(Client& client) {
  while (!client.unsent.empty()) {
    const std::string& packet = *client.unsent.front();
    if (::send(client.fd.get(), packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EAGAIN || errno == EINTR) return client.unsent_bytes <= kMostUnsent;
      client.unsent.clear();  // it is gone; what it sent before is still to be received
      client.unsent_bytes = 0;
      break;
    }
    client.unsent_bytes -= packet.size();
    client.unsent.pop_front();
  }
  return true;
}

void HubServer::drop(ClientId id, bool has_ended) {
  const auto client = clients_.find(id);
  const bool was_reader = client->second.wants_readings();
  clients_.erase(client);
  windows_.remove(id, HostClock::now(), has_ended);
  const bool was_member = members_.remove(id);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(wanted_, [id](const auto& wanted) { return wanted.first == id; });
  }
  if (was_reader) change_pace();
  if (was_member) wake_();
}

void HubServer::change_pace() {
  std::optional<Pace> pace;
  std::size_t programs = 0;
  for (const auto& [id, client] : clients_) {
    if (!client.wants_readings()) continue;
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

HostTime AskedReads::serve(HubServer& hub, RecordedSampling& sampling) {
  const HostTime now = HostClock::now();
  if (!read_ && hub.take_read_request(now)) {
    read_ = Read{sampling.read_soon(), now + kLongestRead};
  }
  if (!read_) return hub.next_read();
  const bool is_done = sampling.has_read(read_->numbers) || now >= read_->deadline;
  sampling.collect();
  if (!is_done) return now + kPoll;
  read_.reset();
  hub.finish_read();
  return hub.next_read();
}

}  // namespace jouleprof::session
