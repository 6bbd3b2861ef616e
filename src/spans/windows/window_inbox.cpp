#include "spans/windows/window_inbox.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace jouleprof::spans {
namespace {

std::atomic<std::uint64_t> next_inbox{1};

// Rings are shared with forked children, which must not write there: how often this process and its
// ancestors were forked off since the first inbox. getpid() for each window would cost a system
// call.
std::atomic<std::uint64_t> forks{0};

void count_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

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

WindowInbox::WindowInbox(Consumer consumer, SharedRings* shared, OpenWindows* open)
    : id_(next_inbox++),
      pid_(getpid()),
      consumer_(std::move(consumer)),
      shared_(shared),
      open_(open) {
  count_forks();
  forks_ = forks.load(std::memory_order_relaxed);
}

WindowInbox::~WindowInbox() {
  for (const auto& ring : rings_) ring->closed = true;
}

bool WindowInbox::in_other_process() const noexcept { return getpid() != pid_; }

WindowInbox::ThreadRing* WindowInbox::find_ring() {
  ThreadRings& mine = thread_rings_;
  if (mine.last_inbox == id_) return mine.last;
  const auto found = std::find_if(mine.all.begin(), mine.all.end(),
                                  [this](const auto& m) { return m.inbox == id_; });
  ThreadRing* const ring = found != mine.all.end() ? found->ring.get() : make_ring();
  if (ring != nullptr) {
    mine.last_inbox = id_;
    mine.last = ring;
  }
  return ring;
}

// All or nothing. A null pointer in a forked child.
WindowInbox::ThreadRing* WindowInbox::make_ring() {
  // The lock may have been held when this process was forked off.
  if (in_other_process()) return nullptr;
  ThreadRings& mine = thread_rings_;
  mine.last_inbox = 0;
  std::erase_if(mine.all, [](const auto& m) { return m.ring->closed.load(); });
  auto ring = std::make_shared<ThreadRing>();
  ring->origin.thread = static_cast<pid_t>(syscall(SYS_gettid));
  mine.all.reserve(mine.all.size() + 1);
  const std::lock_guard lock(mutex_);
  if (shared_ != nullptr) {
    auto made = shared_->make(ring->origin.thread);
    ring->slot = std::move(made.slot);
    if (ring->slot) ring->origin.ring = made.number;
  }
  if (!ring->slot) ring->slot = std::make_shared<RingSlot>();
  rings_.push_back(ring);
  mine.all.push_back({id_, std::move(ring)});
  return mine.all.back().ring.get();
}

void WindowInbox::begin(const OpenWindow& window) noexcept {
  if (open_ == nullptr || forks.load(std::memory_order_relaxed) != forks_) return;
  open_->add(window);
}

void WindowInbox::forget(const OpenWindow& window) noexcept {
  if (open_ == nullptr || forks.load(std::memory_order_relaxed) != forks_) return;
  open_->remove(window);
}

void WindowInbox::push(const WindowRecord& record) noexcept {
  try {
    push_throwing(record);
  } catch (...) {  // no memory
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

void WindowInbox::push_throwing(const WindowRecord& record) {
  if (forks.load(std::memory_order_relaxed) != forks_) return;
  ThreadRing* const ring = find_ring();
  if (ring == nullptr || ring->slot->ring.push(record)) return;
  if (in_other_process()) return;
  const std::lock_guard lock(mutex_);
  drain(*ring);
  ring->slot->ring.push(record);
}

void WindowInbox::drain(ThreadRing& ring) {
  ring.slot->ring.drain([&](const WindowRecord& record) { consumer_(ring.origin, record); });
}

void WindowInbox::drain() {
  if (in_other_process()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& ring : rings_) {
    // Loaded before draining, so that the last windows of a thread that left are drained.
    const bool left = ring->left;
    drain(*ring);
    if (left) ring->closed = true;
  }
  std::erase_if(rings_, [](const auto& ring) { return ring->closed.load(); });
}

}  // namespace jouleprof::spans
