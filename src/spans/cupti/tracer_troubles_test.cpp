// What the tracer does when CUPTI, another tool or the program is in its way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "spans/cupti/cupti_api.h"
#include "spans/cupti/tracer_fixture.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;
using Sum = MemorySink::Sum;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TracerTest, RecordsWithoutTimesAreDropped) {
  start();
  auto k = kernel("k", 0, 10, 1);
  k.start = k.end = 0;
  add(k);
  k = kernel("k", 0, 10, 1);
  std::swap(k.start, k.end);
  add(k);
  add(kernel("k", 3600'000'000'000, 3600'000'000'010, 1));  // an hour from now
  add(kernel("k", 0, 10, 1));
  cupti.dropped = 5;
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.activities, 1U);
  EXPECT_EQ(sink.trace.status.dropped, 8U);
}

TEST_F(TracerTest, WhatIsLostInRerunsIsNoneOfTheProgram) {
  start();
  const auto lose = [&] {
    auto k = kernel("k", 0, 10, 1);
    k.start = k.end = 0;
    add(k);
    cupti.dropped = 2;
    ASSERT_TRUE(tracer->flush(seconds{10}));
  };
  lose();
  tracer->begin_reruns();
  lose();
  EXPECT_EQ(sink.trace.status.dropped, 3U);
  tracer->end_reruns();
  lose();
  EXPECT_EQ(sink.trace.status.dropped, 6U);
}

TEST_F(TracerTest, WhileAKernelMayNotEndCuptiIsNotAsked) {
  start();
  tracer->begin_risk();
  add(kernel("k", 0, 10, 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.activities, 0U);
  tracer->end_risk();
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.activities, 1U);
}

TEST_F(TracerTest, WithoutBuffersRecordsAreCountedAsDropped) {
  start({.most_buffers = 0});
  add(kernel("k", 0, 10, 1));
  add(kernel("k", 20, 30, 2));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.activities, 0U);
  EXPECT_EQ(sink.trace.status.dropped, 2U);
}

TEST_F(TracerTest, BuffersAreUsedAgain) {
  start({.most_buffers = 2});
  for (std::uint32_t i = 0; i != 50; ++i) {
    add(kernel("k", i * 100, i * 100 + 10, i));
    ASSERT_TRUE(tracer->flush(seconds{10}));
  }
  EXPECT_EQ(sink.trace.status.dropped, 0U);
  EXPECT_EQ(sink.of_class(0), (Sum{500, 50}));
}

TEST_F(TracerTest, AnotherSubscriberLeavesTheRecords) {
  cupti.subscribe_result = abi::Result::kMultipleSubscribersNotSupported;
  start();
  add(kernel("k", 0, 10, 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.of_class(0).launches, 1U);
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("jouleprof annotate"));
}

TEST_F(TracerTest, ARefusalIsTheStatus) {
  cupti.enable_result = abi::Result::kInsufficientPrivileges;
  start();
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("NVreg_RestrictProfilingToAdminUsers"));
}

TEST_F(TracerTest, CopiesThatCannotBeTracedAreTheStatus) {
  cupti.refused = {abi::ActivityKind::kMemcpy, abi::ActivityKind::kMemset};
  cupti.subscribe_result = abi::Result::kMultipleSubscribersNotSupported;
  start();
  add(kernel("k", 0, 10, 1));
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.of_class(0).launches, 1U);
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("copies are not traced"));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("memory sets are not traced"));
  EXPECT_THAT(sink.trace.status.problem, Not(HasSubstr("copies between GPUs")));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("not related to layers"));
}

TEST_F(TracerTest, WithXlasCommandBuffersCopiesAreNotTraced) {
  make({.period = seconds{100}});
  tracer->start_cupti(
      [] {
        auto api = FakeCupti::api();
        api.copies = false;
        return Result<CuptiApi>(std::move(api));
      },
      true);
  add(kernel("k", 0, 10, 1));
  cupti.launch(abi::DriverCall::kGraphInstantiate, 7);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_TRUE(cupti.records(abi::ActivityKind::kConcurrentKernel));
  for (const auto kind :
       {abi::ActivityKind::kMemcpy, abi::ActivityKind::kMemcpy2, abi::ActivityKind::kMemset}) {
    EXPECT_FALSE(cupti.records(kind));
  }
  EXPECT_EQ(sink.of_class(0).launches, 1U);
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("copies and memory sets are not traced"));
}

TEST_F(TracerTest, NoCuptiIsTheStatus) {
  make({.period = seconds{100}});
  tracer->start_cupti([] { return load_cupti({"/nowhere/libcupti.so.13"}); }, true);
  ASSERT_TRUE(tracer->end(seconds{10}, false));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("nvidia-cuda-cupti"));
  EXPECT_TRUE(sink.trace.status.ended);
  EXPECT_EQ(sink.statuses, 1);
}

TEST_F(TracerTest, BuffersTakenAwayAreNoticed) {
  Tracer::Options options;
  options.taken_away_after = milliseconds{0};
  start(options);
  add(kernel("k", 0, 10, 1));
  cupti.launch(abi::DriverCall::kLaunchKernel, 1);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.trace.status.problem, "");
  cupti.taken_away = true;
  cupti.launch(abi::DriverCall::kLaunchKernel, 2);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("no longer hands over"));
  EXPECT_THAT(sink.trace.status.problem, HasSubstr("jouleprof annotate"));
}

TEST_F(TracerTest, AForkedChildIsSilent) {
  start();
  add(kernel("k", 0, 10, 1));
  const pid_t child = fork();
  if (child == 0) {
    Tracer::forget_all();
    cupti.launch(abi::DriverCall::kLaunchKernel, 2);
    cupti.deliver();
    _exit(cupti.dropped == 1 && sink.trace.chunks.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(tracer->flush(seconds{10}));
  EXPECT_EQ(sink.of_class(0).launches, 1U);
}

TEST_F(TracerTest, ManyThreadsLaunchWhileBuffersAreRead) {
  make({.period = milliseconds{1}});
  tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, true);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t != 4; ++t) {
    threads.emplace_back([this, t] {
      const auto range = scopes::add(model::Range{"thread " + std::to_string(t), model::kNone});
      scopes::this_thread().range = range;
      for (std::uint32_t i = 0; i != 2000; ++i) {
        const std::uint32_t n = i * 4 + t;
        cupti.launch(abi::DriverCall::kLaunchKernel, n + 1);
        add(kernel("k", n * 1000, n * 1000 + 900, n + 1));
        if (i % 50 == 0) cupti.deliver();
        if (i % 500 == 0) tracer->flush(seconds{10});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(tracer->end(seconds{10}, false));
  // Threads that outrun the tracer find no buffer: what they lose is counted.
  const auto& status = sink.trace.status;
  EXPECT_EQ(status.activities + status.dropped, 8000U);
  EXPECT_EQ(sink.of_class(0).launches, status.activities);
  EXPECT_GE(status.activities, 1000U);
  std::uint64_t in_scopes = 0;
  for (const auto& [key, sum] : sink.scopes()) in_scopes += sum.launches;
  EXPECT_EQ(in_scopes, status.activities);
}

}  // namespace
}  // namespace jouleprof::cupti
