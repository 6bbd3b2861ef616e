#include "session/machine/service_state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/live/family_sum_test.h"
#include "session/machine/machine_state_fixture.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using analysis::EnergyAccounts;
using analysis::Family;
using analysis::MachineState;
using analysis::Worker;
using nlohmann::json;

constexpr HostTime kStart = kServiceStart;
constexpr RealTime kReal = kServiceStartReal;

Worker worker(std::uint64_t process, pid_t pid, const std::string& job) {
  Worker out{process, pid, "a\xffname", {}};
  out.owner.job = job;
  out.owner.user = 7;
  return out;
}

// Two processes of one job on two GPUs, one of which has a known power at rest.
void charge(EnergyAccounts& accounts, HostTime at) {
  accounts.begin_tick(at, {worker(11, 41, "job"), worker(12, 42, "job")});
  const std::vector<double> weights{1, 2};
  accounts.charge({0, Energy::microjoules(10'000'001), 5s, Energy::joules(1), weights, 1});
  accounts.charge({1, Energy::joules(5), 5s, {}, {}, 0});
}

class ServiceState : public testing::Test {
 protected:
  ServiceState() {
    before.domains[0].gaps = 3;
    before.readers = {3, kStart + 4s};
    charge(accounts, kStart + 5s);
  }
  // Another service, a minute later.
  Result<void> restore(MachineState& state, EnergyAccounts& into, std::string_view boot = "boot") {
    return restore(service_state(before, accounts, "boot"), state, into, boot);
  }
  static Result<void> restore(const json& saved, MachineState& state, EnergyAccounts& into,
                              std::string_view boot = "boot") {
    state.started = {HostTime{2h}, kReal + 70s, {}};
    return restore_service_state(saved, "it", boot, state.started.real, state, into);
  }

  MachineState before = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts accounts{2, {}};
};

TEST_F(ServiceState, CountersContinue) {
  auto state = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(state, after));
  EXPECT_EQ(state.missing_time, 60s);
  EXPECT_EQ(state.continued_from, kReal + 10s);
  ASSERT_TRUE(state.readers);
  EXPECT_EQ(state.readers->count, 3u);
  EXPECT_EQ(state.real(state.readers->seen), kReal + 4s);
  EXPECT_EQ(state.domains[0].gaps, 3u);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_EQ(after.domains()[d].total, accounts.domains()[d].total);
    EXPECT_EQ(after.domains()[d].rest, accounts.domains()[d].rest);
    EXPECT_EQ(state.since(after.domains()[d]), kReal);
    for (const auto family : analysis::kAllFamilies) {
      EXPECT_EQ(sum_of(after, family, d), after.domains()[d].total);
    }
  }
  const auto& process = after.family(Family::kProcess)->entities.at("41");
  EXPECT_EQ(process.energies[0]->energy,
            accounts.family(Family::kProcess)->entities.at("41").energies[0]->energy);
  EXPECT_EQ(state.real(process.energies[0]->since), kReal + 5s);
  EXPECT_FALSE(process.energies[1]);
  EXPECT_EQ(process.worker.owner.job, "job");
  EXPECT_EQ(process.worker.owner.user, 7u);

  charge(after, HostTime{2h} + 5s);
  const auto& job = after.family(Family::kJob)->entities.at("job");
  const Energy once = accounts.family(Family::kJob)->entities.at("job").energies[0]->energy;
  EXPECT_EQ(job.energies[0]->energy, once + once);
  EXPECT_EQ(after.family(Family::kProcess)->ended[0], Energy{});
}

// While the service before ran, or between both. A series that readers have seen would be new
// again, and its counter zero until the clock reaches its begin.
TEST_F(ServiceState, AWallClockThatWasSetBackMakesNoSeriesNew) {
  charge(accounts, kStart + 5s);
  before.readers = {3, kStart + 6s};
  accounts.begin_tick(kStart + 8s, {worker(11, 41, "later")});
  const std::vector<double> weights{1};
  accounts.charge({0, Energy::joules(5), 3s, {}, weights, 0});
  auto state = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts after(2, {});
  state.started = {HostTime{2h}, kReal - 1h, {}};
  ASSERT_TRUE(restore_service_state(service_state(before, accounts, "boot"), "it", "boot",
                                    state.started.real, state, after));
  ASSERT_TRUE(state.readers);
  EXPECT_LE(state.readers->seen, state.started.host);
  const auto& jobs = after.family(Family::kJob)->entities;
  EXPECT_LT(jobs.at("job").energies[0]->since, state.readers->seen);
  EXPECT_GT(jobs.at("later").energies[0]->since, state.readers->seen);  // not seen yet
  EXPECT_LE(jobs.at("later").energies[0]->since, state.started.host);
  EXPECT_LE(state.since(after.domains()[0]), state.started.real);
}

TEST_F(ServiceState, ACounterIsAsOldAsItsReading) {
  before.domains[0].counter = analysis::CounterMark{Energy::joules(5), kReal - 20s};
  auto state = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(state, after));
  ASSERT_TRUE(state.domains[0].before);
  EXPECT_EQ(state.domains[0].before->total, Energy::joules(5));
  EXPECT_EQ(state.domains[0].before->at, kReal - 20s);
  EXPECT_FALSE(state.domains[1].before);
}

TEST_F(ServiceState, TheEnergyOfTheDayContinuesByUuid) {
  before.day = {kReal, {Energy::joules(2), Energy::joules(3)}};
  auto state = machine_state({"GPU-9", "GPU-0"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(state, after));
  EXPECT_EQ(state.day.begin, kReal);
  EXPECT_EQ(state.day.energy(0, after.domains()[0]), Energy{});
  EXPECT_EQ(state.day.energy(1, after.domains()[1]), Energy::microjoules(8'000'001));
}

TEST_F(ServiceState, AfterAnotherBootProcessesHaveEnded) {
  auto state = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(state, after, "another boot"));
  EXPECT_TRUE(after.family(Family::kProcess)->entities.empty());
  EXPECT_GT(after.family(Family::kProcess)->ended[0], Energy{});
  EXPECT_EQ(after.family(Family::kJob)->entities.size(), 1u);
  EXPECT_EQ(sum_of(after, Family::kProcess, 0), after.domains()[0].total);
}

TEST_F(ServiceState, DevicesAreFoundByUuid) {
  auto state = machine_state({"GPU-9", "GPU-0"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(state, after));
  EXPECT_EQ(after.domains()[0].total, Energy{});
  EXPECT_EQ(state.domains[0].gaps, 0u);
  EXPECT_EQ(after.domains()[1].total, accounts.domains()[0].total);
  EXPECT_EQ(sum_of(after, Family::kUser, 1), after.domains()[1].total);
  EXPECT_TRUE(after.family(Family::kJob)->entities.at("job").energies[1]);
}

// A driver that loads after the service, or a board that fell off the bus while another one came.
TEST_F(ServiceState, ADeviceThatIsGoneForAServiceContinuesLater) {
  before.day = {kReal, {Energy{}, Energy::joules(3)}};
  before.domains[1].counter = {Energy::joules(1234), kReal + 10s};
  auto alone = machine_state({"GPU-0"});
  EnergyAccounts few(1, {});
  ASSERT_TRUE(restore(alone, few));
  const auto saved = service_state(alone, few, "boot");
  const auto back = [&](const json& from, MachineState& state) {
    EnergyAccounts after(2, {});
    EXPECT_TRUE(restore(from, state, after));
    EXPECT_TRUE(state.domains[1].counted);
    EXPECT_EQ(after.domains()[1].total, accounts.domains()[1].total);
    EXPECT_EQ(sum_of(after, Family::kJob, 0), after.domains()[0].total);
    EXPECT_EQ(sum_of(after, Family::kJob, 1), after.domains()[1].total);
    return state.day.energy(1, after.domains()[1]);
  };
  auto state = machine_state({"GPU-0", "GPU-1"});
  EXPECT_EQ(back(saved, state), Energy::joules(2));
  ASSERT_TRUE(state.domains[1].before);
  EXPECT_EQ(state.domains[1].before->total, Energy::joules(1234));

  // On another day, after another boot: its own counter may have begun anew.
  auto later = machine_state({"GPU-0"});
  EnergyAccounts rebooted(1, {});
  ASSERT_TRUE(restore(saved, later, rebooted, "another boot"));
  later.day.begin = kReal + 24h;
  auto last = machine_state({"GPU-0", "GPU-1"});
  EXPECT_EQ(back(service_state(later, rebooted, "boot"), last), Energy{});
  EXPECT_FALSE(last.domains[1].before);
}

TEST_F(ServiceState, AFamilyThatWasNotCountedBeginsWithWhatEnded) {
  EnergyAccounts few(2, {.families = {Family::kJob}});
  charge(few, kStart + 5s);
  auto state = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(service_state(before, few, "boot"), state, after));
  EXPECT_EQ(after.family(Family::kUser)->ended[0], Energy::microjoules(9'000'001));
  EXPECT_EQ(sum_of(after, Family::kUser, 0), after.domains()[0].total);
}

TEST_F(ServiceState, WhereTheCountersOfDevicesStoodIsKeptWithinABoot) {
  before.domains[0].counter = {Energy::joules(1234), kReal + 10s};
  before.domains[0].between_services = Energy::joules(1);
  accounts.begin_tick(kStart + 10s, {});
  accounts.add_unattributed(0, Energy::joules(1));
  auto state = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts after(2, {});
  ASSERT_TRUE(restore(state, after));
  ASSERT_TRUE(state.domains[0].before);
  EXPECT_EQ(state.domains[0].before->total, Energy::joules(1234));
  EXPECT_EQ(state.domains[0].before->at, kReal + 10s);
  EXPECT_EQ(state.domains[0].between_services, Energy::joules(1));
  EXPECT_FALSE(state.domains[1].before);
  auto later = machine_state({"GPU-0", "GPU-1"});
  EnergyAccounts rebooted(2, {});
  ASSERT_TRUE(restore(later, rebooted, "another boot"));
  EXPECT_FALSE(later.domains[0].before);
}

TEST_F(ServiceState, WhatIsNoStateChangesNothing) {
  auto wrong_type = service_state(before, accounts, "boot");
  wrong_type["domains"][0]["total"] = "x";
  for (const auto& saved :
       {json::object(), json({1}), json("text"), json({{"schema", "another/1"}}), wrong_type}) {
    auto state = machine_state({"GPU-0", "GPU-1"});
    EnergyAccounts after(2, {});
    const auto restored = restore(saved, state, after);
    ASSERT_FALSE(restored) << saved;
    EXPECT_EQ(restored.error().code, Errc::kCorrupt);
    EXPECT_EQ(after.domains()[0].total, Energy{});
    EXPECT_EQ(state.missing_time, Duration{});
  }
}

TEST_F(ServiceState, FiguresThatNoServiceWritesAreDamage) {
  const auto good = service_state(before, accounts, "boot");
  const std::vector<std::pair<std::string, json>> bad = {
      {"/domains/0/total", -1},
      {"/domains/0/total", 9'000'000},  // less than its parts
      {"/domains/0/total", std::numeric_limits<std::int64_t>::max()},
      {"/domains/0/total", 1e300},
      {"/domains/0/since", std::numeric_limits<std::int64_t>::min()},
      {"/saved", std::numeric_limits<std::int64_t>::max()},
      {"/missing", -5},
      {"/families/job/other/0", std::numeric_limits<std::int64_t>::min()},
      {"/families/job/ended/0", std::int64_t{1} << 62},
      {"/families/process/entities/41/5/0/0", 99},  // a device that is not in the file
      {"/families/process/entities/41/5/0/1", -3},
      {"/families/process/entities/41/5/0/0", 1e300},
      {"/families/process/entities/41/0", 1e300},
      {"/families/process/entities/41/1", 1e300},
      {"/domains/0/gaps", -1e300},
      {"/domains/0/counter", 1e300},
      {"/domains/0/between_services", 1'000},  // more than is unattributed
      {"/families/process/entities/41/6", 1},
  };
  for (const auto& [place, value] : bad) {
    auto saved = good;
    saved.at(json::json_pointer(place)) = value;
    auto state = machine_state({"GPU-0", "GPU-1"});
    EnergyAccounts after(2, {});
    const auto restored = restore(saved, state, after);
    ASSERT_FALSE(restored) << place;
    EXPECT_EQ(restored.error().code, Errc::kCorrupt);
    EXPECT_EQ(after.domains()[0].total, Energy{});
    EXPECT_FALSE(state.continued_from);
  }
}

}  // namespace
}  // namespace jouleprof::session
