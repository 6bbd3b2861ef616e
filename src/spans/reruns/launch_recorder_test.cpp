#include "spans/reruns/launch_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "spans/reruns/fake_driver_fixture.h"

namespace jouleprof::reruns {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kA = 0x7f0000000000;
constexpr std::uint64_t kB = 0x7f0000100000;

struct Recorded : testing::Test {
  FakeDriver driver;
  DriverApi api = driver.api();
  LaunchRecorder recorder{api};
  FakeCalls calls{recorder};

  // Without memsets.
  RecordedKernel only() {
    auto all = recorder.kernels();
    std::erase_if(all, [](const RecordedKernel& kernel) { return kernel.name == kMemset; });
    EXPECT_THAT(all, SizeIs(1));
    return all.at(0);
  }
};

std::uint64_t address_of(const Launch& launch) {
  std::uint64_t word = 0;
  std::memcpy(&word, launch.parameters.data(), 8);
  return word;
}

TEST_F(Recorded, ALaunchIsKeptWithItsParameters) {
  calls.launch(driver.function("gemm"), kA, 7);
  const auto kernel = only();
  EXPECT_EQ(kernel.name, "gemm");
  EXPECT_EQ(kernel.why_not, "");
  EXPECT_EQ(kernel.shape.grid[0], 4u);
  ASSERT_THAT(kernel.variants, SizeIs(1));
  const Variant& variant = kernel.variants.begin()->second;
  EXPECT_EQ(variant.launches, 1u);
  ASSERT_THAT(variant.kept, SizeIs(1));
  EXPECT_EQ(address_of(variant.kept[0]), kA);
  EXPECT_EQ(variant.kept[0].parameters[8], 7);
}

TEST_F(Recorded, NothingOfAnEarlierTraceIsLeft) {
  const auto gemm = driver.function("gemm");
  calls.launch(gemm, kA, 7);
  recorder.clear();
  EXPECT_THAT(recorder.kernels(), IsEmpty());
  calls.launch(gemm, kB, 7);
  EXPECT_EQ(address_of(only().variants.begin()->second.kept.at(0)), kB);
}

TEST_F(Recorded, LaunchesThatDifferInAddressesAreOneVariantAndInNumbersAreTwo) {
  const auto gemm = driver.function("gemm");
  for (int i = 0; i < 5; ++i) {
    calls.launch(gemm, kA);
    calls.launch(gemm, kB);
  }
  EXPECT_THAT(only().variants.begin()->second.kept, SizeIs(2));
  calls.launch(gemm, kA, 2);
  ASSERT_THAT(only().variants, SizeIs(2));
  // Two numbers in one word, as large as an address.
  calls.launch(gemm, std::uint64_t{6335} << 32 | 767);
  calls.launch(gemm, std::uint64_t{6335} << 32 | 3071);
  ASSERT_THAT(only().variants, SizeIs(4));
}

TEST_F(Recorded, TheNewestLaunchesAreKeptAndVariantsAreBounded) {
  const auto gemm = driver.function("gemm");
  for (std::uint64_t i = 0; i < 100; ++i) calls.launch(gemm, kA + 256 * i);
  auto kept = only().variants.begin()->second.kept;
  ASSERT_THAT(kept, SizeIs(LaunchRecorder::kMostKept));
  for (const Launch& launch : kept) {
    EXPECT_GE(address_of(launch), kA + 256 * (100 - LaunchRecorder::kMostKept));
  }
  for (unsigned i = 0; i < 100; ++i) calls.launch(gemm, kA, 1000 + i);
  const auto kernel = only();
  EXPECT_THAT(kernel.variants, SizeIs(LaunchRecorder::kMostVariants));
  std::uint64_t launches = kernel.given_way;
  for (const auto& [hash, variant] : kernel.variants) launches += variant.launches;
  EXPECT_EQ(launches, 200u);
}

TEST_F(Recorded, WhatChangesWithEveryLaunchMakesNoVariantsAndIsNotAskedFor) {
  const auto foreach = driver.function("multi_tensor_apply");
  for (std::uint64_t i = 0; i < 400; ++i) calls.launch(foreach, 0x550000000000 + 4096 * i);
  EXPECT_LT(driver.asked, 50);
  std::uint64_t most = 0;
  for (const auto& [hash, variant] : only().variants) most = std::max(most, variant.launches);
  EXPECT_GT(most, 350u);
}

TEST_F(Recorded, MemsetsOfMemoryThatALaunchUsesBelongToIt) {
  const auto splitk = driver.function("splitk");
  calls.memset(kA, 4096);
  calls.memset(kB, 4096);
  calls.launch(driver.function("other"), kB + 8192);
  calls.launch(splitk, kA + 512);
  for (const auto& kernel : recorder.kernels()) {
    const Launch& launch = kernel.variants.begin()->second.kept[0];
    if (kernel.name == kMemset) continue;
    if (kernel.name == "other") {
      EXPECT_THAT(launch.cleared, IsEmpty());
    } else {
      EXPECT_THAT(launch.cleared, ElementsAre(Cleared{kA, 4096, 0, 1}));
    }
  }
}

TEST_F(Recorded, MemsetsAreKeptBySize) {
  for (int i = 0; i < 3; ++i) calls.memset(kA, 4096);
  calls.memset(kA, 5000);
  calls.memset(kB, std::uint64_t{1} << 30);
  const auto all = recorder.kernels();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].name, kMemset);
  EXPECT_EQ(all[0].shape.grid[0], 13u);
  EXPECT_EQ(all[1].shape.grid[0], 31u);
  EXPECT_THAT(all[0].variants, SizeIs(2));  // of two sizes
  const Launch& large = all[1].variants.begin()->second.kept.at(0);
  EXPECT_THAT(large.cleared, ElementsAre(Cleared{kB, std::uint64_t{1} << 30, 0, 1}));
  EXPECT_EQ(address_of(large), kB);
}

TEST_F(Recorded, NodesOfGraphsAreLaunchesAndHaveTheAttributesThatAreSetLater) {
  std::uint64_t address = kA;
  unsigned number = 1;
  void* parameters[] = {&address, &number};
  const abi::cuda::KernelNodeParameters node{
      driver.function("cluster"), {4, 1, 1}, {128, 1, 1}, 0, parameters, nullptr, nullptr, nullptr};
  abi::cuda::GraphNode made = nullptr;
  const abi::cupti::AddKernelNodeParameters add{&made, nullptr, nullptr, 0, &node};
  calls.call(abi::cupti::DriverCall::kGraphAddKernelNode2, add);
  made = reinterpret_cast<abi::cuda::GraphNode>(std::uintptr_t{64});
  calls.call(abi::cupti::DriverCall::kGraphAddKernelNode2, add, abi::cupti::Site::kExit);
  const unsigned char cluster[64] = {2};
  calls.call(
      abi::cupti::DriverCall::kGraphKernelNodeSetAttribute,
      abi::cupti::SetNodeAttributeParameters{made, abi::cuda::kLaunchClusterDimension, cluster});
  const auto kernel = only();
  EXPECT_EQ(kernel.variants.begin()->second.launches, 1u);
  ASSERT_THAT(kernel.attributes, SizeIs(1));
  EXPECT_EQ(kernel.attributes[0].value[0], 2);
}

// cuDNN's convolutions compute where their blocks wait for others of their cluster from parameters.
TEST_F(Recorded, LaunchesWithClustersOfOtherSizesAreOtherKernels) {
  const auto convolution = driver.function("convolution");
  unsigned char unused = 0;  // what the value does not need
  for (const unsigned char size : std::array<unsigned char, 3>{2, 4, 2}) {
    std::uint64_t address = kA;
    unsigned number = size;
    void* parameters[] = {&address, &number};
    abi::cuda::LaunchAttribute cluster{abi::cuda::kLaunchClusterDimension, {}, {size}};
    ++unused;
    cluster.value[63] = unused;
    const abi::cuda::LaunchConfig config{{4, 1, 1}, {128, 1, 1}, 0, nullptr, &cluster, 1};
    calls.call(abi::cupti::DriverCall::kLaunchKernelEx,
               abi::cupti::LaunchExParameters{&config, convolution, parameters, nullptr});
  }
  const auto all = recorder.kernels();
  ASSERT_THAT(all, SizeIs(2));
  for (const auto& kernel : all) {
    ASSERT_THAT(kernel.variants, SizeIs(1));
    ASSERT_THAT(kernel.attributes, SizeIs(1));
    EXPECT_EQ(kernel.variants.begin()->second.kept.at(0).parameters[8],
              kernel.attributes[0].value[0]);
  }
}

TEST_F(Recorded, KernelsThatCannotRunAgainHaveAReason) {
  calls.launch(driver.function("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), kA);
  EXPECT_EQ(only().why_not, "it waits for other ranks");
}

// Outside of its graph a kernel that sets a conditional node faults.
TEST_F(Recorded, AKernelThatDecidesWhatAGraphRunsIsNotLaunchedAgain) {
  const auto decides = driver.function("set_case_condition");
  calls.launch(driver.function("gemm"), kA, 7);
  std::uint64_t handle = 1;
  const abi::cupti::ConditionalHandleParameters create{&handle};
  const auto condition = abi::cupti::DriverCall::kGraphConditionalHandleCreate;
  handle = 77;  // not yet written by the call
  calls.call(condition, create);
  handle = 1;
  calls.call(condition, create, abi::cupti::Site::kExit);
  calls.launch(decides, 1);
  calls.launch(decides, kA);  // and never again
  calls.launch(driver.function("other"), 77);
  for (const RecordedKernel& kernel : recorder.kernels()) {
    EXPECT_EQ(kernel.why_not,
              kernel.name == "set_case_condition" ? "it decides what a graph runs next" : "")
        << kernel.name;
  }
}

TEST_F(Recorded, UnloadedCodeIsNotLaunchedAgain) {
  const auto gemm = driver.function("gemm");
  calls.launch(gemm, kA);
  calls.unload(gemm);
  EXPECT_EQ(only().why_not, "its code was unloaded");
  EXPECT_THAT(only().variants, IsEmpty());
}

TEST_F(Recorded, CodeIsKeptAsItIsUnloadedUnlessItsConstantsWentWithIt) {
  const auto gemm = driver.function("gemm");
  driver.allocated = {{kA, 4096}};
  calls.launch(gemm, kA);
  calls.unload(gemm, "cubin");
  EXPECT_EQ(only().why_not, "");
  EXPECT_EQ(*only().code, "cubin");
  EXPECT_THAT(only().variants, SizeIs(1));
  driver.allocated.clear();
  EXPECT_EQ(only().why_not, "its memory was freed");
}

TEST_F(Recorded, MemoryThatWasFreedIsNotUsedUnlessItIsThereAgain) {
  driver.allocated = {{kA, 4096}};
  calls.launch(driver.function("gemm"), kA);
  calls.free(kA);
  EXPECT_EQ(only().why_not, "");
  driver.allocated.clear();
  EXPECT_EQ(only().why_not, "its memory was freed");
}

// As frameworks do that free all before they record a graph: what a launch wrote may reach beyond
// the memory that has its address now.
TEST_F(Recorded, MemoryThatWasAllocatedAgainInAnotherWayIsNotUsedByLaunchesBefore) {
  const auto gemm = driver.function("gemm");
  driver.allocated = {{kA, 8192}};
  calls.launch(gemm, kA + 512);
  calls.free(kA);
  driver.allocated = {{kA, 4096}};
  EXPECT_EQ(only().why_not, "its memory was freed");
  calls.launch(gemm, kA + 1024);
  driver.allocated = {{kA, 4096}, {kB, 4096}};
  calls.free(kB);  // of another
  auto kept = only().variants.begin()->second.kept;
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(address_of(kept[0]), kA + 1024);
  driver.allocated = {{kA, 8192}};  // as it was: still, what was launched since is better
  kept = only().variants.begin()->second.kept;
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(address_of(kept[0]), kA + 1024);
}

TEST_F(Recorded, DuringReRunsNothingIsRecordedAndLaunchesOfOthersAreCounted) {
  const auto gemm = driver.function("gemm");
  recorder.begin_reruns();
  calls.launch(gemm, kA);
  EXPECT_EQ(recorder.launches_of_others(), 0u);
  std::thread([&] { calls.launch(gemm, kA); }).join();
  EXPECT_EQ(recorder.launches_of_others(), 1u);
  EXPECT_THAT(recorder.kernels(), IsEmpty());
  recorder.end_reruns();
  calls.launch(gemm, kA);
  EXPECT_THAT(recorder.kernels(), SizeIs(1));
}

TEST_F(Recorded, KernelsAreBoundedAndWhatDoesNotFitIsCounted) {
  const auto gemm = driver.function("gemm");
  const auto most = static_cast<unsigned>(LaunchRecorder::kMostKernels);
  for (unsigned i = 0; i < most + 10; ++i) calls.launch(gemm, kA, 1, i + 1);
  EXPECT_THAT(recorder.kernels(), SizeIs(most));
  EXPECT_EQ(recorder.dropped(), 10u);
}

TEST_F(Recorded, ReRunsOnRequestHoldWhatOtherThreadsLaunch) {
  const auto theirs = driver.function("k");
  const auto ours = driver.function("our own");
  recorder.begin_reruns(true);
  std::atomic<bool> launched{false};
  std::thread other([&] {
    calls.launch(theirs, kA);
    launched.store(true);
  });
  while (recorder.launches_of_others() == 0) std::this_thread::yield();
  calls.launch(ours, kA);
  EXPECT_FALSE(launched.load());
  recorder.end_reruns();
  other.join();
  EXPECT_TRUE(launched.load());
  EXPECT_THAT(recorder.kernels(), SizeIs(1));  // recorded then, and ours is not
}

}  // namespace
}  // namespace jouleprof::reruns
