// Sends what a service reads of its sensors to local programs, which then need no sampler of their
// own: the service's end of meters/shared/service_protocol.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "meters/shared/service_protocol.h"
#include "session/machine/share_access.h"
#include "session/sampling/sampler.h"

namespace jouleprof::session {

struct ShareOptions {
  ShareAccess access;
  Duration fastest = std::chrono::milliseconds{10};  // no period that a program asks for is shorter
  std::filesystem::path root = "/";                  // where proc is
};

// Serves any number of programs in a thread of its own. One that talks nonsense, or does not take
// what it is sent, is dropped. Of processes on GPUs a program gets those of its own user, and those
// of all others added up to one; root gets all. Without a program it costs nothing.
// Thread safety: one thread calls everything.
class ShareServer {
 public:
  // `wake` is called by the server's thread when next() may have become earlier. Errors: as
  // ShareSocket's.
  static Result<std::unique_ptr<ShareServer>> start(ShareOptions options,
                                                    std::vector<model::Domain> domains,
                                                    std::vector<model::Sensor> sensors,
                                                    std::function<void()> wake);
  ShareServer(const ShareServer&) = delete;
  ShareServer& operator=(const ShareServer&) = delete;
  ~ShareServer();

  bool has_programs() const { return programs_ > 0; }

  // What all programs need together; absent where there is none. Only when that has changed.
  struct Pace {
    meters::Demand demand;
    Duration process_period{};
    Duration delivery{};
  };
  std::optional<std::optional<Pace>> take_pace();

  // True: programs want all sensors read now. Then, once all that was read has been appended, call
  // finish_read().
  bool take_read_request(HostTime now);
  // When take_read_request() can be true at the earliest; far away where no program asks.
  HostTime next_read();
  void finish_read();

  void append(const Sampled& sampled);

  // Why it serves no program any more, once; empty: nothing happened.
  std::string take_problem();

 private:
  using ClientId = std::uint64_t;
  using Packet = std::shared_ptr<const std::string>;
  using Done = std::vector<std::pair<ClientId, std::uint64_t>>;
  struct Client {
    int fd = -1;
    uid_t uid = 0;
    HostTime since{};
    std::optional<meters::ServiceHello> hello;
    std::deque<Packet> unsent;
    std::size_t unsent_bytes = 0;
  };

  ShareServer(ShareOptions options, ShareSocket socket, int wake_fd,
              std::vector<model::Domain> domains, std::vector<model::Sensor> sensors,
              std::function<void()> wake);

  void run();
  void give_up(const char* why);
  bool wait();  // false: stopped
  void accept_clients();
  void add_client(int fd);
  bool receive(ClientId id, Client& client);  // false: to be dropped
  bool take(ClientId id, Client& client, const meters::ProgramMessage& message);
  void greet(Client& client);
  void distribute();
  void distribute(const meters::GpuUses& uses);
  bool send_unsent(Client& client);  // false: to be dropped
  void post(Client& client, Packet packet);
  void drop(ClientId id);
  void change_pace();
  void wake_thread();

  const ShareOptions options_;
  const ShareSocket socket_;
  const int wake_fd_;  // an eventfd
  const std::vector<model::Domain> domains_;
  const std::vector<model::Sensor> sensors_;
  const std::function<void()> wake_;
  std::atomic<std::size_t> programs_{0};  // that were greeted

  std::mutex mutex_;  // guards what follows
  std::deque<std::variant<Packet, meters::GpuUses, Done>> outbox_;
  Done wanted_;  // requests to read
  Done being_read_;
  std::optional<Pace> pace_;
  bool pace_changed_ = false;
  bool stop_ = false;
  std::string problem_;

  HostTime last_read_{};  // the caller's own

  // The server's thread's own.
  std::map<ClientId, Client> clients_;
  ClientId next_client_ = 1;
  HostTime accept_again_{};
  std::string buffer_;
  std::thread thread_;
};

}  // namespace jouleprof::session
