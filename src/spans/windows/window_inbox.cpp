#include "spans/windows/window_inbox.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace jouleprof::spans {
namespace {

std::atomic<std::uint64_t> next_inbox{1};

}  // namespace

struct WindowInbox::ThreadRings {
  struct Mine {
    std::uint64_t inbox = 0;
    std::shared_ptr<ThreadRing> ring;
  };

  ThreadRings() = default;
  ThreadRings(const ThreadRings&) = delete;
  ThreadRings& operator=(const ThreadRings&) = delete;
  ~ThreadRings() {
    for (const auto& mine : all) mine.ring->left = true;
  }

  std::uint64_t last_inbox = 0;
  ThreadRing* last = nullptr;
  std::vector<Mine> all;
};

thread_local WindowInbox::ThreadRings WindowInbox::thread_rings_;

WindowInbox::WindowInbox(Consumer consumer)
    : id_(next_inbox++), pid_(getpid()), consumer_(std::move(consumer)) {}

WindowInbox::~WindowInbox() {
  for (const auto& ring : rings_) ring->closed = true;
}

bool WindowInbox::in_other_process() const noexcept { return getpid() != pid_; }

WindowInbox::ThreadRing* WindowInbox::find_ring() noexcept {
  ThreadRings& mine = thread_rings_;
  if (mine.last_inbox == id_) return mine.last;
  auto found = std::find_if(mine.all.begin(), mine.all.end(),
                            [this](const auto& m) { return m.inbox == id_; });
  if (found == mine.all.end()) {
    // The lock may have been held when this process was forked off.
    if (in_other_process()) return nullptr;
    mine.last_inbox = 0;
    std::erase_if(mine.all, [](const auto& m) { return m.ring->closed.load(); });
    auto ring = std::make_shared<ThreadRing>();
    ring->thread = static_cast<pid_t>(syscall(SYS_gettid));
    const std::lock_guard lock(mutex_);
    rings_.push_back(ring);
    mine.all.push_back({id_, std::move(ring)});
    found = std::prev(mine.all.end());
  }
  mine.last_inbox = id_;
  mine.last = found->ring.get();
  return mine.last;
}

void WindowInbox::push(const WindowRecord& record) noexcept {
  ThreadRing* const ring = find_ring();
  if (ring == nullptr || ring->ring.push(record)) return;
  if (in_other_process()) return;
  const std::lock_guard lock(mutex_);
  drain(*ring);
  ring->ring.push(record);
}

void WindowInbox::drain(ThreadRing& ring) {
  ring.ring.drain([&](const WindowRecord& record) { consumer_(ring.thread, record); });
}

void WindowInbox::drain() {
  if (in_other_process()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& ring : rings_) {
    // Asked first: what was pushed before its thread left is then seen.
    const bool left = ring->left;
    drain(*ring);
    if (left) ring->closed = true;
  }
  std::erase_if(rings_, [](const auto& ring) { return ring->closed.load(); });
}

}  // namespace jouleprof::spans
