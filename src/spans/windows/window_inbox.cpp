#include "spans/windows/window_inbox.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

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

constexpr std::size_t kPage = 4096;
constexpr std::size_t pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
constexpr std::size_t kStride = pages(sizeof(RingSlot));
constexpr std::size_t kFirst = pages(sizeof(OpenWindows));  // the windows that are open come first

off_t place_of(std::uint32_t number) { return static_cast<off_t>(kFirst + number * kStride); }

// Not by mapping: the process may cut its file at any time.
bool read_slot(int fd, std::uint32_t number, RingSlot& out) {
  const ssize_t n = ::pread(fd, static_cast<void*>(&out), sizeof out, place_of(number));
  return n == static_cast<ssize_t>(sizeof out);
}

constexpr std::uint32_t kBetweenThreads = 16;
constexpr std::uint32_t kTries = 128;

// Where the windows of this thread are, as a rule: no two threads write to one cache line.
std::size_t place_of_thread() noexcept {
  static std::atomic<std::uint32_t> next{0};
  static thread_local const std::uint32_t mine =
      next.fetch_add(kBetweenThreads, std::memory_order_relaxed);
  return mine % OpenWindows::kMost;
}

// Outlives what is destroyed with its thread.
constinit thread_local bool has_no_rings_left = false;

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
    has_no_rings_left = true;
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
  const auto found = std::ranges::find(mine.all, id_, &ThreadRings::Mine::inbox);
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
  if (has_no_rings_left) {  // the window of an object that is destroyed later, such as a static one
    drain();                // those that ended before come first
    if (in_other_process()) return;
    const std::lock_guard lock(mutex_);
    return consumer_({.thread = static_cast<pid_t>(syscall(SYS_gettid)), .ring = {}}, record);
  }
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

SharedRings::SharedRings() : file_(::memfd_create(kName, MFD_CLOEXEC)) {
  if (fd() < 0 || ::ftruncate(fd(), place_of(0)) != 0) return;
  void* const at = ::mmap(nullptr, kFirst, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), 0);
  if (at != MAP_FAILED) open_ = ::new (at) OpenWindows;
}

SharedRings::~SharedRings() {
  if (open_ != nullptr) ::munmap(static_cast<void*>(open_), kFirst);
}

SharedRings::Made SharedRings::make(pid_t thread) noexcept {
  const int fd = file_.get();
  if (fd < 0 || made_ == kMost) return {};
  if (::ftruncate(fd, place_of(made_ + 1)) != 0) return {};
  void* const at =
      ::mmap(nullptr, kStride, PROT_READ | PROT_WRITE, MAP_SHARED, fd, place_of(made_));
  if (at == MAP_FAILED) return {};
  try {
    // Default-initialised: pages of records stay untouched until they are used.
    std::shared_ptr<RingSlot> slot(::new (at) RingSlot,
                                   [](RingSlot* s) { ::munmap(static_cast<void*>(s), kStride); });
    slot->thread = thread;
    return {std::move(slot), made_++};
  } catch (...) {  // no memory; the shared pointer has called its deleter
    return {};
  }
}

std::uint64_t read_left(int fd, const std::function<std::uint64_t(std::uint32_t)>& received,
                        const std::function<void(pid_t, const WindowRecord&)>& take) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return 0;
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (size < kFirst) return 0;
  const auto slots = std::min<std::uint64_t>((size - kFirst) / kStride, SharedRings::kMost);
  std::uint64_t overwritten = 0;
  const auto image = std::make_unique<RingSlot>();
  const auto again = std::make_unique<RingSlot>();
  for (std::uint32_t number = 0; number < slots; ++number) {
    if (!read_slot(fd, number, *image) || !read_slot(fd, number, *again)) break;
    const std::uint64_t pushed = image->ring.pushed();
    const std::uint64_t first = received(number);
    if (pushed <= first) continue;
    // A running process may have written over what was being read.
    const std::uint64_t newest = std::max<std::uint64_t>(again->ring.pushed(), pushed);
    const std::uint64_t oldest =
        newest > WindowRing::kCapacity ? newest - WindowRing::kCapacity : 0;
    overwritten += std::min(std::max(oldest, first), pushed) - first;
    for (std::uint64_t i = std::max(oldest, first); i < pushed; ++i) {
      take(static_cast<pid_t>(image->thread), image->ring.at(i));
    }
  }
  return overwritten;
}

LeftOpen read_left_open(int fd) {
  const auto image = std::make_unique<OpenWindows>();
  const ssize_t n = ::pread(fd, static_cast<void*>(image.get()), sizeof *image, 0);
  if (n != static_cast<ssize_t>(sizeof *image)) return {};
  return {image->all(), image->closed()};
}

void OpenWindows::add(const OpenWindow& window) noexcept {
  const std::size_t place = place_of_thread();
  for (std::uint32_t i = 0; i < kTries; ++i) {
    Entry& entry = entries_[(place + i) % kMost];
    std::int64_t is_free = 0;
    if (entry.begin.load(std::memory_order_relaxed) != 0 ||
        !entry.begin.compare_exchange_strong(is_free, -1, std::memory_order_acquire)) {
      continue;
    }
    entry.name.store(window.name, std::memory_order_relaxed);
    entry.begin.store(window.begin, std::memory_order_release);
    return;
  }
}

bool OpenWindows::take_out(Entry& entry, const OpenWindow& window) noexcept {
  std::int64_t begin = window.begin;
  return entry.begin.load(std::memory_order_acquire) == begin &&
         entry.name.load(std::memory_order_relaxed) == window.name &&
         entry.begin.compare_exchange_strong(begin, 0, std::memory_order_release);
}

void OpenWindows::remove(const OpenWindow& window) noexcept {
  const std::size_t place = place_of_thread();
  // Another thread may have begun it: then it is anywhere.
  for (std::size_t i = 0; i < kMost; ++i) {
    if (take_out(entries_[(place + i) % kMost], window)) return;
  }
}

std::vector<OpenWindow> OpenWindows::all() const {
  std::vector<OpenWindow> found;
  for (const Entry& entry : entries_) {
    const std::int64_t begin = entry.begin.load(std::memory_order_acquire);
    if (begin > 0) found.push_back({begin, entry.name.load(std::memory_order_relaxed)});
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return found;
}

}  // namespace jouleprof::spans
