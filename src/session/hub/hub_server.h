// Sends what is read of the sensors to local programs, which then need no sampler of their own, and
// takes their windows where it records: the hub's end of meters/shared/hub_protocol.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
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

#include "base/process/descriptor.h"
#include "meters/shared/hub_protocol.h"
#include "session/hub/handed_windows.h"
#include "session/hub/hub_socket.h"
#include "session/hub/job_members.h"
#include "session/sampling/recorded_sampling.h"

namespace jouleprof::session {

struct HubOptions {
  Duration fastest = std::chrono::milliseconds{10};  // no period that a program asks for is shorter
  Duration between_reads = fastest;                  // that programs ask for
  std::filesystem::path root = "/";                  // where proc is
  // How much of the latest readings is sent to a program that comes.
  Duration history{};
  // Takes windows and members of a job, of this user's programs alone and of any number of them.
  bool records = false;
};

// Serves programs in a thread of its own. One that talks nonsense, or does not take what it is
// sent, is dropped. Of processes on GPUs a program gets those of its own user, and those of all
// others added up to one; root gets all. Without a program it costs nothing but the history. Thread
// safety: one thread calls everything.
class HubServer {
 public:
  // `domains`: all of the machine. `wake` is called by the server's thread when there is something
  // to do for the caller. Errors: unavailable.
  static Result<std::unique_ptr<HubServer>> start(HubSocket socket, HubOptions options,
                                                  std::vector<meters::OfferedDomain> domains,
                                                  std::vector<model::Sensor> sensors,
                                                  std::function<void()> wake);
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;
  ~HubServer();

  const std::filesystem::path& path() const { return socket_.path(); }
  bool has_programs() const { return programs_ > 0; }  // that want readings

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

  // Processes that have connected since the last time.
  std::vector<pid_t> take_newcomers();
  HandedWindows& windows() { return windows_; }
  JobMembers& members() { return members_; }
  void admit(meters::Joined answer);  // members.admit() and release_leaving(), at once
  void release_leaving();

  // Why it serves no program any more, once; empty: nothing happened.
  std::string take_problem();

  // Takes in what programs have sent, and ends the connections.
  void stop();

 private:
  using ClientId = std::uint64_t;
  using Packet = std::shared_ptr<const std::string>;
  using Done = std::vector<std::pair<ClientId, std::uint64_t>>;
  struct Client {
    Descriptor fd;
    uid_t uid = 0;
    pid_t pid = 0;
    HostTime since{};
    std::optional<meters::Hello> hello;
    std::deque<Packet> unsent;
    std::size_t unsent_bytes = 0;

    bool wants_readings() const { return hello && hello->readings; }
  };
  struct Past {
    HostTime newest{};
    std::vector<Packet> packets;
  };

  HubServer(HubSocket socket, Descriptor wake_fd, HubOptions options,
            std::vector<meters::OfferedDomain> domains, std::vector<model::Sensor> sensors,
            std::function<void()> wake);

  void run();
  void give_up(const char* why);
  bool wait();  // false: stopped
  void accept_clients();
  void add_client(Descriptor fd);
  void receive_all();
  bool receive(ClientId id, Client& client);  // false: to be dropped
  bool take(ClientId id, Client& client, meters::ProgramMessage& message, Descriptor& descriptor);
  bool greet(ClientId id, Client& client, const meters::Hello& hello, Descriptor& descriptor);
  void distribute();
  void distribute(const model::Readings& readings);
  void distribute(const meters::GpuUses& uses);
  void answer_members();
  void send_all();
  bool send_unsent(Client& client);  // false: to be dropped
  void post(Client& client, Packet packet);
  void drop(ClientId id, bool has_ended = true);
  void change_pace();
  void wake_thread();

  const HubSocket socket_;
  const Descriptor wake_fd_;  // an eventfd
  const HubOptions options_;
  const std::vector<meters::OfferedDomain> domains_;
  const std::vector<model::Sensor> sensors_;
  const std::function<void()> wake_;
  std::atomic<std::size_t> programs_{0};
  HandedWindows windows_;
  JobMembers members_;

  std::mutex mutex_;  // guards what follows
  std::deque<std::variant<model::Readings, meters::GpuUses, Done>> outbox_;
  Done wanted_;  // requests to read
  Done being_read_;
  std::optional<Pace> pace_;
  bool pace_changed_ = false;
  std::vector<pid_t> newcomers_;
  bool stop_ = false;
  std::string problem_;

  HostTime last_read_{};  // the caller's own

  // The server's thread's own.
  std::map<ClientId, Client> clients_;
  std::deque<Past> history_;
  ClientId next_client_ = 1;
  HostTime accept_again_{};
  bool has_refused_ = false;  // for lack of descriptors
  HostTime next_open_look_ = HostTime::max();
  std::string buffer_;
  std::thread thread_;
};

// Reads of all sensors that programs ask for.
class AskedReads {
 public:
  // Has the sensors read when programs ask, and collects what was read. Returns when to call it
  // next, unless the hub wakes its owner before.
  HostTime serve(HubServer& hub, RecordedSampling& sampling);

 private:
  struct Read {
    std::vector<std::uint64_t> numbers;
    HostTime deadline{};
  };
  std::optional<Read> read_;
};

}  // namespace jouleprof::session
