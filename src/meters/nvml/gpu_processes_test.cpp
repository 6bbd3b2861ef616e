#include <gtest/gtest.h>

#include <chrono>

#include "meters/nvml/nvml_fixture.h"
#include "meters/nvml/nvml_meter.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;

class GpuProcessesTest : public testing::Test {
 protected:
  GpuProcessesTest() : gpu_(fake_.gpus.emplace_back()) {
    open({});
    fake_.pass(1s);
  }
  void open(std::map<unsigned, model::DomainId> instances) {
    processes_.emplace(api_, gpu_.device(), model::DomainId{2}, fake_.clock.real,
                       std::move(instances));
  }
  unsigned long long stamp(Duration ago) const {
    return static_cast<unsigned long long>((fake_.clock.real - ago).time_since_epoch().count() /
                                           1000);
  }
  void busy(unsigned pid, unsigned percent, Duration ago) {
    gpu_.utilisation.push_back({pid, stamp(ago), percent, 0, 0, 0});
  }
  std::vector<model::GpuProcessUse> read() {
    std::vector<model::GpuProcessUse> uses;
    code_ = processes_->read(fake_.clock, uses);
    return uses;
  }

  FakeNvml fake_;
  NvmlApi api_ = fake_.api();
  FakeGpu& gpu_;
  std::optional<GpuProcesses> processes_;
  abi::Return code_{};
};

constexpr unsigned kNone = abi::kNotAvailable32;

TEST_F(GpuProcessesTest, MergesBothListsAndUtilisation) {
  gpu_.compute = {{10, 500, kNone, kNone}, {11, abi::kNotAvailable64, kNone, kNone}};
  gpu_.graphics = {{10, 500, kNone, kNone}, {12, 70, kNone, kNone}};
  read();
  fake_.pass(5s);
  busy(10, 40, 600ms);
  busy(10, 60, 300ms);
  busy(12, 20, 100ms);
  const auto uses = read();
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].pid, 10);
  EXPECT_EQ(uses[0].memory_bytes, 500u);  // once, though in both lists
  EXPECT_DOUBLE_EQ(uses[0].compute_utilisation.value(), 0.5);
  EXPECT_EQ(uses[0].domain, model::DomainId{2});
  EXPECT_EQ(uses[0].at, fake_.clock.host);
  EXPECT_FALSE(uses[1].memory_bytes);
  EXPECT_EQ(uses[1].compute_utilisation, 0.0);  // runs, and was never busy
  EXPECT_EQ(uses[2].memory_bytes, 70u);
  EXPECT_DOUBLE_EQ(uses[2].compute_utilisation.value(), 0.2);
}

TEST_F(GpuProcessesTest, SumsOverMigInstances) {
  gpu_.compute = {{10, 500, 1, 0}, {10, 300, 2, 0}};
  const auto uses = read();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].memory_bytes, 800u);
}

TEST_F(GpuProcessesTest, ProcessesAreOfTheInstancesOfTheirContexts) {
  open({{1, model::DomainId{5}}, {2, model::DomainId{6}}});
  gpu_.compute = {{10, 500, 1, 0}, {10, 300, 2, 0}, {10, 200, 2, 1}, {12, 500, 2, 0}};
  auto uses = read();
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[0].domain, model::DomainId{5});
  EXPECT_EQ(uses[0].memory_bytes, 500u);
  EXPECT_EQ(uses[1].pid, 10);
  EXPECT_EQ(uses[1].domain, model::DomainId{6});
  EXPECT_EQ(uses[1].memory_bytes, 500u);
  EXPECT_EQ(uses[2].pid, 12);
  EXPECT_EQ(processes_->listed(), 2u);
  // An instance that was made after the device was opened.
  gpu_.compute = {{12, 500, 7, 0}};
  EXPECT_EQ(read()[0].domain, model::DomainId{2});
}

TEST_F(GpuProcessesTest, IgnoresStaleSamples) {
  gpu_.compute = {{10, 500, kNone, kNone}};
  read();
  fake_.pass(5s);
  busy(10, 80, 100ms);
  busy(10, 10, 30s);     // before the interval
  busy(10, 10, -3600s);  // in the future
  EXPECT_DOUBLE_EQ(read()[0].compute_utilisation.value(), 0.8);
  fake_.pass(30s);
  EXPECT_EQ(read()[0].compute_utilisation, 0.0);  // nothing new
}

TEST_F(GpuProcessesTest, AnImpossibleUtilisationIsUnknownAndNotZero) {
  gpu_.compute = {{10, 500, kNone, kNone}, {11, 500, kNone, kNone}};
  read();
  fake_.pass(5s);
  busy(10, 101, 100ms);
  busy(11, 50, 100ms);
  const auto uses = read();
  EXPECT_FALSE(uses[0].compute_utilisation);
  EXPECT_EQ(uses[1].compute_utilisation, 0.5);
}

TEST_F(GpuProcessesTest, WallClockSetBackLosesAtMostOneInterval) {
  gpu_.compute = {{10, 500, kNone, kNone}};
  read();
  fake_.pass(5s);
  busy(10, 80, 100ms);
  read();
  fake_.set_wall_clock(-3600s);
  fake_.pass(30s);
  gpu_.utilisation.clear();
  busy(10, 30, 100ms);
  EXPECT_DOUBLE_EQ(read()[0].compute_utilisation.value(), 0.3);
}

TEST_F(GpuProcessesTest, UtilisationUnknownIsAbsent) {
  gpu_.compute = {{10, 500, kNone, kNone}};
  read();
  fake_.pass(5s);
  gpu_.utilisation_code = abi::Return::kNotSupported;
  EXPECT_FALSE(read()[0].compute_utilisation);
  gpu_.utilisation_code = abi::Return::kNotFound;  // no process was busy
  fake_.pass(30s);
  EXPECT_EQ(read()[0].compute_utilisation, 0.0);
  fake_.pass(30s);
  api_.process_utilisation = nullptr;
  EXPECT_FALSE(read()[0].compute_utilisation);
}

TEST_F(GpuProcessesTest, AsksRarelyHowBusyALoneProcessIs) {
  read();
  gpu_.compute = {{10, 500, kNone, kNone}};
  std::vector<std::optional<double>> reported;
  for (int second = 0; second < 75; second += 5) {
    fake_.pass(5s);
    busy(10, second < 40 ? 20 : 60, 2500ms);
    reported.push_back(read()[0].compute_utilisation);
  }
  EXPECT_EQ(gpu_.utilisation_reads, 3);
  EXPECT_FALSE(reported[0]);  // it is new
  EXPECT_DOUBLE_EQ(reported[1].value(), 0.2);
  EXPECT_FALSE(reported[2]);
  EXPECT_DOUBLE_EQ(reported[7].value(), 0.2);
  EXPECT_DOUBLE_EQ(reported[13].value(), 0.6);  // all of the 30 s before, and nothing else
}

TEST_F(GpuProcessesTest, ANewProcessHasNoUtilisationUntilItWasListedForAWhole) {
  gpu_.compute = {{10, 500, kNone, kNone}};
  read();
  fake_.pass(5s);
  gpu_.compute.push_back({11, 500, kNone, kNone});
  busy(10, 30, 1s);
  busy(11, 60, 2s);  // its place in the driver's buffer was another process's
  auto both = read();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_DOUBLE_EQ(both[0].compute_utilisation.value(), 0.3);
  EXPECT_FALSE(both[1].compute_utilisation);
  fake_.pass(1s);
  both = read();  // too soon: the driver may not have sampled each of them
  EXPECT_FALSE(both[0].compute_utilisation);
  fake_.pass(3s);
  busy(10, 40, 1s);
  busy(11, 50, 1s);
  both = read();
  EXPECT_DOUBLE_EQ(both[0].compute_utilisation.value(), 0.4);
  EXPECT_DOUBLE_EQ(both[1].compute_utilisation.value(), 0.5);
}

TEST_F(GpuProcessesTest, MoreProcessesThanRoom) {
  for (unsigned i = 0; i < 200; ++i) gpu_.compute.push_back({1000 + i, i, kNone, kNone});
  EXPECT_EQ(read().size(), 200u);
  EXPECT_EQ(read().size(), 200u);
}

TEST_F(GpuProcessesTest, MeterSeparatesUnsupportedFailedAndEmpty) {
  NvmlOptions options;
  options.clock = fake_.seam();
  auto meter = NvmlMeter::open(api_, options);
  ASSERT_TRUE(meter);
  model::Readings counts;
  auto uses = (*meter)->read_processes(counts);
  ASSERT_TRUE(uses && *uses);
  EXPECT_TRUE((*uses)->empty());
  gpu_.processes_code = abi::Return::kNotSupported;
  EXPECT_FALSE((*meter)->read_processes(counts));
  gpu_.processes_code = abi::Return::kNoPermission;
  uses = (*meter)->read_processes(counts);
  ASSERT_TRUE(uses && !*uses);
  EXPECT_EQ(uses->error().code, Errc::kPermissionDenied);
}

}  // namespace
}  // namespace jouleprof::meters::nvml
