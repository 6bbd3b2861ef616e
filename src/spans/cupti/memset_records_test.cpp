#include "spans/cupti/memset_records.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "spans/cupti/cupti_fixture.h"

namespace jouleprof::cupti {
namespace {

using abi::cupti::ActivityKind;
using abi::cupti::DriverCall;
using abi::cupti::MemsetParameters;
using abi::cupti::MemsetRowsParameters;
using abi::cupti::Site;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kSmall = MemsetRecords::kLeastBytes - 1;
constexpr std::uint64_t kLarge = MemsetRecords::kLeastBytes;

class MemsetRecordsTest : public ::testing::Test {
 protected:
  FakeCupti cupti;
  CuptiApi api = FakeCupti::api();
  MemsetRecords memsets{api};

  void SetUp() override { cupti.enabled.insert(ActivityKind::kMemset); }
  bool enabled() const { return cupti.enabled.contains(ActivityKind::kMemset); }
  // Whether it is recorded.
  bool set(std::uint64_t bytes) {
    memsets.on_call(Site::kEnter, bytes);
    const bool recorded = enabled();
    memsets.on_call(Site::kExit, bytes);
    return recorded;
  }
};

TEST_F(MemsetRecordsTest, AtFirstAllAreRecorded) {
  EXPECT_TRUE(set(4));
  EXPECT_EQ(memsets.left_out(), 0U);
}

TEST_F(MemsetRecordsTest, OnlyLargeOnesAreRecorded) {
  memsets.leave_out_small();
  EXPECT_FALSE(set(kSmall));
  EXPECT_TRUE(set(kLarge));
  EXPECT_FALSE(enabled());
  EXPECT_FALSE(set(4));
  EXPECT_EQ(memsets.left_out(), 2U);
}

TEST_F(MemsetRecordsTest, ALargeOneIsRecordedWhateverOtherThreadsDo) {
  memsets.leave_out_small();
  memsets.on_call(Site::kEnter, kLarge);
  std::thread([&] {
    set(kLarge);
    set(kSmall);
  }).join();
  EXPECT_TRUE(enabled());
  memsets.on_call(Site::kExit, kLarge);
  EXPECT_FALSE(enabled());
}

TEST_F(MemsetRecordsTest, ACallThatBeganUnseenChangesNothing) {
  memsets.leave_out_small();
  memsets.on_call(Site::kExit, kLarge);
  EXPECT_FALSE(enabled());
  EXPECT_TRUE(set(kLarge));
  EXPECT_FALSE(enabled());
}

TEST_F(MemsetRecordsTest, AllFromAGraphOn) {
  memsets.leave_out_small();
  memsets.on_call(Site::kEnter, kLarge);
  memsets.record_all();
  memsets.on_call(Site::kExit, kLarge);
  EXPECT_TRUE(set(4));
  EXPECT_EQ(memsets.left_out(), 0U);
}

TEST_F(MemsetRecordsTest, AllWhereTheyTakeMuchOfTheTime) {
  const HostTime begin = HostTime{} + seconds{100};
  for (const bool many : {false, true}) {
    cupti.enabled.insert(ActivityKind::kMemset);
    MemsetRecords some(api);
    some.leave_out_small();
    some.look(begin);
    for (std::uint64_t i = 0; i != 2 * MemsetRecords::kMostLeftOut + (many ? 1 : 0); ++i) {
      some.on_call(Site::kEnter, 4);
    }
    some.look(begin + milliseconds{100});  // too soon to say
    EXPECT_FALSE(enabled());
    some.look(begin + seconds{2});
    EXPECT_EQ(enabled(), many);
  }
}

TEST_F(MemsetRecordsTest, WhereNoneAreRecordedNothingIsEnabled) {
  api.disable = [](ActivityKind) { return abi::cupti::Result::kInvalidParameter; };
  cupti.enabled.clear();
  memsets.leave_out_small();
  EXPECT_FALSE(set(kLarge));
  memsets.record_all();
  EXPECT_FALSE(enabled());
}

TEST(MemsetBytes, OfEachCall) {
  MemsetParameters flat{};
  flat.count = 1000;
  MemsetRowsParameters rows{};
  rows.pitch = 4096;
  rows.width = 100;
  rows.height = 7;
  using enum DriverCall;
  constexpr std::array kFlat{
      std::array{kMemsetD8, kMemsetD8Ptds, kMemsetD8Async, kMemsetD8AsyncPtsz},
      std::array{kMemsetD16, kMemsetD16Ptds, kMemsetD16Async, kMemsetD16AsyncPtsz},
      std::array{kMemsetD32, kMemsetD32Ptds, kMemsetD32Async, kMemsetD32AsyncPtsz}};
  constexpr std::array kRows{
      std::array{kMemsetD2D8, kMemsetD2D8Ptds, kMemsetD2D8Async, kMemsetD2D8AsyncPtsz},
      std::array{kMemsetD2D16, kMemsetD2D16Ptds, kMemsetD2D16Async, kMemsetD2D16AsyncPtsz},
      std::array{kMemsetD2D32, kMemsetD2D32Ptds, kMemsetD2D32Async, kMemsetD2D32AsyncPtsz}};
  for (std::size_t i = 0; i != 3; ++i) {
    const std::uint64_t element = std::uint64_t{1} << i;
    for (const auto call : kFlat[i]) EXPECT_EQ(memset_bytes(call, &flat), 1000 * element);
    for (const auto call : kRows[i]) EXPECT_EQ(memset_bytes(call, &rows), 700 * element);
  }
  EXPECT_EQ(memset_bytes(kMemsetD8Async, nullptr), UINT64_MAX);
  EXPECT_EQ(memset_bytes(kLaunchKernel, &flat), std::nullopt);
}

}  // namespace
}  // namespace jouleprof::cupti
