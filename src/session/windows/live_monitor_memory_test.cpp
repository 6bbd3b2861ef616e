// A monitor whose memory runs out while it computes an energy: it says so, and goes on.
#include "tests/support/sanitizers.h"

// The thread sanitizer has an allocator of its own, which leaves no place for this one.
#ifndef JOULEPROF_THREAD_SANITIZER
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <thread>

#include "session/sampling/sampling_fixture.h"
#include "session/windows/live_monitor.h"

namespace {

thread_local bool has_no_memory = false;

void* allocate(std::size_t size, std::size_t alignment) {
  if (std::exchange(has_no_memory, false)) throw std::bad_alloc();
  size = (size + alignment - 1) / alignment * alignment;
  if (void* made = std::aligned_alloc(alignment, size)) return made;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
// std::stable_sort asks so for its buffer.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::exchange(has_no_memory, false) ? nullptr : std::malloc(size);
}
void operator delete(void* at, const std::nothrow_t&) noexcept { std::free(at); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

spans::WindowRecord window_of(EnergySource& source, std::string_view name) {
  const HostTime begin = HostClock::now();
  std::this_thread::sleep_for(200ms);
  const spans::WindowRecord w{begin.time_since_epoch().count(),
                              HostClock::now().time_since_epoch().count(), source.name(name), 0};
  source.add(w);
  return w;
}

auto energy_of(EnergySource& source, const spans::WindowRecord& w) {
  return source.energy(HostTime{Duration{w.begin}}, HostTime{Duration{w.end}}, 5s);
}

TEST(LiveMonitorMemoryTest, WhatWasLostIsNamedAndWindowsFromThenOnAreMeasured) {
  LiveOptions options;
  options.environment = [](const std::string&) { return std::nullopt; };
  const auto opened =
      LiveMonitor::open(std::move(options), meters_of(std::make_unique<FakeMeter>()));
  ASSERT_TRUE(opened);
  EnergySource& monitor = **opened;
  const auto before = window_of(monitor, "before");
  ASSERT_TRUE(energy_of(monitor, before)->front());

  has_no_memory = true;
  const auto failed = energy_of(monitor, before);
  ASSERT_FALSE(has_no_memory) << "nothing was allocated";
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("memory ran out"));

  const auto after = window_of(monitor, "after");
  const auto energies = energy_of(monitor, after);
  ASSERT_TRUE(energies) << energies.error().message;
  EXPECT_TRUE(energies->front());
  EXPECT_TRUE(monitor.total(after.name, 5s));
  // What a sum would miss is an error for good.
  EXPECT_FALSE(energy_of(monitor, before));
  EXPECT_FALSE(monitor.total(before.name, 5s));
  const auto now = monitor.snapshot();
  ASSERT_TRUE(now);
  EXPECT_FALSE(now->domains.front().energy);
  EXPECT_THAT(now->domains.front().reason, HasSubstr("memory ran out"));
  EXPECT_TRUE(now->domains.front().power);
  EXPECT_THAT(monitor.warnings(), testing::Contains(HasSubstr("memory ran out")));
}

}  // namespace
}  // namespace jouleprof::session

#endif
