// Re-runs on request, with a driver for tests. Compiled together with what it tests, whose state is
// of the process.
#include "apps/inject/replay.cpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/activity/activity_codec.h"
#include "spans/reruns/fake_driver_fixture.h"

namespace jouleprof::inject::replay {
namespace {

model::ActivityChunk busy(std::uint32_t kernel, std::uint64_t nanoseconds) {
  model::ActivityEncoder encoder;
  model::ScopeEntry entry{};
  entry.kernel_class = kernel;
  entry.busy_nanoseconds = nanoseconds;
  entry.launches = 1;
  encoder.add(entry);
  model::ActivityChunk chunk;
  chunk.kind = model::ChunkKind::kScopes;
  chunk.bytes = encoder.take();
  return chunk;
}

model::KernelClass kernel(const char* name) {
  model::KernelClass made;
  made.kind = model::ActivityKind::kKernel;
  made.name = name;
  made.grid = {4, 1, 1};
  made.block = {128, 1, 1};
  return made;
}

// The program has looked up an embedding, which is not re-run, when it asks first; then it
// multiplies matrices, and asks again.
TEST(Replay, ARequestThatRerunsNothingLeavesTheNextOneWhatRanSince) {
  reruns::FakeDriver fake;
  State& s = state();
  s.driver = fake.api();
  s.recorder = std::make_unique<reruns::LaunchRecorder>(s.driver);
  s.process = getpid();
  s.tallies.store(true);
  reruns::FakeCalls calls{*s.recorder};
  Limits limits;
  limits.each = 0.05;
  limits.all = 3;
  std::string said;

  calls.launch(fake.function("embedding_lookup"), 0x7f0000000000);
  seen(1, kernel("embedding_lookup"));
  seen(busy(1, 1'000'000'000));
  EXPECT_EQ(now(limits, said), -1);
  EXPECT_THAT(said, testing::HasSubstr("no kernel was re-run: embedding_lookup"));

  calls.launch(fake.function("gemm"), 0x7f0000000000);
  seen(2, kernel("gemm"));
  seen(busy(2, 9'000'000'000));
  EXPECT_EQ(now(limits, said), 0);
  EXPECT_THAT(said, testing::HasSubstr("1 kernels were re-run, 90.0 % of the kernels' time"));
  s.tallies.store(false);
  s.recorder.reset();
}

TEST(Replay, ACallOfCudaThatDoesNotReturnHoldsNoProgram) {
  static std::atomic<bool> returns{false};
  reruns::FakeDriver fake;
  State& s = state();
  s.driver = fake.api();
  s.driver.query_stream = [](abi::cuda::Stream) {
    while (!returns.load()) std::this_thread::yield();
    return abi::cuda::kSuccess;
  };
  s.recorder = std::make_unique<reruns::LaunchRecorder>(s.driver);
  s.process = getpid();
  s.tallies.store(true);
  reruns::FakeCalls{*s.recorder}.launch(fake.function("gemm"), 0x7f0000000000);
  seen(1, kernel("gemm"));
  seen(busy(1, 1'000'000'000));
  Limits limits;
  limits.each = limits.all = limits.beyond = 0.05;
  s.begun = false;
  ASSERT_TRUE(begin(limits));
  while (!wait(0.01)) {
  }
  EXPECT_TRUE(s.stuck.load());
  EXPECT_TRUE(s.running);
  returns.store(true);
  std::unique_lock lock(s.mutex);
  s.ended_changed.wait(lock, [&s] { return !s.running; });
  s.stuck.store(false);
}

}  // namespace
}  // namespace jouleprof::inject::replay
