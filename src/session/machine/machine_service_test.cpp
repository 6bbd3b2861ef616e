#include "session/machine/machine_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "analysis/live/family_sum_test.h"
#include "session/sampling/sampling_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using analysis::EnergyAccounts;
using analysis::Family;
using analysis::MachineState;

// Runs a service until `done`, which sees each tick.
void run(ServiceOptions options, Meters meters,
         const std::function<bool(const MachineState&, const EnergyAccounts&)>& done,
         Duration tick = 40ms) {
  std::stop_source stop;
  options.tick = tick;
  options.on_tick = [&](const MachineState& state, const EnergyAccounts& accounts) {
    if (done(state, accounts)) stop.request_stop();
  };
  auto service = MachineService::open(std::move(options), std::move(meters));
  ASSERT_TRUE(service) << service.error().message;
  (*service)->run(stop.get_token());
}

// This process holds the GPU, alone or with another.
std::unique_ptr<ProcessMeter> held_by(std::vector<model::GpuProcessUse> uses,
                                      std::optional<double> utilisation = {}) {
  return std::make_unique<ProcessMeter>(
      [uses = std::move(uses)]() -> Result<std::vector<model::GpuProcessUse>> {
        auto now = uses;
        for (auto& use : now) use.at = HostClock::now();
        return now;
      },
      utilisation);
}

model::GpuProcessUse use(pid_t pid, std::optional<double> utilisation) {
  return {pid, model::DomainId{0}, {}, utilisation, std::uint64_t{1} << 20};
}

TEST(MachineService, TheOnlyProcessOnAGpuIsChargedWithIt) {
  if (spans::in_pid_namespace()) GTEST_SKIP() << "the driver's pids are not valid here";
  const std::string self = std::to_string(getpid());
  run({}, meters_of(held_by({use(getpid(), 0.1)})), [&](const auto& state, const auto& accounts) {
    EXPECT_LT(state.ticks, 2000u);
    for (const auto family : analysis::kAllFamilies) {
      EXPECT_EQ(sum_of(accounts, family, 0), accounts.domains()[0].total);
    }
    const auto& entities = accounts.family(Family::kProcess)->entities;
    const auto found = entities.find(self);
    return found != entities.end() && found->second.energies[0] &&
           found->second.energies[0]->energy > Energy::joules(5);
  });
}

// Its sensors fail after so many reads of the counter, each of which shows 1 J more.
class LostMeter final : public FakeMeter {
 public:
  static constexpr int kReads = 200;
  HostTime read(std::size_t index, model::Readings& out) override {
    if (index == 0) ++reads_;
    if (reads_ <= kReads) return FakeMeter::read(index, out);
    const HostTime now = HostClock::now();
    out.failures.push_back({model::SensorId{static_cast<std::uint32_t>(index)}, now,
                            Error{Errc::kUnavailable, "GPU is lost"}});
    return now + 5ms;
  }

 private:
  std::atomic<int> reads_{0};
};

TEST(MachineService, ALostDeviceIsChargedUpToItsLastReadings) {
  std::optional<Energy> first;
  MachineState last;
  Energy total;
  run(
      {}, meters_of(std::make_unique<LostMeter>()),
      [&](const auto& state, const auto& accounts) {
        last = state;
        total = accounts.domains()[0].total;
        if (!first && state.domains[0].counter) first = state.domains[0].counter->total - total;
        return !state.domains[0].reason.empty() && state.domains[0].counted;
      },
      370ms);
  ASSERT_TRUE(first && last.domains[0].counter);
  EXPECT_GT(*first + total, Energy::joules(LostMeter::kReads - 10));
  EXPECT_NEAR(last.domains[0].counter->total.joules(), (*first + total).joules(), 1);
}

std::uint64_t ticks_in(Duration time, bool is_watched) {
  std::stop_source stop;
  std::uint64_t ticks = 0;
  ServiceOptions options;
  options.tick = 1h;
  options.lively_tick = 5ms;
  options.is_watched = [&] { return is_watched; };
  options.on_tick = [&](const MachineState& state, const EnergyAccounts&) {
    ticks = state.ticks;
    if (ticks == 30) stop.request_stop();
  };
  auto service = MachineService::open(std::move(options), meters_of(held_by({})));
  if (!service) return 0;
  std::jthread timer([&](const std::stop_token& over) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, over, time, [] { return false; });
    stop.request_stop();
  });
  (*service)->run(stop.get_token());
  return ticks;
}

TEST(MachineService, TicksAreRareOnceItIsNeitherNewNorWatched) {
  EXPECT_LE(ticks_in(1s, false), 12u);
  EXPECT_EQ(ticks_in(1min, true), 30u);
}

TEST(MachineService, CountersThatAreNotShownAreKeptWhenATickIsRequested) {
  const TempTree tree;
  std::stop_source stop;
  ServiceOptions options;
  options.state = tree / "state";
  options.tick = options.lively_tick = 2ms;
  options.keeps_all = [] { return false; };
  MachineService* running = nullptr;
  std::uint64_t ticks = 0;
  HostTime measured{};
  std::set<std::uint64_t> kept;
  options.on_tick = [&](const MachineState& state, const EnergyAccounts&) {
    ticks = state.ticks;
    measured = state.now;
    if (ticks == 20) running->request_tick(HostClock::now());
    if (ticks == 30) stop.request_stop();
  };
  // After the tick, and before the next.
  options.is_watched = [&] {
    if (ticks == 15 && kept.count(15) == 0) running->request_tick(measured);
    return true;
  };
  options.on_kept = [&](const MachineState& state, const EnergyAccounts&) {
    EXPECT_EQ(state.ticks, ticks);
    kept.insert(ticks);
    const auto saved = StateFile::read(tree / "state");
    ASSERT_TRUE(saved && saved->is_object());
    EXPECT_EQ(saved->at("saved"), state.snapshot.time.time_since_epoch().count());
  };
  auto service = MachineService::open(std::move(options), meters_of(held_by({})));
  ASSERT_TRUE(service) << service.error().message;
  running = service->get();
  running->run(stop.get_token());
  EXPECT_EQ(kept, (std::set<std::uint64_t>{1, 15, 21}));
}

TEST(MachineService, AStateThatCannotBeReadIsKept) {
  const TempTree tree;
  const std::string later = R"({"schema": 1000000})";
  tree.write("state", later);
  ServiceOptions options;
  options.state = tree / "state";
  std::vector<std::string> warnings;
  run(std::move(options), meters_of(held_by({})), [&](const auto& state, const auto&) {
    warnings = state.warnings;
    return state.ticks > 1;
  });
  EXPECT_THAT(warnings, testing::Contains(testing::HasSubstr("It is kept as")));
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(tree / ".")) {
    found.push_back(read_file(entry.path()).value_or(""));
  }
  EXPECT_THAT(found, testing::Contains(later));
  EXPECT_EQ(found.size(), 2u);
}

TEST(MachineService, ATickFollowsARequestAndNoneThatIsFreshEnough) {
  std::stop_source stop;
  ServiceOptions options;
  options.tick = 1h;
  options.lively_tick = 1h;
  MachineService* running = nullptr;
  std::vector<HostTime> requested;
  std::vector<HostTime> measured;
  options.on_tick = [&](const MachineState& state, const EnergyAccounts&) {
    measured.push_back(state.now);
    if (measured.size() == 5) return stop.request_stop(), void();
    running->request_tick(state.now);  // is there already
    std::jthread([&] {
      requested.push_back(HostClock::now());
      running->request_tick(requested.back());
    }).join();
  };
  auto service = MachineService::open(std::move(options), meters_of(held_by({})));
  ASSERT_TRUE(service) << service.error().message;
  running = service->get();
  running->run(stop.get_token());
  ASSERT_EQ(measured.size(), 5u);
  for (std::size_t i = 0; i < requested.size(); ++i) {
    EXPECT_LT(measured[i], requested[i]);
    EXPECT_GE(measured[i + 1], requested[i]);
  }
}

TEST(MachineService, SharesOfAGpuFollowTheUtilisation) {
  if (spans::in_pid_namespace()) GTEST_SKIP() << "the driver's pids are not valid here";
  const std::string self = std::to_string(getpid());
  const std::string parent = std::to_string(getppid());
  run({}, meters_of(held_by({use(getpid(), 0.75), use(getppid(), 0.25)})),
      [&](const auto& state, const auto& accounts) {
        EXPECT_LT(state.ticks, 2000u);
        const auto& entities = accounts.family(Family::kProcess)->entities;
        const auto mine = entities.find(self);
        if (mine == entities.end() || !mine->second.energies[0]) return false;
        const auto theirs = entities.find(parent);
        EXPECT_TRUE(theirs != entities.end() && theirs->second.energies[0]);
        const auto& a = mine->second.energies[0]->energy;
        const auto& b = theirs->second.energies[0]->energy;
        EXPECT_NEAR(a.joules(), 3 * b.joules(), 1e-4);
        return a > Energy::joules(3);
      });
}

TEST(MachineService, WhatIsHeldIsOfAllHoldersInEqualParts) {
  if (spans::in_pid_namespace()) GTEST_SKIP() << "the driver's pids are not valid here";
  ServiceOptions options;
  options.rest = [](const model::Domain&) { return std::optional(Power{}); };
  options.held = [](const model::Domain&) { return std::optional(Power::watts(1e6)); };
  run(std::move(options), meters_of(held_by({use(getpid(), 0.75), use(getppid(), 0.0)})),
      [&](const auto& state, const auto& accounts) {
        EXPECT_LT(state.ticks, 2000u);
        const auto& entities = accounts.family(Family::kProcess)->entities;
        const auto mine = entities.find(std::to_string(getpid()));
        const auto theirs = entities.find(std::to_string(getppid()));
        if (mine == entities.end() || theirs == entities.end()) return false;
        if (!mine->second.energies[0] || !theirs->second.energies[0]) return false;
        const auto& a = mine->second.energies[0]->energy;
        const auto& b = theirs->second.energies[0]->energy;
        if (a < Energy::joules(20)) return false;
        EXPECT_NEAR(b.joules(), a.joules(), 10);  // but for the time before both were listed
        EXPECT_EQ(sum_of(accounts, Family::kProcess, 0), accounts.domains()[0].total);
        return true;
      });
}

constexpr pid_t kNoProcess = std::numeric_limits<pid_t>::max();  // no process has it
constexpr Duration kLongTick = 800ms;  // longer than the board's utilisation is late

TEST(MachineService, WhatAnUnknownProcessUsedIsUnattributed) {
  if (spans::in_pid_namespace()) GTEST_SKIP() << "the driver's pids are not valid here";
  run(
      {}, meters_of(held_by({use(getpid(), 0.25), use(kNoProcess, {})}, 1.0)),
      [&](const auto& state, const auto& accounts) {
        EXPECT_LT(state.ticks, 2000u);
        const auto& domain = accounts.domains()[0];
        const auto& entities = accounts.family(Family::kProcess)->entities;
        const auto mine = entities.find(std::to_string(getpid()));
        if (mine == entities.end() || !mine->second.energies[0]) return false;
        if (domain.total < Energy::joules(300)) return false;
        // But for the time before both were listed.
        EXPECT_NEAR(mine->second.energies[0]->energy.joules() / domain.total.joules(), 0.25, 0.1);
        EXPECT_NEAR(domain.unattributed.joules() / domain.total.joules(), 0.75, 0.1);
        EXPECT_EQ(sum_of(accounts, Family::kProcess, 0), domain.total);
        return true;
      },
      kLongTick);
}

TEST(MachineService, WhatAnUnknownProcessUsedIsOfTheJobThatHasTheGpu) {
  if (spans::in_pid_namespace()) GTEST_SKIP() << "the driver's pids are not valid here";
  const TempTree tree{{"0", "4711\n"}, {"1", "two words\n"}};
  ServiceOptions options;
  options.job_mapping = tree.root();
  run(
      std::move(options), meters_of(held_by({use(getpid(), 0.25), use(kNoProcess, {})}, 1.0)),
      [&](const auto& state, const auto& accounts) {
        EXPECT_LT(state.ticks, 2000u);
        const auto& domain = accounts.domains()[0];
        const auto& jobs = accounts.family(Family::kJob)->entities;
        const auto found = jobs.find("4711");
        if (found == jobs.end() || !found->second.energies[0]) return false;
        if (domain.total < Energy::joules(300)) return false;
        EXPECT_NEAR(found->second.energies[0]->energy.joules() / domain.total.joules(), 1, 0.1);
        EXPECT_THAT(state.warnings, testing::Contains(testing::HasSubstr("a line is no job id")));
        return true;
      },
      kLongTick);
}

TEST(MachineService, WithoutAnyProcessEnergyIsUnattributed) {
  run({}, meters_of(held_by({})), [](const auto& state, const auto& accounts) {
    EXPECT_LT(state.ticks, 2000u);
    EXPECT_EQ(accounts.domains()[0].unattributed, accounts.domains()[0].total);
    return accounts.domains()[0].total > Energy::joules(3);
  });
}

TEST(MachineService, PowerAtRestIsALevelOfItsOwn) {
  ServiceOptions options;
  options.rest = [](const model::Domain& d) {
    return d.parent ? std::nullopt : std::optional(Power::watts(1));
  };
  run(std::move(options), meters_of(held_by({})), [](const auto& state, const auto& accounts) {
    EXPECT_LT(state.ticks, 2000u);
    const auto& domain = accounts.domains()[0];
    EXPECT_FALSE(accounts.domains()[1].rest);  // its memory's is unknown
    if (domain.total < Energy::joules(3)) return false;
    EXPECT_GT(*domain.rest, Energy{});
    EXPECT_EQ(*domain.rest + domain.unattributed, domain.total);
    return true;
  });
}

TEST(MachineService, AGpuThatIsLostHasNoEnergyAndHoldsUpNothing) {
  run({}, meters_of(std::make_unique<FailingMeter>(), std::make_unique<FakeMeter>("gpu1", "GPU-1")),
      [](const auto& state, const auto& accounts) {
        EXPECT_FALSE(state.domains[0].counted);
        EXPECT_FALSE(state.domains[0].reported);
        EXPECT_EQ(accounts.domains()[0].total, Energy{});
        return accounts.domains()[2].total > Energy::joules(3);
      });
}

// Answers all the time, and stands still after a while.
class StillMeter final : public FakeMeter {
 public:
  StillMeter() {
    sensors_.resize(1);
    sensors_[0].traits.refresh = 1ms;
  }
  HostTime read(std::size_t index, model::Readings& out) override {
    const HostTime now = HostClock::now();
    if (index != 0) return now + 1h;
    const Duration counted = std::min(now - begin_, kMoves);
    out.counters.push_back(
        {model::SensorId{0}, now, HostClock::now(), Energy::joules(1000 + 50 * seconds(counted))});
    return now + 5ms;
  }

  static constexpr Duration kMoves = 600ms;

 private:
  HostTime begin_ = HostClock::now();
};

TEST(MachineService, ASensorThatStandsStillReportsNothing) {
  const HostTime begin = HostClock::now();
  ServiceOptions options;
  std::vector<std::string> said;
  options.on_event = [&](const std::string& event) { said.push_back(event); };
  bool has_counted = false;
  int still = 0;
  run(std::move(options), meters_of(std::make_unique<StillMeter>()),
      [&](const auto& state, const auto&) {
        const Duration passed = HostClock::now() - begin;
        has_counted |= state.domains[0].counted;
        if (passed < StillMeter::kMoves + 2s) return false;
        EXPECT_FALSE(state.domains[0].reported) << seconds(passed);
        ++still;
        return passed > 6s;
      });
  EXPECT_TRUE(has_counted);
  EXPECT_GT(still, 1);
  ASSERT_EQ(said.size(), 1u) << testing::PrintToString(said);
  EXPECT_THAT(said[0], testing::HasSubstr("does not report any more ("));
}

TEST(MachineService, NamesTheJobsOfAGpu) {
  const TempTree tree{{"0", "4711\n"}};
  ServiceOptions options;
  options.job_mapping = tree.root();
  run(std::move(options), meters_of(held_by({use(getpid(), 0.5)})),
      [&](const auto& state, const auto& accounts) {
        EXPECT_LT(state.ticks, 2000u);
        EXPECT_EQ(state.allocations.size(), 1u);
        EXPECT_EQ(state.allocations.at(0).job, "4711");
        if (spans::in_pid_namespace()) return true;
        const auto& jobs = accounts.family(Family::kJob)->entities;
        const auto found = jobs.find("4711");
        return found != jobs.end() && found->second.energies[0];
      });
}

TEST(MachineService, AGpuThatGoesToAnotherJobEndsATick) {
  const TempTree tree{{"0", "first\n"}};
  std::stop_source stop;
  ServiceOptions options;
  options.job_mapping = tree.root();
  options.tick = options.lively_tick = 20s;
  options.on_tick = [&](const MachineState& state, const EnergyAccounts& accounts) {
    if (state.ticks == 1) tree.write("0", "second\n");
    if (state.ticks < 2) return;
    const auto& jobs = accounts.family(Family::kJob)->entities;
    EXPECT_TRUE(jobs.contains("first"));
    EXPECT_FALSE(jobs.contains("second"));
    stop.request_stop();
  };
  auto service = MachineService::open(std::move(options), meters_of(held_by({}, 1.0)));
  ASSERT_TRUE(service) << service.error().message;
  (*service)->run(stop.get_token());
}

TEST(MachineService, SettlesWindows) {
  std::stop_source stop;
  ServiceOptions options;
  options.tick = 40ms;
  MachineService* running = nullptr;
  std::optional<analysis::MachineWindow> window;
  options.on_tick = [&](const MachineState& state, const EnergyAccounts& accounts) {
    EXPECT_LT(state.ticks, 2000u);
    auto& windows = running->windows();
    if (!windows.find("epoch") && accounts.domains()[0].total > Energy::joules(1)) {
      EXPECT_TRUE(windows.begin("epoch", HostClock::now()));
    } else if (const auto found = windows.find("epoch")) {
      // Long enough for a reading within; asked again, the end stays.
      if (HostClock::now() - found->begin > 50ms) {
        EXPECT_TRUE(windows.end("epoch", HostClock::now()));
      }
      if (found->is_settled) window = *found;
    }
    if (window || state.ticks >= 2000) stop.request_stop();
  };
  auto service = MachineService::open(std::move(options), meters_of(held_by({})));
  ASSERT_TRUE(service) << service.error().message;
  running = service->get();
  running->run(stop.get_token());
  ASSERT_TRUE(window);
  ASSERT_EQ(window->energies.size(), 2u);
  for (const auto& energy : window->energies) {
    ASSERT_TRUE(energy) << energy.error().message;
    EXPECT_GT(energy->energy, Energy{});
  }
}

TEST(MachineService, AnUnknownDeviceIsAnError) {
  ServiceOptions options;
  options.devices = {"7"};
  EXPECT_EQ(MachineService::open(std::move(options), meters_of(std::make_unique<FakeMeter>()))
                .error()
                .code,
            Errc::kInvalidArgument);
}

TEST(GpuUses, ProcessesAreIdentifiedWhileTheyLiveAndRemembered) {
  std::vector<model::Domain> domains(2);
  domains[1].id = model::DomainId{1};
  domains[1].parent = model::DomainId{0};
  std::set<pid_t> alive{1, 2};
  GpuUses uses(domains, {}, [&](pid_t pid) -> std::optional<GpuUses::Found> {
    if (!alive.contains(pid)) return std::nullopt;
    return GpuUses::Found{{static_cast<std::uint64_t>(100 + pid), pid, "p", {}}, HostTime{1s}};
  });
  const auto look = [&](int s, std::vector<std::pair<pid_t, std::optional<double>>> processes) {
    Sampled sampled;
    for (const auto& [pid, utilisation] : processes) {
      sampled.gpu_processes.push_back({pid,
                                       model::DomainId{pid == 2 ? 1u : 0u},
                                       HostTime{std::chrono::seconds{s}},
                                       utilisation,
                                       {}});
    }
    uses.append(sampled);
  };
  look(2, {{1, {}}, {2, {}}});
  look(6, {{1, 0.3}, {2, 0.1}});
  alive.clear();
  look(7, {{1, {}}, {2, {}}, {3, {}}});  // 3 was never seen alive
  auto slices = uses.slices(0, HostTime{2s}, HostTime{6s});
  ASSERT_EQ(slices.size(), 1u);
  ASSERT_EQ(slices[0].claims.size(), 2u);
  EXPECT_EQ(uses.worker(slices[0].claims[0].candidates.front()).process, 101u);
  EXPECT_EQ(slices[0].claims[0].weight, 0.3);
  EXPECT_EQ(uses.worker(slices[0].claims[1].candidates.front()).pid, 2);  // of the domain within
  slices = uses.slices(0, HostTime{6s}, HostTime{7s});
  ASSERT_EQ(slices.back().claims.size(), 1u);
  EXPECT_EQ(slices.back().claims[0].candidates.back(), analysis::kUnidentified);
  const auto holders = uses.holders(0, HostTime{3s});
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].utilisation, 0.3);
  uses.forget_before(HostTime{100s});
  EXPECT_EQ(uses.holders(0, HostTime{3s}).size(), 2u);
}

// A driver goes on naming a process that has ended, and another program gets its pid.
TEST(GpuUses, APidThatIsGivenOutAgainIsNotTheOtherProgram) {
  const std::vector<model::Domain> domains(1);
  std::map<pid_t, std::pair<std::uint64_t, HostTime>> alive{{1, {101, HostTime{1s}}}};
  GpuUses uses(domains, {}, [&](pid_t pid) -> std::optional<GpuUses::Found> {
    const auto found = alive.find(pid);
    if (found == alive.end()) return std::nullopt;
    return GpuUses::Found{{found->second.first, pid, "p", {}}, found->second.second};
  });
  const auto look = [&](int s, const std::vector<pid_t>& pids) {
    Sampled sampled;
    for (const pid_t pid : pids) {
      sampled.gpu_processes.push_back(
          {pid, model::DomainId{0}, HostTime{std::chrono::seconds{s}}, 0.5, {}});
    }
    uses.append(sampled);
  };
  const auto holders = [&](int since) {
    std::vector<std::uint64_t> out;
    for (const auto& h : uses.holders(0, HostTime{std::chrono::seconds{since}}))
      out.push_back(h.worker.process);
    return out;
  };
  using testing::ElementsAre;
  look(2, {1});
  alive[1] = {201, HostTime{2500ms}};
  look(3, {1});
  look(4, {1});
  EXPECT_THAT(holders(3), ElementsAre(101));
  // It began after the list that has its pid.
  alive[3] = {203, HostTime{5500ms}};
  look(5, {1, 3});
  EXPECT_THAT(holders(4), ElementsAre(101));
  // The board was without the pid in between.
  look(6, {3});
  EXPECT_THAT(holders(5), ElementsAre(203));
  look(7, {1, 3});
  EXPECT_THAT(holders(6), testing::UnorderedElementsAre(201, 203));
  // No driver names a process for so long after its end.
  alive[3] = {303, HostTime{7500ms}};
  look(8, {1, 3});
  EXPECT_THAT(holders(7), testing::UnorderedElementsAre(201, 203));
  look(18, {1, 3});
  EXPECT_THAT(holders(17), testing::UnorderedElementsAre(201, 303));
}

}  // namespace
}  // namespace jouleprof::session
