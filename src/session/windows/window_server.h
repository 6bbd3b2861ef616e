// The tool's end of the windows' protocol: programs that `jouleprof run` started hand in their
// windows and ask for energies, which come from the session's own readings.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "session/sampling/recorder.h"
#include "session/windows/session_socket.h"
#include "session/windows/window_service.h"

namespace jouleprof::session {

// Serves any number of programs in a thread of its own. One that dies, or talks nonsense, is
// dropped. Until the first comes, it costs nothing but the last ten seconds' readings.
// Thread safety: one thread calls everything.
class WindowServer {
 public:
  // `domains`: all of the machine. `wake` is called by the server's thread when is_waiting() or
  // take_read_request() may have become true. Errors: unavailable.
  static Result<std::unique_ptr<WindowServer>> start(std::vector<OfferedDomain> domains,
                                                     std::vector<model::Sensor> sensors,
                                                     std::function<void()> wake);
  WindowServer(const WindowServer&) = delete;
  WindowServer& operator=(const WindowServer&) = delete;
  ~WindowServer();

  // What a program finds the server by, in JOULEPROF_SESSION.
  const std::filesystem::path& path() const { return socket_.path(); }

  void append(const model::Readings& readings);

  // While true, a program waits for new readings: they are wanted every few milliseconds.
  bool is_waiting() const { return waiting_; }
  // True once each time that the sensors should be read now, due or not.
  bool take_read_request() { return read_request_.exchange(false); }

  // Processes that have connected since the last time.
  std::vector<pid_t> take_newcomers();

  // Moves the windows that have come in, and what is to be warned of.
  void take(std::vector<model::Window>& windows, std::vector<std::string>& warnings);

  // The windows that were open when the server last looked, about a second ago.
  std::vector<model::OpenWindow> open_windows();

  // Another `jouleprof run` of the job: it and its descendants are measured.
  struct Member {
    pid_t pid = 0;
    std::vector<model::DomainId> visible;  // to its command
  };
  // Lets members in from now on, those that wait as well. `wake` is called for each, and when one
  // leaves.
  void admit(Joined answer);
  std::vector<Member> take_members();  // since the last time
  // Whether members want to leave. They wait until they are released.
  bool has_leaving() const { return leaving_; }
  void release_leaving();
  // Lets no more programs in, unless there are members: then false, and nothing changes.
  bool end_admission();

  // Takes in what programs have sent, answers all questions as far as that can be done, and ends
  // the connections.
  void stop();

 private:
  using ClientId = WindowService::ClientId;
  struct Client {
    int fd = -1;
    std::deque<std::string> unsent;
    int rings = -1;  // the file of its windows, which outlives it
    pid_t pid = 0;
    enum { kProgram, kAsking, kMember, kLeaving } role = kProgram;
    std::vector<model::DomainId> visible;  // of one that asks
  };

  WindowServer(SessionSocket socket, int wake_fd, std::vector<OfferedDomain> domains,
               std::vector<model::Sensor> sensors, std::function<void()> wake);

  void run();
  void give_up(const char* why);
  bool wait();  // until something is to be done; false: stopped
  void accept_clients();
  void take_in_readings();
  void receive_all(HostTime now);
  bool receive(ClientId id, Client& client, HostTime now);  // false: to be dropped
  void reply();
  bool send_unsent(Client& client);
  void drop(ClientId id, bool has_ended = true);  // false: the server stops before its program
  void take_left(ClientId id, int rings, bool has_ended);  // windows that it did not send
  void hand_over();
  void look_at_open_windows(HostTime now);
  bool has_members() const;
  void serve_members();
  void wake_thread();

  SessionSocket socket_;
  const int wake_fd_;  // an eventfd
  const std::vector<OfferedDomain> domains_;
  const std::vector<model::Sensor> sensors_;
  const std::function<void()> wake_;
  std::atomic<bool> waiting_{false};
  std::atomic<bool> read_request_{false};
  std::atomic<bool> in_use_{false};
  std::atomic<bool> leaving_{false};

  std::mutex mutex_;                      // guards what follows
  std::deque<model::Readings> readings_;  // since the server's thread looked, or the last ones
  std::vector<model::Window> windows_;
  std::vector<pid_t> newcomers_;
  std::vector<std::string> warnings_;
  std::vector<model::OpenWindow> open_;
  bool stop_ = false;
  std::optional<Joined> admitted_;
  std::vector<Member> members_;  // not yet taken
  std::size_t member_count_ = 0;
  bool closed_ = false;
  bool release_ = false;

  // The server's thread's own.
  std::optional<WindowService> service_;  // once a program has connected
  std::map<ClientId, Client> clients_;
  ClientId next_client_ = 1;
  HostTime accept_again_{};
  HostTime next_open_look_ = HostTime::max();
  std::string buffer_;
  std::thread thread_;
};

}  // namespace jouleprof::session
