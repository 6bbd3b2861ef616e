#include "recording/kernel_store.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "recording/recording_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::recording {
namespace {

using testing::HasSubstr;

model::RememberedKernel a_kernel(const std::string& name, int day = 0, double watts = 300) {
  model::KernelClass kernel;
  kernel.name = name;
  kernel.grid = {8, 1, 1};
  kernel.block = {128, 1, 1};
  return {"GPU-a",
          kernel,
          std::chrono::microseconds{20},
          Power::watts(watts),
          Power::watts(20),
          1.98e9,
          RealTime{std::chrono::hours{24 * (20000 + day)}}};
}

class KernelStoreTest : public testing::Test {
 protected:
  KernelStoreTest() {
    recording_.domains.emplace_back().uuid = "GPU-a";
    for (const char* name : {"one", "two"}) {
      recording_.traces.emplace_back().classes.emplace_back().name = name;
    }
  }

  KernelStore store(const std::string& driver = "550.54.15") const { return {path_, driver}; }
  std::vector<model::RememberedKernel> found(const std::string& driver = "550.54.15") const {
    const auto rows = store(driver).find(recording_);
    EXPECT_TRUE(rows) << rows.error().message;
    return rows.value_or(std::vector<model::RememberedKernel>{});
  }

  TempTree tree_;
  std::filesystem::path path_ = tree_ / "state/jouleprof/kernels.sqlite";
  model::Recording recording_;
};

TEST_F(KernelStoreTest, WhatOneRunStoresAnotherFinds) {
  EXPECT_TRUE(found().empty());
  ASSERT_TRUE(store().add({a_kernel("two", 1), a_kernel("one"), a_kernel("three")}));
  auto elsewhere = a_kernel("one");
  elsewhere.board = "GPU-b";
  auto copy = a_kernel("one", 2);
  copy.kernel.kind = model::ActivityKind::kMemcpy;
  copy.kernel.bytes = 4096;
  copy.sm_clock_hertz.reset();
  ASSERT_TRUE(store().add({elsewhere, copy}));
  EXPECT_EQ(found(), (std::vector{a_kernel("one"), a_kernel("two", 1), copy}));
}

TEST_F(KernelStoreTest, AnotherDriverHasItsOwnRows) {
  ASSERT_TRUE(store().add({a_kernel("one")}));
  EXPECT_EQ(found("550.90").size(), 1u);
  EXPECT_TRUE(found("560.28").empty());
}

TEST_F(KernelStoreTest, TheOldestRowsOfASignatureAreRemoved) {
  for (int day = 0; day < 25; ++day) ASSERT_TRUE(store().add({a_kernel("one", day)}));
  ASSERT_EQ(found().size(), 20u);
  EXPECT_EQ(found().front(), a_kernel("one", 5));
}

TEST_F(KernelStoreTest, TheOldestRowsOfAllAreRemoved) {
  std::vector<model::RememberedKernel> many;
  for (int n = 0; n < 20'100; ++n) many.push_back(a_kernel(std::to_string(n), n));
  ASSERT_TRUE(store().add({a_kernel("one", -1)}));
  ASSERT_TRUE(store().add(many));
  const auto state = kernel_store_state(path_);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->rows, 20'000u);
  EXPECT_EQ(state->kernels, 20'000u);
  EXPECT_EQ(state->boards, 1u);
  EXPECT_EQ(state->first, a_kernel("", 100).observed);
  EXPECT_EQ(state->last, a_kernel("", 20'099).observed);
  EXPECT_EQ(state->bytes, std::filesystem::file_size(path_));
  EXPECT_TRUE(found().empty());
}

TEST_F(KernelStoreTest, ImpossibleRowsAreNotStored) {
  ASSERT_TRUE(store().add({a_kernel("one", 0, -1), a_kernel("two")}));
  EXPECT_EQ(found(), std::vector{a_kernel("two")});
}

TEST_F(KernelStoreTest, AForeignFileIsAnErrorAndStays) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_) << "the notes of somebody else, which are longer than a page of SQLite";
  const auto rows = store().find(recording_);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Errc::kCorrupt);
  EXPECT_THAT(rows.error().message, HasSubstr("doctor --forget-kernels"));
  EXPECT_FALSE(store().add({a_kernel("one")}));
  EXPECT_THAT(bytes_of(path_), HasSubstr("the notes of somebody else"));
  ASSERT_TRUE(forget_kernels(path_));
  EXPECT_TRUE(store().add({a_kernel("one")}));
  EXPECT_EQ(found().size(), 1u);
}

TEST_F(KernelStoreTest, AnotherVersionIsAnErrorAndStays) {
  ASSERT_TRUE(store().add({a_kernel("one")}));
  run_sql(path_, "PRAGMA user_version = 2");
  EXPECT_EQ(store().find(recording_).error().code, Errc::kUnsupported);
  EXPECT_EQ(store().add({a_kernel("two")}).error().code, Errc::kUnsupported);
  EXPECT_EQ(kernel_store_state(path_).error().code, Errc::kUnsupported);
}

TEST_F(KernelStoreTest, DamagedRowsAreAnError) {
  ASSERT_TRUE(store().add({a_kernel("one")}));
  run_sql(path_, "PRAGMA ignore_check_constraints = ON; UPDATE kernel SET power_watts = -5");
  EXPECT_EQ(store().find(recording_).error().code, Errc::kCorrupt);
}

TEST_F(KernelStoreTest, RunsThatStoreAtOnceLoseNothing) {
  std::vector<std::thread> runs;
  for (int run = 0; run < 4; ++run) {
    runs.emplace_back([&, run] {
      for (int n = 0; n < 4; ++n) {
        EXPECT_TRUE(store().add({a_kernel("one", 4 * run + n)}));
      }
    });
  }
  for (auto& run : runs) run.join();
  EXPECT_EQ(found().size(), 16u);
}

TEST_F(KernelStoreTest, AFinishedRecordingGetsWhatEnteredItsAnalysis) {
  const auto file = tree_ / "x.jprof";
  model::Recording recording = RandomRecording(3).make();
  recording.run.complete = true;
  recording.run.trace_folder.clear();
  ASSERT_TRUE(write_recording(file, recording));
  ASSERT_TRUE(add_remembered(file, {a_kernel("one"), a_kernel("two", 1)}));
  recording.remembered.push_back(a_kernel("one"));
  recording.remembered.push_back(a_kernel("two", 1));
  const auto read = read_recording(file);
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, recording);
}

}  // namespace
}  // namespace jouleprof::recording
