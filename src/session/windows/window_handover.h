// Hands a program's windows over to the hub that records them: `jouleprof run` around the program.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "meters/shared/hub_protocol.h"
#include "session/hub/window_names.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {

// Once the hub is gone, windows are forgotten.
// Thread safety: all functions from any thread, in the process that made it.
class WindowHandover {
 public:
  // `domains`: what the windows are charged with. Errors: as HubLink::connect's.
  static Result<std::unique_ptr<WindowHandover>> connect(const std::filesystem::path& socket,
                                                         std::vector<model::DomainId> domains);
  WindowHandover(const WindowHandover&) = delete;
  WindowHandover& operator=(const WindowHandover&) = delete;
  ~WindowHandover();

  // Where windows lie so that those of a program that dies are not lost.
  spans::SharedRings& rings() { return rings_; }

  // A window that has ended: sent by the next send(). True: a packet's worth of them waits.
  bool take_in(const spans::WindowInbox::Origin& origin, const spans::WindowRecord& window);
  // New names at once, so that the windows of a program that dies have theirs.
  void send_names(const NameTable& names);
  // All that there is, by `deadline`.
  void send(const NameTable& names, HostTime deadline);
  // The last windows; those that are open stay so.
  void close(const NameTable& names);

 private:
  struct Batch {  // of windows of one thread
    spans::WindowInbox::Origin origin;
    std::vector<spans::WindowRecord> windows;
  };

  WindowHandover() = default;
  bool send_names(const NameTable& names, HostTime deadline);  // false: not all of them
  bool send_windows(HostTime deadline);
  bool send_lost(HostTime deadline);
  bool send_packet(const std::string& packet, HostTime deadline);

  spans::SharedRings rings_;
  std::mutex sending_;  // guards what follows; taken before the other
  int fd_ = -1;         // -1: the hub is gone
  std::uint32_t reported_names_ = 0;

  std::mutex waiting_mutex_;  // guards what follows
  std::deque<Batch> waiting_;
  std::size_t waiting_windows_ = 0;
  std::uint64_t lost_ = 0;
  bool gone_ = false;
};

}  // namespace jouleprof::session
