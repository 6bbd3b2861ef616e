// The windows that programs hand over to a hub that records.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/process/descriptor.h"
#include "meters/shared/hub_protocol.h"
#include "model/recording.h"
#include "session/hub/window_names.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {

// Thread safety: take() and open_windows() may be called from any thread; the rest from the one of
// the hub.
class HandedWindows {
 public:
  using ClientId = std::uint64_t;

  // `measured`: what windows are charged with where a program says nothing else.
  explicit HandedWindows(std::vector<model::DomainId> measured) : measured_(std::move(measured)) {}
  HandedWindows(const HandedWindows&) = delete;
  HandedWindows& operator=(const HandedWindows&) = delete;

  // Adds a program of process `pid`. `rings`: its rings' descriptor, or none.
  void add(ClientId client, pid_t pid, Descriptor rings);
  // Takes what the program has left in its rings, and names the windows that it did not end.
  // `has_ended`: false where the hub stops before the program. Unknown clients are ignored.
  void remove(ClientId client, HostTime now, bool has_ended);

  // Takes a message of a client that was added. False: the message is invalid, and the client is to
  // be dropped.
  bool take(ClientId client, meters::Names&& names, HostTime now);
  bool take(ClientId client, meters::Devices&& devices, HostTime now);
  bool take(ClientId client, meters::Lost&& lost, HostTime now);
  bool take(ClientId client, meters::Windows&& windows, HostTime now);

  // Looks which windows are open, for the recording, in case that the tool dies.
  void look_at_open_windows(HostTime now);

  void warn(std::string text);
  // Moves the windows that have come in, and what is to be warned of.
  void take(std::vector<model::Window>& windows, std::vector<std::string>& warnings);
  // The windows that were open at the last look.
  std::vector<model::OpenWindow> open_windows() const;

 private:
  struct Client {
    pid_t pid = 0;
    Descriptor rings;
    model::DeviceSet devices;
    std::unordered_map<std::uint32_t, std::string> names;
    std::map<std::uint32_t, std::uint64_t> received;  // windows, by ring
  };
  const std::string* name(Client& client, std::uint32_t number);
  void record(Client& client, pid_t thread, const spans::WindowRecord& window, HostTime now);
  static std::vector<model::OpenWindow> named(const Client& client,
                                              const std::vector<spans::OpenWindow>& windows,
                                              HostTime now);

  const std::vector<model::DomainId> measured_;
  std::map<ClientId, Client> clients_;
  WindowQuota quota_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<model::Window> windows_;
  std::vector<std::string> warnings_;
  std::vector<model::OpenWindow> open_;
};

}  // namespace jouleprof::session
