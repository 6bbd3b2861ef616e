// Reading a folder that may lie on a file system that hangs.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/process/threads.h"
#include "base/result.h"

namespace jouleprof::session {

// Calls `read` on a thread of its own, so that its caller never waits for longer than it wants to.
// A thread that hangs in the end is left behind. Thread safety: one thread calls everything.
template <typename Found>
class FolderReader {
 public:
  using Read = std::function<Result<Found>()>;

  // `what` is read, for messages. An empty `read`: there is nothing to read.
  FolderReader(std::string what, Read read) : shared_(std::make_shared<Shared>()) {
    shared_->what = std::move(what);
    shared_->read = std::move(read);
  }
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;
  ~FolderReader() {
    if (!thread_.joinable()) return;
    std::unique_lock lock(shared_->mutex);
    shared_->stop = true;
    shared_->changed.notify_all();
    const bool hangs = shared_->began.has_value();
    lock.unlock();
    hangs ? thread_.detach() : thread_.join();
  }

  bool has_folder() const { return shared_->read != nullptr; }

  // What is there now. Errors: those of `read`; timeout, where that has not returned within
  // `patience`, nor, in later calls, since.
  Result<Found> now(Duration patience) {
    if (auto started = start(); !started) return forward_error(started);
    std::unique_lock lock(shared_->mutex);
    if (!shared_->began) {
      shared_->found.reset();
      shared_->began = HostClock::now();
      shared_->changed.notify_all();
    }
    const HostTime began = *shared_->began;
    const HostTime end = std::max(began, HostClock::now() - patience) + patience;
    shared_->changed.wait_until(lock, steady(end), [this] { return !shared_->began.has_value(); });
    if (shared_->began) {
      return fail(Errc::kTimeout, shared_->what +
                                      " has not answered for some time: the file system "
                                      "that it is on hangs");
    }
    if (!shared_->found) return fail(Errc::kUnavailable, shared_->what + " was not read");
    return *shared_->found;
  }

 private:
  struct Shared {
    std::string what;
    Read read;
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    bool stop = false;
    bool has_ended = false;
    std::optional<HostTime> began;  // of the call that is under way
    std::optional<Result<Found>> found;
  };

  // Again where an exception has ended the thread.
  Result<void> start() {
    if (thread_.joinable()) {
      std::unique_lock lock(shared_->mutex);
      if (!std::exchange(shared_->has_ended, false)) return {};
      lock.unlock();
      thread_.join();
    }
    auto thread = start_thread([shared = shared_] { work(*shared); },
                               [shared = shared_](const char* why) {
                                 const std::lock_guard lock(shared->mutex);
                                 shared->has_ended = true;
                                 shared->began.reset();
                                 shared->changed.notify_all();
                                 shared->found = fail(Errc::kUnavailable, why);
                               });
    if (!thread) return forward_error(thread);
    thread_ = std::move(*thread);
    return {};
  }

  static void work(Shared& shared) {
    std::unique_lock lock(shared.mutex);
    for (;;) {
      shared.changed.wait(lock, [&shared] { return shared.stop || shared.began.has_value(); });
      if (shared.stop) return;
      lock.unlock();
      Result<Found> found = shared.read();
      lock.lock();
      shared.found = std::move(found);
      shared.began.reset();
      shared.changed.notify_all();
    }
  }

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace jouleprof::session
