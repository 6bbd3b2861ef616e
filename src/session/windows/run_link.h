// The connection of a program to the tool that runs it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "session/windows/name_table.h"
#include "session/windows/window_protocol.h"
#include "spans/windows/window_inbox.h"

namespace jouleprof::session {

// Thread safety: all functions from any thread, in the process that made it.
class RunLink {
 public:
  // `fd`: connected, and greeted with the descriptor of `rings`; closed in the end.
  RunLink(int fd, std::unique_ptr<spans::SharedRings> rings);
  RunLink(const RunLink&) = delete;
  RunLink& operator=(const RunLink&) = delete;
  ~RunLink();  // sends what there is

  // A new name is sent at once, so that the windows of a program that dies have theirs.
  std::uint32_t name(std::string_view text);
  void begin(const spans::OpenWindow& window) noexcept { inbox_.begin(window); }
  void forget(const spans::OpenWindow& window) noexcept { inbox_.forget(window); }
  void add(const spans::WindowRecord& window) noexcept;

  // Sends what there is, then the question, which gets an id and a deadline. Errors: those of the
  // answer; unavailable, when the tool is gone; timeout, when it does not answer in time.
  template <typename Question>
  Result<FoundEnergies> ask(Question question, Duration timeout) {
    question.id = next_question_++;
    question.deadline = HostClock::now() + timeout;
    return ask(question.id, encode(question), question.deadline);
  }

  int fd() const { return fd_.number; }

 private:
  struct Descriptor {
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    explicit Descriptor(int fd) : number(fd) {}
    ~Descriptor();
    const int number;
  };
  struct Batch {  // of windows of one thread
    spans::WindowInbox::Origin origin;
    std::vector<spans::WindowRecord> windows;
  };

  Result<FoundEnergies> ask(std::uint64_t id, const std::string& question, HostTime deadline);
  void work();
  void take_in(const spans::WindowInbox::Origin& origin, const spans::WindowRecord& window);
  bool send_waiting(HostTime deadline);  // false: not all of it
  bool send_names(HostTime deadline);
  bool send_lost(HostTime deadline);
  bool send(const std::string& packet, HostTime deadline);
  void receive();
  void lose(const char* why);

  const Descriptor fd_;
  std::atomic<bool> gone_{false};
  std::atomic<std::uint64_t> next_question_{1};

  std::mutex sending_;  // guards what follows; taken before the others
  std::uint32_t reported_names_ = 0;

  NameTable names_;

  std::mutex waiting_mutex_;  // guards the next three
  std::deque<Batch> waiting_;
  std::size_t waiting_windows_ = 0;
  std::uint64_t lost_ = 0;

  std::mutex answers_mutex_;  // guards what follows
  std::condition_variable answered_;
  std::map<std::uint64_t, std::optional<Result<FoundEnergies>>> answers_;  // those awaited
  bool stop_ = false;
  std::string lost_because_;  // once it is gone

  const std::unique_ptr<spans::SharedRings> rings_;
  spans::WindowInbox inbox_;
  const Descriptor wake_fd_;  // an eventfd
  std::thread thread_;
};

}  // namespace jouleprof::session
