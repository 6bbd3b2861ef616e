#include "spans/reruns/rerun_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "spans/reruns/fake_driver_fixture.h"

namespace jouleprof::reruns {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr abi::cuda::DevicePtr kA = 0x7f0000000000;
using Copy = std::pair<abi::cuda::DevicePtr, abi::cuda::DevicePtr>;  // to, from

Signature signature(const char* name, unsigned grid = 4) {
  return {name, {grid, 1, 1}, {128, 1, 1}};
}

struct Reruns : testing::Test {
  FakeDriver driver;
  DriverApi api = driver.api();
  LaunchRecorder recorder{api};
  FakeCalls calls{recorder};
  std::map<Signature, InPlace> in_place;
  std::vector<RecordedKernel> recorded;
  int prepared = 0;
  int looped = 0;
  double clock = 0;  // of the last loop
  double launched_there = 0;
  std::function<double()> now_clock;
  double program_clock = 0;
  bool stopped = false;
  bool at_risk = false;

  void launched(const char* name, double busy) {
    calls.launch(driver.function(name), kA);
    in_place[signature(name)] = {busy, 100};
  }
  Plan planned() {
    recorded = recorder.kernels();
    return plan(recorded, in_place);
  }
  RerunOutcome run(int seconds = 20) {
    RerunRunner runner(api, {[&] { ++prepared; },
                             [&](double hertz, double launches) {
                               ++looped, clock = hertz, launched_there = launches;
                             },
                             [&] { return stopped; }, now_clock, program_clock,
                             [&](bool active) { at_risk = active; }});
    const Plan all = planned();
    runner.save(all);
    return runner.run(all, 0.01, HostClock::now() + std::chrono::milliseconds(1000 * seconds));
  }
};

TEST_F(Reruns, APlanHasTheLongestFirstAndReasonsForTheRest) {
  launched("short", 0.1);
  launched("long", 0.6);
  launched("tiny", 1e-5);
  in_place[signature("unseen")] = {0.3, 10};
  launched("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0.2);
  const Plan all = planned();
  ASSERT_THAT(all.kernels, SizeIs(2));
  EXPECT_EQ(all.kernels[0].name, "long");
  EXPECT_EQ(all.kernels[1].name, "short");
  EXPECT_EQ(described(all.left_out),
            "unseen (25.0 % of the kernels' time: its launches were not seen), "
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL (16.7 % of the kernels' time: it waits for "
            "other ranks)");
}

TEST_F(Reruns, KernelsThatReadIndicesComeLastAndNotInAProgramThatGoesOn) {
  launched("indexSelectSmallIndex", 0.6);
  launched("sm80_xmma_fprop_implicit_gemm_indexed", 0.3);
  launched("add", 0.1);
  Plan all = planned();
  ASSERT_THAT(all.kernels, SizeIs(3));
  EXPECT_EQ(all.kernels[2].name, "indexSelectSmallIndex");
  all = plan(recorded, in_place, true);
  ASSERT_THAT(all.kernels, SizeIs(2));
  EXPECT_EQ(described(all.left_out),
            "indexSelectSmallIndex (60.0 % of the kernels' time: it reads indices that may have "
            "changed)");
}

// Names of PyTorch and cuDNN. What only names an index among its types computes no address with
// one.
TEST_F(Reruns, WhatReadsIndicesIsKnownByTheNameOfTheFunction) {
  const auto is_left_out = [&](const char* name) {
    launched(name, 0.1);
    recorded = recorder.kernels();
    const Plan all = plan(recorded, in_place, true);
    return std::ranges::none_of(all.kernels, [&](const Planned& one) { return one.name == name; });
  };
  for (const char* const reads :
       {"_ZN2at6native52_GLOBAL__N__e57809e0_19_DilatedMaxPool2d_cu_6258b57422max_pool_backward_"
        "nchwIN3c108BFloat16EfiEEvPKT_PKlT1_SA_SA_SA_SA_SA_iiiiiiiiPS5_",
        "_Z26precomputed_convolve_sgemmI13__nv_bfloat16Li128EEviiiPKT_iPS1_S3_",
        "_ZN2at6native24_assert_async_cuda_kernelIbEEvPKT_", "_ZN8cusparse23csrmv_v3_kernelIiEEvT_",
        "triton_poi_fused_embedding_0"}) {
    EXPECT_TRUE(is_left_out(reads)) << reads;
  }
  for (const char* const reads_none :
       {"_ZN2at6native26batch_norm_backward_"
        "kernelIN3c108BFloat16EffiEEvN5torch10headeronly6detail27"
        "GenericPackedTensorAccessorINS6_16IndexBoundsCheckIXLm1EEiEES3_EE",
        "_ZN2at6native13reduce_kernelILi512ENS0_11ArgMaxIndexEEEvT0_",
        "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"}) {
    EXPECT_FALSE(is_left_out(reads_none)) << reads_none;
  }
}

TEST_F(Reruns, ShortKernelsOfUnloadedCodeComeLastAndNotInAProgramThatGoesOn) {
  const auto gone = driver.function("gone");
  calls.launch(gone, kA);
  in_place[signature("gone")] = {0.002, 1};
  launched("indexSelectSmallIndex", 0.5);
  launched("add", 0.498);
  calls.unload(gone, "a cubin");
  const Plan all = planned();
  ASSERT_THAT(all.kernels, SizeIs(3));
  EXPECT_EQ(all.kernels[1].name, "indexSelectSmallIndex");
  EXPECT_EQ(all.kernels[2].name, "gone");
  EXPECT_THAT(described(plan(recorded, in_place, true).left_out),
              HasSubstr("gone (0.2 % of the kernels' time: its code was unloaded"));
}

TEST_F(Reruns, TimeGoesToWhereItNarrowsTheErrorsMost) {
  const double busy[] = {8, 1, 0.001};
  EXPECT_THAT(loop_seconds(busy, 0.4, 30), ElementsAre(0.4, 0.4, 0.4));
  const auto scarce = loop_seconds(busy, 10, 5);
  EXPECT_NEAR(scarce[0] / scarce[1], 4, 0.1);  // 8^(2/3)
  EXPECT_DOUBLE_EQ(scarce[2], 0.12);           // it takes no time from the others
  EXPECT_NEAR(scarce[0] + scarce[1] + 2 * 0.12, 5, 0.01);
}

TEST_F(Reruns, EachKernelRunsInALoopOfItsOwn) {
  launched("a", 0.5);
  launched("b", 0.5);
  const auto outcome = run();
  EXPECT_EQ(outcome.kernels, 2u);
  EXPECT_NEAR(outcome.share, 1, 1e-9);
  EXPECT_THAT(outcome.left_out, IsEmpty());
  EXPECT_EQ(looped, 2);
  EXPECT_EQ(launched_there, 1);
  EXPECT_EQ(prepared, 3);  // before each, and at the end
  EXPECT_GT(driver.graphs, 2);
}

TEST_F(Reruns, MemoryThatWasClearedIsClearedBeforeEachLaunch) {
  calls.memset(kA, 64);
  launched("counts", 1);
  run();
  const auto kernels = std::count_if(driver.ran.begin(), driver.ran.end(),
                                     [](const auto& ran) { return ran.kernel == "counts"; });
  EXPECT_EQ(static_cast<std::size_t>(2 * kernels), driver.ran.size());
  EXPECT_EQ(driver.ran[0].kernel, "memset");
}

TEST_F(Reruns, MemsetsRunInALoopOfTheirOwn) {
  driver.allocated = {{kA, 4096}};
  calls.memset(kA, 4096);
  calls.memset(kA, 16);
  in_place[signature_of_memset(4096)] = {1, 100};
  const auto outcome = run();
  EXPECT_EQ(outcome.kernels, 1u);
  EXPECT_THAT(outcome.left_out, IsEmpty());
  EXPECT_EQ(looped, 1);
  ASSERT_FALSE(driver.ran.empty());
  for (const auto& ran : driver.ran) EXPECT_EQ(ran.kernel, kMemset);
  EXPECT_EQ(driver.copies.back(), Copy(kA, FakeDriver::kCopies));
}

TEST_F(Reruns, MemoryIsAsBeforeAfterwards) {
  driver.allocated = {{kA, 4096}};
  launched("writes", 1);
  run();
  ASSERT_FALSE(driver.copies.empty());
  EXPECT_EQ(driver.copies.front(), Copy(FakeDriver::kCopies, kA));
  EXPECT_EQ(driver.copies.back(), Copy(kA, FakeDriver::kCopies));
}

TEST_F(Reruns, ALoopBeginsWhenTheClockIsThatOfTheProgram) {
  launched("gemm", 1);
  program_clock = 1.7e9;
  int reads = 0;
  now_clock = [&] { return ++reads <= 3 ? 1.98e9 : 1.7e9; };
  run();
  EXPECT_EQ(clock, 1.7e9);
  EXPECT_GT(reads, 4);
  // Or when no shorter pause lowers it: the kernel draws too little.
  now_clock = [&] { return 1.98e9; };
  run();
  EXPECT_EQ(clock, 1.98e9);
  EXPECT_EQ(looped, 2);
}

TEST_F(Reruns, WithoutTheProgramsClockALoopHasItsOwn) {
  launched("a", 0.5);
  launched("b", 0.5);
  now_clock = [] { return 1.9e9; };
  run();
  EXPECT_EQ(looped, 2);
  EXPECT_EQ(clock, 1.9e9);
}

TEST_F(Reruns, CodeThatTheProgramUnloadedIsLoadedAgain) {
  const auto gemm = driver.function("gemm");
  calls.launch(gemm, kA);
  in_place[signature("gemm")] = {1, 100};
  calls.unload(gemm, "cubin of gemm");
  const auto outcome = run();
  EXPECT_EQ(outcome.kernels, 1u);
  EXPECT_THAT(driver.loaded, ElementsAre("cubin of gemm"));
  EXPECT_EQ(driver.unloaded, 1);
  EXPECT_EQ(driver.ran.front().kernel, "gemm of a new module");
}

TEST_F(Reruns, WithoutRoomForACopyItSaysSo) {
  driver.allocated = {{kA, 4096}};
  driver.free_bytes = 0;
  launched("writes", 1);
  RerunRunner runner(api, {[] {}, [](double, double) {}, [] { return false; }, {}, 0});
  const Plan all = planned();
  EXPECT_THAT(runner.save(all), HasSubstr("no room"));
}

TEST_F(Reruns, AKernelThatTheDriverRefusesIsLeftOutAndOthersRun) {
  driver.refused = {"bad"};
  launched("bad", 0.6);
  launched("good", 0.4);
  const auto outcome = run();
  EXPECT_EQ(outcome.kernels, 1u);
  ASSERT_THAT(outcome.left_out, SizeIs(1));
  EXPECT_THAT(outcome.left_out[0].why, HasSubstr("the driver refuses it"));
  EXPECT_EQ(outcome.broken, "");
}

// As cuDNN sets it before each launch: the last one of a step needs less than the others.
TEST_F(Reruns, AFunctionMayUseAsMuchSharedMemoryAsItsLaunchDid) {
  const auto norm = driver.function("norm");
  for (const unsigned shared : {28672u, 4096u}) {
    driver.most_shared[norm] = static_cast<int>(shared);
    calls.launch(norm, kA, 1, shared == 4096u ? 4 : 8, shared);
  }
  in_place[signature("norm", 8)] = {0.9, 100};
  in_place[signature("norm", 4)] = {0.1, 100};
  EXPECT_EQ(run().kernels, 2u);
  EXPECT_EQ(driver.most_shared[norm], 28672);
}

TEST_F(Reruns, NothingRunsAfterAFault) {
  driver.faulty = {"bad"};
  launched("bad", 0.6);
  launched("good", 0.4);
  const auto outcome = run();
  EXPECT_EQ(outcome.kernels, 0u);
  EXPECT_EQ(described(outcome.left_out),
            "bad (60.0 % of the kernels' time: it failed with CUDA_ERROR_ILLEGAL_ADDRESS), "
            "good (40.0 % of the kernels' time: nothing ran after one that failed)");
  EXPECT_FALSE(outcome.stuck);
  EXPECT_FALSE(at_risk);
  EXPECT_FALSE(outcome.broken.empty());
}

TEST_F(Reruns, AKernelThatDoesNotEndEndsTheReRuns) {
  driver.endless = {"waits"};
  launched("waits", 1);
  const auto outcome = run();
  EXPECT_TRUE(outcome.stuck);
  EXPECT_TRUE(at_risk);  // still
  ASSERT_THAT(outcome.left_out, SizeIs(1));
  EXPECT_EQ(outcome.left_out[0].why, "it did not end within 2 s");
}

TEST_F(Reruns, TheyEndOnRequestAndInTime) {
  launched("a", 1);
  stopped = true;
  EXPECT_EQ(run().left_out.at(0).why, "re-runs were ended");
  stopped = false;
  EXPECT_EQ(run(0).left_out.at(0).why, "there was no time left");
}

// A program that goes on finds all memory as it was, also what a list of addresses points to.
TEST_F(Reruns, APointedToListIsRestored) {
  constexpr abi::cuda::DevicePtr kList = 0x7f5000000000;
  constexpr abi::cuda::DevicePtr kPointedTo = 0x7f6000000000;
  driver.allocated = {{kList, std::size_t{1} << 20}, {kPointedTo, std::size_t{8} << 20}};
  driver.lists[kList] = kPointedTo + 64;
  calls.launch(driver.function("batched"), kList);
  in_place[signature("batched")] = {1, 100};
  for (const bool exactly : {false, true}) {
    driver.copies.clear();
    RerunRunner runner(api, {[] {}, [](double, double) {}, [] { return false; }, {}, 0});
    EXPECT_EQ(runner.save(planned(), exactly), "");
    driver.copies.clear();
    EXPECT_TRUE(runner.restore_all());
    std::set<abi::cuda::DevicePtr> restored;
    for (const auto& [to, from] : driver.copies) restored.insert(to);
    const auto expected = exactly ? std::set<abi::cuda::DevicePtr>{kList, kPointedTo}
                                  : std::set<abi::cuda::DevicePtr>{kList};
    EXPECT_EQ(restored, expected);
  }
}

TEST_F(Reruns, WithoutRoomForACopyAProgramThatGoesOnIsNotTouched) {
  driver.free_bytes = std::size_t{1} << 30;
  driver.allocated = {{kA, std::size_t{6} << 30}};
  launched("k", 1);
  RerunRunner runner(api, {[] {}, [](double, double) {}, [] { return false; }, {}, 0});
  EXPECT_EQ(runner.save(planned(), true), "the GPU has no room for a copy of 6.4 GB");
}

}  // namespace
}  // namespace jouleprof::reruns
