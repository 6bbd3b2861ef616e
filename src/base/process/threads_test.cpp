#include "base/process/threads.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace jouleprof {
namespace {

template <typename Work>
std::string reason_of_end(Work work) {
  std::string reason;
  auto thread = start_thread(work, [&reason](const char* why) { reason = why; });
  EXPECT_TRUE(thread);
  thread->join();
  return reason;
}

TEST(Threads, WhateverIsThrownEndsTheThreadAloneAndIsNamed) {
  EXPECT_EQ(reason_of_end([] {}), "");
  EXPECT_EQ(reason_of_end([] { throw std::bad_alloc(); }), "memory ran out");
  EXPECT_EQ(reason_of_end([] { throw std::out_of_range("no such row"); }), "no such row");
  EXPECT_EQ(reason_of_end([] { throw 7; }), "an exception of an unknown type");
}

TEST(Threads, SayingSoMayFailToo) {
  auto thread =
      start_thread([] { throw std::bad_alloc(); }, [](const char*) { throw std::bad_alloc(); });
  ASSERT_TRUE(thread);
  thread->join();
}

TEST(Threads, TakesNoSignalsAndLeavesThoseOfItsStarter) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  sigset_t inside;
  sigemptyset(&inside);
  auto thread =
      start_thread([&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); }, [](const char*) {});
  ASSERT_TRUE(thread);
  thread->join();
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&inside, SIGTERM), 1);
  EXPECT_EQ(sigismember(&inside, SIGSEGV), 0);
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

}  // namespace
}  // namespace jouleprof
