// How the tool answers programs that it runs: takes their windows, finds their energies.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/recording.h"
#include "session/live/live_engine.h"
#include "session/windows/name_table.h"
#include "session/windows/window_protocol.h"

namespace jouleprof::session {

// Thread safety: none.
class WindowService {
 public:
  using ClientId = std::uint64_t;
  struct Reply {
    ClientId client = 0;
    ToolMessage message;
  };

  // `domains`: all of the machine; answers are about those that are measured.
  WindowService(std::vector<OfferedDomain> domains, std::vector<model::Sensor> sensors);

  // A program of process `pid` has connected, or is gone.
  void add_client(ClientId client, pid_t pid, HostTime now);
  void remove_client(ClientId client);

  // Of a client that was added. False: the message is invalid, and the client is to be dropped. So
  // is one whose reply is a refusal.
  bool take(ClientId client, ProgramMessage message, HostTime now);

  // Windows that a client has begun and will not end, because of what `when` says ("the process
  // ended"). To be warned of.
  void leave_open(ClientId client, const std::vector<spans::OpenWindow>& windows, HostTime now,
                  std::string_view when);

  // The same in the recording's terms; none of a client that is unknown or not welcome.
  std::vector<model::OpenWindow> named(ClientId client,
                                       const std::vector<spans::OpenWindow>& windows,
                                       HostTime now) const;

  // How many windows of one of its rings a client has sent.
  std::uint64_t received(ClientId client, std::uint32_t ring) const;

  void append(const model::Readings& readings);

  // Answers what can be answered now, or has to be. To be called after the functions above, and
  // when `next_look` has come.
  void look(HostTime now);
  // Answers every question with what is known.
  void answer_all();
  HostTime next_look() const { return next_look_; }

  // While true, new readings are wanted every few milliseconds.
  bool is_waiting() const { return waiting_; }
  // True once each time that the sensors should be read now, due or not.
  bool take_read_request() { return std::exchange(read_request_, false); }

  std::vector<Reply> take_replies() { return std::exchange(replies_, {}); }
  // To be recorded.
  std::vector<model::Window> take_windows() { return std::exchange(windows_, {}); }
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

 private:
  struct Client {
    pid_t pid = 0;
    bool welcome = false;
    model::DeviceSet devices;
    struct Name {
      std::string text;
      std::uint32_t number = 0;  // in the ledger: each client's names are its own
    };
    std::unordered_map<std::uint32_t, Name> names;
    std::size_t questions = 0;                        // open ones
    std::map<std::uint32_t, std::uint64_t> received;  // windows, by ring
  };
  struct Question {
    ClientId client = 0;
    std::uint64_t id = 0;
    HostTime begin{};
    HostTime end{};  // what has to be known
    HostTime deadline{};
    std::optional<std::uint32_t> total;  // the number of a name in the ledger
  };

  bool take(ClientId id, Client& client, Hello&& hello);
  bool take(ClientId id, Client& client, Names&& names);
  bool take(ClientId id, Client& client, Devices&& devices);
  bool take(ClientId, Client&, Join&&) { return false; }  // the server's
  bool take(ClientId, Client&, Leave&&) { return false; }
  bool take(ClientId id, Client& client, Lost&& lost);
  bool take(ClientId id, Client& client, Windows&& windows);
  bool take(ClientId id, Client& client, EnergyQuestion&& question);
  bool take(ClientId id, Client& client, TotalQuestion&& question);
  bool take(ClientId id, Client& client, SnapshotQuestion&& question);
  Client::Name* name(Client& client, std::uint32_t number);
  void record(const Client& client, const std::string& name, pid_t thread,
              const spans::WindowRecord& window);
  bool ask(Client& client, Question question);
  void answer(const Question& question);
  Result<FoundEnergies> energies_of(const Question& question);
  FoundEnergies found(std::vector<Result<model::Measurement>> energies) const;

  std::vector<OfferedDomain> offered_;
  std::vector<model::DomainId> measured_;
  LiveEngine live_;
  std::map<ClientId, Client> clients_;
  std::vector<Question> questions_;
  std::uint32_t next_name_ = 0;
  WindowQuota quota_;
  HostTime now_{};  // of the message that is being taken
  HostTime next_look_ = HostTime::max();
  HostTime next_read_request_{};
  HostTime next_tidy_{};
  bool waiting_ = false;
  bool read_request_ = false;
  std::vector<Reply> replies_;
  std::vector<model::Window> windows_;
  std::vector<std::string> warnings_;
};

}  // namespace jouleprof::session
