// What an inbox allocates, and what it does where there is no memory.
#include "tests/support/sanitizers.h"

// The thread sanitizer has an allocator of its own, which leaves no place for this one.
#ifndef JOULEPROF_THREAD_SANITIZER
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "spans/windows/window_inbox.h"

namespace {

thread_local bool no_memory = false;
thread_local int allocations = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  if (no_memory) throw std::bad_alloc();
  size = (size + alignment - 1) / alignment * alignment;
  if (void* made = std::aligned_alloc(alignment, size)) return made;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }

namespace jouleprof::spans {
namespace {

TEST(WindowInboxMemory, NothingIsAllocatedAfterTheFirstWindow) {
  WindowInbox inbox([](const auto&, const WindowRecord&) {});
  inbox.push({});
  allocations = 0;
  for (std::size_t i = 1; i < WindowRing::kCapacity; ++i) inbox.push({});
  EXPECT_EQ(allocations, 0);
}

TEST(WindowInboxMemory, AFirstWindowWithoutMemoryIsCountedAsLost) {
  int count = 0;
  WindowInbox inbox([&](const auto&, const WindowRecord&) { ++count; });
  std::thread([&] {
    no_memory = true;
    inbox.push({});
    no_memory = false;
    inbox.push({});
  }).join();
  inbox.drain();
  EXPECT_EQ(inbox.lost(), 1U);
  EXPECT_EQ(count, 1);
}

// The windows in the ring stay for a later drain; only the new one has no room.
TEST(WindowInboxMemory, AConsumerWithoutMemoryLosesTheNewWindowOnly) {
  std::size_t count = 0;
  bool full = true;
  WindowInbox inbox([&](const auto&, const WindowRecord&) {
    if (full && count == 10) throw std::bad_alloc();
    ++count;
  });
  for (std::size_t i = 0; i < WindowRing::kCapacity; ++i) inbox.push({});
  inbox.push({});
  EXPECT_EQ(inbox.lost(), 1U);
  full = false;
  inbox.drain();
  EXPECT_EQ(count, WindowRing::kCapacity);
}

}  // namespace
}  // namespace jouleprof::spans

#endif
