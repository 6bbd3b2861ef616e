// A program that computes its windows from the readings of `jouleprof run`.
#include <gmock/gmock.h>

#include <thread>

#include "session/windows/under_run_fixture.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(UnderRunTest, AnEnergyIsPowerTimesTime) {
  const auto monitor = connect();
  EXPECT_EQ(monitor->kind(), "run");
  EXPECT_THAT(devices(*monitor), ElementsAre("gpu0", "gpu1"));
  const HostTime begin = HostClock::now();
  std::this_thread::sleep_for(60ms);
  const HostTime end = HostClock::now();
  const auto energies = monitor->energy(begin, end, 20s);
  ASSERT_TRUE(energies) << energies.error().message;
  ASSERT_THAT(*energies, SizeIs(2));
  for (int i = 0; i < 2; ++i) {
    const auto& m = (*energies)[static_cast<std::size_t>(i)];
    ASSERT_TRUE(m) << m.error().message;
    const double truth = 100 * (i + 1) * seconds(end - begin);
    EXPECT_NEAR(m->energy.joules(), truth, m->error.joules());
    EXPECT_NEAR(m->energy.joules(), truth, 0.02 * truth);
  }
  // Reported energies never change.
  EXPECT_EQ((*monitor->energy(begin, end, 20s))[0]->energy, (*energies)[0]->energy);
  EXPECT_EQ(monitor->energy(end, begin, 1s).error().code, Errc::kInvalidArgument);
}

TEST_F(UnderRunTest, AQuestionHasTheToolRead) {
  stop();
  reads_only_when_asked_ = true;
  start();
  const auto monitor = connect();
  const int before = reads_;
  const HostTime now = HostClock::now();
  ASSERT_TRUE(monitor->energy(now - 10ms, now, 20s));
  EXPECT_GT(reads_, before);
}

// What was read before it came is sent to a program.
TEST_F(UnderRunTest, AWindowMayHaveBegunBeforeTheMonitor) {
  const auto first = connect();
  std::this_thread::sleep_for(50ms);
  const HostTime begin = HostClock::now() - 500ms;
  for (int i = 0; i < 2; ++i) {
    const auto energies = connect()->energy(begin, begin + 400ms, 20s);
    ASSERT_TRUE(energies) << energies.error().message;
    ASSERT_TRUE((*energies)[0]) << (*energies)[0].error().message;
    EXPECT_NEAR((*energies)[0]->energy.joules(), 40, 0.5);
  }
}

TEST_F(UnderRunTest, ATotalIsOfTheClientsOwnWindows) {
  const auto one = connect();
  const auto two = connect();
  const auto step = one->name("step");
  const auto other = two->name("other");
  EXPECT_EQ(step, other);  // each numbers its own
  EXPECT_EQ(one->total(step, 10s).error().code, Errc::kNotFound);
  const HostTime begin = HostClock::now() - 400ms;
  one->add({ns(begin), ns(begin + 100ms), step, 0});
  one->add({ns(begin + 200ms), ns(begin + 300ms), step, 0});
  two->add({ns(begin), ns(begin + 300ms), other, 0});
  const auto total = one->total(step, 20s);
  ASSERT_TRUE(total) << total.error().message;
  EXPECT_EQ(total->count, 2U);
  EXPECT_EQ(total->length, 200ms);
  ASSERT_THAT(total->energies, SizeIs(2));
  EXPECT_NEAR(total->energies[0]->energy.joules(), 20, 0.5);
  EXPECT_NEAR(total->energies[1]->energy.joules(), 40, 1);
  EXPECT_NEAR(two->total(other, 20s)->energies[0]->energy.joules(), 30, 0.5);
}

TEST_F(UnderRunTest, ListsWhatTheProgramCanSeeOrNames) {
  const auto only = [](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return "GPU-1";
    return std::nullopt;
  };
  EXPECT_THAT(devices(*connect({}, only)), ElementsAre("gpu1"));
  EXPECT_THAT(devices(*connect({.words = {"gpu0"}}, only)), ElementsAre("gpu0"));
  const auto unmeasured = connect({.words = {"gpu1", "gpu2"}});
  EXPECT_THAT(devices(*unmeasured), ElementsAre("gpu1", "gpu2"));
  const HostTime now = HostClock::now();
  const auto energies = unmeasured->energy(now - 100ms, now, 20s);
  ASSERT_TRUE(energies);
  EXPECT_NEAR((*energies)[0]->energy.joules(), 20, 0.5);
  EXPECT_THAT((*energies)[1].error().message, HasSubstr("does not measure it"));
  const auto unknown = open_under_run(server_->path(), {.words = {"gpu9"}}, none);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kInvalidArgument);
}

TEST_F(UnderRunTest, ManyAskAtOnce) {
  const auto monitor = connect();
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const HostTime end = HostClock::now();
        monitor->add({ns(end - 20ms), ns(end), monitor->name("x"), 0});
        const auto energies = monitor->energy(end - 20ms, end, 20s);
        ASSERT_TRUE(energies) << energies.error().message;
        EXPECT_NEAR((*energies)[0]->energy.joules(), 2, 0.2);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(monitor->total(monitor->name("x"), 20s)->count, 80U);
}

TEST_F(UnderRunTest, ASnapshotIsWhatIsKnownNow) {
  const auto monitor = connect();
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  const auto snapshot = monitor->snapshot();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ASSERT_EQ(snapshot->domains.size(), monitor->domains().size());
  for (std::size_t i = 0; i < snapshot->domains.size(); ++i) {
    const auto& d = snapshot->domains[i];
    EXPECT_EQ(d.domain.device, monitor->domains()[i].device);
    EXPECT_EQ(d.power, Power::watts(i == 0 ? 100 : 200));
    ASSERT_TRUE(d.energy) << d.reason;
    EXPECT_NEAR(d.energy->energy.joules(),
                d.power->watts() * seconds(d.energy_end - d.energy_begin), 0.5);
    EXPECT_GT(d.energy->energy, Energy{});
  }
}

}  // namespace
}  // namespace jouleprof::session
