#include "spans/scopes/range_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "spans/scopes/scopes_fixture.h"

namespace {
thread_local std::uint64_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* made = std::malloc(size)) return made;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace jouleprof::scopes {
namespace {

TEST(Ranges, NestAndAreNamedOnce) {
  const InScope back;
  this_thread() = {};
  EXPECT_EQ(pop_range(nullptr), -1);
  EXPECT_EQ(push_range(nullptr, "step"), 0);
  const auto step = this_thread().range;
  EXPECT_EQ(push_range(nullptr, "loss"), 1);
  const auto loss = this_thread().range;
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_EQ(this_thread().range, step);
  EXPECT_EQ(push_range(nullptr, "loss"), 1);
  EXPECT_EQ(this_thread().range, loss);
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_EQ(pop_range(nullptr), 0);
  EXPECT_EQ(this_thread().range, model::kNone);
  EXPECT_EQ(pop_range(nullptr), -1);
  EXPECT_EQ(reported().ranges.at(step), (model::Range{"step", model::kNone}));
  EXPECT_EQ(reported().ranges.at(loss), (model::Range{"loss", step}));
}

TEST(Ranges, ADomainPopsItsOwnRange) {
  const InScope back;
  this_thread() = {};
  int domain = 0;
  push_range(nullptr, "outer");
  push_range(&domain, "theirs");
  const auto theirs = this_thread().range;
  EXPECT_EQ(push_range(nullptr, "inner"), 1);
  EXPECT_EQ(pop_range(&domain), 0);
  EXPECT_EQ(reported().path(this_thread().range), "outer/inner");
  EXPECT_EQ(pop_range(&domain), -1);
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_NE(this_thread().range, theirs);
  EXPECT_EQ(pop_range(nullptr), 0);
}

TEST(Ranges, TooDeepOnesAreCounted) {
  const InScope back;
  this_thread() = {};
  for (int i = 0; i != 100; ++i) EXPECT_EQ(push_range(nullptr, "deep"), i);
  for (int i = 99; i >= 0; --i) EXPECT_EQ(pop_range(nullptr), i);
  EXPECT_EQ(this_thread().range, model::kNone);
}

TEST(Ranges, ABackwardPassIsInTheRangeOfTheOnlyThreadThatHasOne) {
  set_finder([](model::Scope& scope) noexcept {
    scope.phase = model::Phase::kBackward;
    return true;
  });
  push_range(nullptr, "training");
  const std::uint32_t training = this_thread().range;
  EXPECT_EQ(lone_range(), training);
  std::uint32_t there = model::kNone;
  std::uint32_t two = 0;
  std::thread([&] {
    there = current();
    push_range(nullptr, "mine");
    two = lone_range();
    pop_range(nullptr);
  }).join();
  EXPECT_EQ(two, model::kNone);
  EXPECT_EQ(reported().scopes.at(there).range, training);
  pop_range(nullptr);
  EXPECT_EQ(lone_range(), model::kNone);
  set_finder(nullptr);
}

// What the calling thread is in as its next launch finds it.
std::string here() {
  const std::uint32_t scope = current();
  return scope == model::kNone ? "" : reported().path(reported().scopes.at(scope).range);
}

TEST(StartedRanges, NestInTheOrderTheyBeganAndEndInAny) {
  const std::uint64_t epoch = start_range("epoch");
  EXPECT_EQ(push_range(nullptr, "step"), 0);
  const std::uint64_t load = start_range("load");
  EXPECT_EQ(here(), "epoch/step/load");
  EXPECT_EQ(push_range(nullptr, "copy"), 1);
  EXPECT_TRUE(end_range(epoch));
  EXPECT_EQ(here(), "step/load/copy");
  EXPECT_TRUE(end_range(load));
  EXPECT_EQ(here(), "step/copy");
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_EQ(here(), "step");
  EXPECT_EQ(pop_range(nullptr), 0);
  EXPECT_EQ(here(), "");
}

TEST(StartedRanges, APopEndsNone) {
  const std::uint64_t started = start_range("started");
  EXPECT_EQ(pop_range(nullptr), -1);
  EXPECT_EQ(push_range(nullptr, "pushed"), 0);
  EXPECT_EQ(pop_range(nullptr), 0);
  EXPECT_EQ(here(), "started");
  EXPECT_TRUE(end_range(started));
}

TEST(StartedRanges, EndOnceAndOnlyIfTheyBegan) {
  const std::uint64_t first = start_range("first");
  EXPECT_TRUE(end_range(first));
  EXPECT_FALSE(end_range(first));
  for (int i = 0; i != 5000; ++i) {  // its place has been another's in the meantime
    const std::uint64_t other = start_range("other");
    EXPECT_FALSE(end_range(first));
    EXPECT_TRUE(end_range(other));
  }
  for (const std::uint64_t never : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    EXPECT_FALSE(end_range(never));
  }
}

TEST(StartedRanges, BelongToTheThreadThatBeganThem) {
  const std::uint64_t request = start_range("request");
  push_range(nullptr, "step");
  std::thread([&] {
    EXPECT_EQ(here(), "");
    EXPECT_TRUE(end_range(request));
    EXPECT_EQ(here(), "");
  }).join();
  EXPECT_EQ(here(), "step");
  pop_range(nullptr);
  // One that a thread left behind can be ended too, and no thread is in it.
  std::uint64_t left = 0;
  std::thread([&] { left = start_range("left"); }).join();
  EXPECT_EQ(here(), "");
  EXPECT_TRUE(end_range(left));
}

TEST(StartedRanges, OverlappingOnesKeepToAFewNames) {
  const std::size_t before = reported().ranges.size();
  std::uint64_t open = start_range("even");
  for (int i = 0; i != 1000; ++i) {
    const std::uint64_t next = start_range(i % 2 == 0 ? "odd" : "even");
    EXPECT_TRUE(end_range(open));
    EXPECT_EQ(here(), i % 2 == 0 ? "odd" : "even");
    open = next;
  }
  EXPECT_TRUE(end_range(open));
  EXPECT_EQ(reported().ranges.size(), before + 4);  // each alone, and each within the other
}

TEST(StartedRanges, TooManyAreNotNamed) {
  std::vector<std::uint64_t> open;
  std::thread([&] {
    for (int i = 0; i != 100; ++i) open.push_back(start_range("deep"));
    EXPECT_EQ(std::count(open.begin(), open.end(), 0), 36);
  }).join();
  for (int threads = 0; threads != 70; ++threads) {
    std::thread([&] {
      for (int i = 0; i != 60; ++i) open.push_back(start_range("one of many"));
    }).join();
  }
  EXPECT_EQ(open.back(), 0U);
  EXPECT_EQ(start_range("no room"), 0U);
  EXPECT_EQ(here(), "");
  for (const std::uint64_t each : open) EXPECT_EQ(end_range(each), each != 0);
  const std::uint64_t again = start_range("room again");
  EXPECT_EQ(here(), "room again");
  EXPECT_TRUE(end_range(again));
}

TEST(StartedRanges, CostNoMemoryOnceKnown) {
  const auto once = [] {
    const std::uint64_t outer = start_range("a name that is too long to be kept within a string");
    push_range(nullptr, "another name that is too long to be kept within a string");
    const std::uint64_t inner = start_range("inner");
    current();
    end_range(outer);
    current();
    pop_range(nullptr);
    current();
    end_range(inner);
    current();
  };
  once();
  const std::uint64_t before = allocations;
  for (int i = 0; i != 100; ++i) once();
  EXPECT_EQ(allocations, before);
}

TEST(StartedRanges, ManyThreadsBeginAndEndEachOthers) {
  std::array<std::atomic<std::uint64_t>, 32> shared{};
  std::atomic<std::uint64_t> ended{0};
  std::vector<std::thread> threads;
  constexpr int kEach = 20'000;
  for (unsigned t = 0; t != 4; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i != kEach; ++i) {
        const std::uint64_t mine = start_range("shared");
        current();
        const std::uint64_t other = shared[(i * 7 + t) % shared.size()].exchange(mine);
        if (end_range(other)) ++ended;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& left : shared) ended += end_range(left) ? 1 : 0;
  EXPECT_EQ(ended, 4U * kEach);
}

TEST(StartedRanges, ABackwardPassIsInNoneThatHasEnded) {
  const std::uint64_t epoch = start_range("epoch");
  EXPECT_EQ(reported().path(lone_range()), "epoch");
  std::thread([&] {
    EXPECT_TRUE(end_range(epoch));
    EXPECT_EQ(lone_range(), model::kNone);
  }).join();
  EXPECT_EQ(here(), "");
  push_range(nullptr, "training");
  std::thread([] { push_range(nullptr, "never popped"); }).join();
  EXPECT_NE(current(), model::kNone);
  pop_range(nullptr);
  push_range(nullptr, "training");
  EXPECT_EQ(reported().path(lone_range()), "training");
  pop_range(nullptr);
}

}  // namespace
}  // namespace jouleprof::scopes
