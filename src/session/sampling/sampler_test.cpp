#include "session/sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "session/sampling/sampling_fixture.h"

namespace jouleprof::session {
namespace {

using model::DomainId;
using model::SensorId;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

// Waits until enough has been read, however slow the machine is.
template <typename F>
void take_until(Sampler& sampler, Sampled& got, F enough) {
  while (!enough()) {
    sampler.take(got);
    std::this_thread::sleep_for(milliseconds{1});
  }
}

TEST(Sampler, JoinsMetersInOneNumbering) {
  Sampler sampler(
      meters_of(std::make_unique<FakeMeter>("gpu0"), std::make_unique<FakeMeter>("gpu1")),
      Duration{});
  ASSERT_EQ(sampler.domains().size(), 4u);
  EXPECT_EQ(sampler.domains()[3].id, DomainId{3});
  EXPECT_EQ(sampler.domains()[3].parent, DomainId{2});
  ASSERT_EQ(sampler.sensors().size(), 6u);
  EXPECT_EQ(sampler.sensors()[4].id, SensorId{4});
  EXPECT_EQ(sampler.sensors()[4].domain, DomainId{2});

  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] {
    std::set<SensorId> seen;
    for (const auto& r : got.readings.counters) seen.insert(r.sensor);
    for (const auto& r : got.readings.powers) seen.insert(r.sensor);
    return seen.size() == 6;
  });
  sampler.stop(seconds{20}, got);
  for (const auto& r : got.readings.counters) {
    EXPECT_TRUE(r.sensor == SensorId{0} || r.sensor == SensorId{3});
  }
  EXPECT_THAT(got.warnings, IsEmpty());
}

TEST(Sampler, LeavesOutWhatIsNotKept) {
  Sampler sampler(
      meters_of(std::make_unique<FakeMeter>("gpu0"), std::make_unique<FakeMeter>("gpu1")),
      Duration{}, [](const model::Domain& d) { return d.id == DomainId{3}; });
  ASSERT_EQ(sampler.domains().size(), 1u);
  EXPECT_FALSE(sampler.domains()[0].parent);  // what contained it is not there
  ASSERT_EQ(sampler.sensors().size(), 1u);
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return !got.readings.powers.empty(); });
  sampler.stop(seconds{20}, got);
  EXPECT_THAT(got.readings.counters, IsEmpty());
  for (const auto& r : got.readings.powers) EXPECT_EQ(r.sensor, SensorId{5});
}

TEST(Sampler, DoesNotReadWhatIsNotKept) {
  const auto memory_only = std::make_shared<NamingMeter::Counts>();
  const auto nothing = std::make_shared<NamingMeter::Counts>();
  Sampler sampler(
      meters_of(std::make_unique<NamingMeter>(memory_only), std::make_unique<NamingMeter>(nothing)),
      milliseconds{5}, [](const model::Domain& d) { return d.id == DomainId{1}; });
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.readings.powers.size() >= 3; });
  sampler.read_soon();
  sampler.stop(seconds{20}, got);
  EXPECT_EQ((*memory_only)[0], 0);
  EXPECT_GE((*memory_only)[1], 3);
  EXPECT_EQ((*nothing)[0] + (*nothing)[1], 0);
  EXPECT_THAT(got.warnings, IsEmpty());
}

TEST(Sampler, ReadsEveryProbeALastTime) {
  auto meter = std::make_unique<FakeMeter>("gpu0", "GPU-0", std::chrono::hours{1});
  Sampler sampler(meters_of(std::move(meter)), Duration{});
  Sampled got;
  sampler.start();
  take_until(sampler, got,
             [&] { return !got.readings.counters.empty() && !got.readings.powers.empty(); });
  const HostTime end = HostClock::now();
  sampler.stop(seconds{20}, got);
  ASSERT_EQ(got.readings.counters.size(), 2u);  // one at the beginning, one at the end
  EXPECT_GE(got.readings.counters.back().before, end);
  EXPECT_GE(got.readings.powers.back().at, end);
}

// Many boards, each with a counter that waits for its next update where it is read before its time.
class WaitingMeter final : public FakeMeter {
 public:
  static constexpr std::size_t kBoards = 30;
  WaitingMeter() {
    probes_.assign(kBoards, {"counter", std::chrono::hours{1}});
    due_.resize(kBoards);
    is_waiting_.resize(kBoards);
  }
  HostTime read(std::size_t index, model::Readings& out) override {
    const HostTime now = HostClock::now();
    is_waiting_[index] = due_[index] > now + milliseconds{1};
    if (is_waiting_[index]) return due_[index] = now + milliseconds{100};
    out.counters.push_back({SensorId{0}, now, HostClock::now(), Energy::joules(1)});
    return due_[index] = now + std::chrono::hours{1};
  }
  bool is_waiting(std::size_t index) const override { return is_waiting_[index]; }

 private:
  std::vector<HostTime> due_;
  std::vector<bool> is_waiting_;
};

// One after another they would take three seconds, in which a driver's buffer of 2 s overflows.
TEST(Sampler, CountersWaitForTheirUpdatesTogether) {
  Sampler sampler(meters_of(std::make_unique<WaitingMeter>()), Duration{});
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.readings.counters.size() == WaitingMeter::kBoards; });
  const HostTime begin = HostClock::now();
  const auto numbers = sampler.read_soon();
  take_until(sampler, got, [&] { return sampler.has_read(numbers); });
  EXPECT_GE(HostClock::now() - begin, milliseconds{98});
  EXPECT_LT(HostClock::now() - begin, seconds{2});
  sampler.take(got);
  EXPECT_EQ(got.readings.counters.size(), 2 * WaitingMeter::kBoards);
  sampler.stop(seconds{2}, got);
  EXPECT_EQ(got.readings.counters.size(), 3 * WaitingMeter::kBoards);
  EXPECT_THAT(got.warnings, IsEmpty());
}

TEST(Sampler, AMeterThatHangsBlocksNoOther) {
  const auto gate = std::make_shared<Gate>();
  const auto destroyed = std::make_shared<Gate>();
  Sampler sampler(meters_of(std::make_unique<HangingMeter>(gate, destroyed),
                            std::make_unique<FakeMeter>("gpu1")),
                  Duration{});
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.readings.counters.size() >= 3; });
  sampler.stop(milliseconds{50}, got);
  for (const auto& r : got.readings.counters) EXPECT_EQ(r.sensor, SensorId{3});
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_THAT(got.warnings[0].text, HasSubstr("fake: 'gpu7 counter' has not answered"));
  gate->open();
  destroyed->wait();  // it lives until its call returns, and not longer
}

TEST(Sampler, FailuresArePassedOn) {
  Sampler sampler(meters_of(std::make_unique<FakeMeter>(), std::make_unique<FailingMeter>()),
                  Duration{});
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.readings.failures.size() >= 4; });
  sampler.stop(seconds{20}, got);
  EXPECT_EQ(got.readings.failures[0].sensor, SensorId{3});
  EXPECT_EQ(got.readings.failures[0].error.message, "GPU is lost");
}

TEST(Sampler, ProcessesOnDevicesAreRenumbered) {
  auto meter = std::make_unique<ProcessMeter>([] {
    return std::vector<model::GpuProcessUse>{{42, DomainId{1}, HostTime{}, 0.5, {}}};
  });
  Sampler sampler(meters_of(std::make_unique<FakeMeter>(), std::move(meter)), milliseconds{5});
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.gpu_processes.size() >= 2; });
  sampler.stop(seconds{20}, got);
  EXPECT_EQ(got.gpu_processes[0].pid, 42);
  EXPECT_EQ(got.gpu_processes[0].domain, DomainId{3});
}

// Lists no process, which is a reading of its sensor 2.
class EmptyListMeter final : public FakeMeter {
 public:
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override {
    out.gauges.push_back({SensorId{2}, HostClock::now(), 0});
    return std::vector<model::GpuProcessUse>{};
  }
};

TEST(Sampler, AnEmptyListOfProcessesIsAReading) {
  Sampler sampler(meters_of(std::make_unique<FakeMeter>(), std::make_unique<EmptyListMeter>()),
                  milliseconds{5});
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.readings.gauges.size() >= 2; });
  sampler.stop(seconds{20}, got);
  for (const auto& r : got.readings.gauges) EXPECT_EQ(r.sensor, SensorId{5});
  EXPECT_TRUE(got.gpu_processes.empty());
}

TEST(Sampler, AMeterWithoutProcessesWarnsOnce) {
  auto meter = std::make_unique<ProcessMeter>([]() -> Result<std::vector<model::GpuProcessUse>> {
    return fail(Errc::kUnsupported, "no accounting");
  });
  Sampler sampler(meters_of(std::move(meter)), milliseconds{1});
  Sampled got;
  sampler.start();
  take_until(sampler, got, [&] { return got.readings.counters.size() >= 5; });
  sampler.stop(seconds{20}, got);
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_THAT(got.warnings[0].text, HasSubstr("no accounting"));
}

// A driver that keeps samples until it is asked.
class BufferMeter final : public FakeMeter {
 public:
  HostTime read(std::size_t index, model::Readings& out) override {
    const HostTime next = FakeMeter::read(index, out);
    if (index == 1) out.powers.insert(out.powers.begin(), 3, out.powers.front());
    return next;
  }
};

TEST(Sampler, ReportsThatABufferWasEmptied) {
  std::atomic<int> reported{0};
  Sampled got;
  Sampler polled(meters_of(std::make_unique<FakeMeter>()), Duration{});
  polled.on_news([&reported] { ++reported; });
  polled.start();
  take_until(polled, got, [&got] { return got.readings.powers.size() > 4; });
  EXPECT_FALSE(polled.has_buffer());
  polled.stop(seconds{10}, got);
  EXPECT_EQ(reported, 0);

  Sampler sampler(meters_of(std::make_unique<BufferMeter>()), Duration{});
  sampler.on_news([&reported] { ++reported; });
  sampler.start();
  while (reported == 0) std::this_thread::yield();
  while (!sampler.has_buffer()) std::this_thread::yield();
  sampler.stop(seconds{10}, got);
  const int before = reported;
  std::this_thread::sleep_for(milliseconds{20});
  EXPECT_EQ(reported, before);
}

}  // namespace
}  // namespace jouleprof::session
