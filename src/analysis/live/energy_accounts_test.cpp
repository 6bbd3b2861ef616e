#include "analysis/live/energy_accounts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "analysis/live/family_sum_test.h"

namespace jouleprof::analysis {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

HostTime at(int s) { return HostTime{seconds{s}}; }

Worker process(std::uint64_t id, std::string container = "", std::string job = "",
               std::optional<std::uint32_t> user = {}) {
  Worker worker{id, static_cast<pid_t>(100 + id), "p" + std::to_string(id), {}};
  worker.owner.container = std::move(container);
  worker.owner.job = std::move(job);
  worker.owner.user = user;
  return worker;
}

// Short processes of a container.
Worker of_group(std::string container) {
  Worker worker;
  worker.owner.container = std::move(container);
  return worker;
}

Energy joules(double j) { return Energy::joules(j); }

std::optional<Energy> of(const EnergyAccounts& accounts, Family family, std::string_view key,
                         std::size_t d = 0) {
  const auto& entities = accounts.family(family)->entities;
  const auto found = entities.find(key);
  if (found == entities.end() || !found->second.energies[d]) return std::nullopt;
  return found->second.energies[d]->energy;
}

TEST(EnergyAccounts, DivideByWeightAndRollUp) {
  EnergyAccounts accounts(1, {});
  accounts.begin_tick(at(5), {process(1, "a", "7", 10), process(2, "a", "", 10),
                              process(3, "b", "7", 11), of_group("b")});
  const double weights[] = {1, 2, 3, 1};
  accounts.charge({0, joules(100), seconds{5}, joules(20), weights, 1});
  EXPECT_EQ(of(accounts, Family::kProcess, "101"), joules(10));
  EXPECT_EQ(of(accounts, Family::kProcess, "103"), joules(30));
  EXPECT_EQ(of(accounts, Family::kContainer, "a"), joules(30));
  EXPECT_EQ(of(accounts, Family::kContainer, "b"), joules(40));  // with its short processes
  EXPECT_EQ(of(accounts, Family::kJob, "7"), joules(40));
  EXPECT_EQ(of(accounts, Family::kUser, "10"), joules(30));
  EXPECT_EQ(accounts.family(Family::kProcess)->outside[0], joules(20));
  EXPECT_EQ(accounts.family(Family::kContainer)->outside[0], joules(10));
  EXPECT_EQ(accounts.family(Family::kPod)->outside[0], joules(80));
  EXPECT_EQ(accounts.domains()[0].rest, joules(20));
  EXPECT_EQ(accounts.domains()[0].total, joules(100));
  for (const auto family : kAllFamilies) EXPECT_EQ(sum_of(accounts, family, 0), joules(100));
}

TEST(EnergyAccounts, PowerIsThatOfTheLatestTick) {
  EnergyAccounts accounts(2, {});
  const double weights[] = {3, 1};
  accounts.begin_tick(at(5), {process(1), process(2)});
  accounts.charge({0, joules(100), seconds{5}, {}, weights, 0});
  const auto& series = accounts.family(Family::kProcess)->entities.at("101").energies[0];
  EXPECT_EQ(accounts.power(0, *series)->watts(), 15);
  EXPECT_FALSE(accounts.power(1, *series));  // not charged
  const double other[] = {0, 1};
  accounts.begin_tick(at(10), {process(1), process(2)});
  EXPECT_FALSE(accounts.power(0, *series));
  accounts.charge({0, joules(50), seconds{5}, {}, other, 0});
  EXPECT_EQ(accounts.power(0, *series)->watts(), 0);
}

TEST(EnergyAccounts, WithoutAUserEnergyIsUnattributed) {
  EnergyAccounts accounts(1, {});
  accounts.begin_tick(at(5), {process(1)});
  const double none[] = {0};
  accounts.charge({0, joules(10), seconds{5}, {}, none, 0});
  accounts.charge({0, joules(5), seconds{5}, {}, {}, 0});
  EXPECT_EQ(accounts.domains()[0].unattributed, joules(15));
  EXPECT_FALSE(accounts.domains()[0].rest);  // not known, and not zero
  EXPECT_FALSE(of(accounts, Family::kProcess, "101"));
}

TEST(EnergyAccounts, AnUnknownProcessTakesNothingFromTheOthersAndGivesThemNothing) {
  EnergyAccounts accounts(1, {});
  accounts.begin_tick(at(5), {process(1, "a"), process(2, "b")});
  DomainCharge charge;
  charge.energy = joules(100);
  charge.interval = seconds{5};
  charge.parts = {
      {joules(100), joules(20), {{{0}, false, 0.25}, {{}, true, 0.5}, {{0, 1}, false, 0.25}}}};
  accounts.charge(charge);
  EXPECT_EQ(of(accounts, Family::kContainer, "a"), joules(20));
  EXPECT_EQ(accounts.domains()[0].unattributed, joules(40));
  EXPECT_EQ(accounts.family(Family::kContainer)->undivided[0], joules(20));
  for (const auto family : kAllFamilies) EXPECT_EQ(sum_of(accounts, family, 0), joules(100));
}

TEST(EnergyAccounts, RestIsAtMostTheEnergy) {
  EnergyAccounts accounts(1, {});
  accounts.begin_tick(at(5), {process(1)});
  const double one[] = {1};
  accounts.charge({0, joules(10), seconds{5}, joules(12), one, 0});
  EXPECT_EQ(accounts.domains()[0].rest, joules(10));
  EXPECT_EQ(accounts.domains()[0].unattributed, Energy{});
}

TEST(EnergyAccounts, WhatEndedIsKeptForAWhileAndThenFolded) {
  EnergyAccounts accounts(1, {.keep = minutes{1}});
  const double one[] = {1};
  accounts.begin_tick(at(0), {process(1, "a", "", 10)});
  accounts.charge({0, joules(4), seconds{5}, {}, one, 0});
  accounts.begin_tick(at(60), {process(2, "b", "", 10)});
  accounts.charge({0, joules(1), seconds{5}, {}, one, 0});
  EXPECT_EQ(of(accounts, Family::kContainer, "a"), joules(4));  // 60 s
  accounts.begin_tick(at(61), {process(2, "b", "", 10)});
  EXPECT_FALSE(of(accounts, Family::kContainer, "a"));
  EXPECT_EQ(accounts.family(Family::kContainer)->ended[0], joules(4));
  EXPECT_EQ(accounts.family(Family::kProcess)->ended[0], joules(4));
  EXPECT_EQ(accounts.family(Family::kProcess)->series, 1u);
  accounts.begin_tick(at(6000), {});
  EXPECT_EQ(of(accounts, Family::kUser, "10"), joules(5));  // users stay
  EXPECT_EQ(accounts.family(Family::kProcess)->series, 0u);
}

// One tick in which each of these processes uses one joule.
void tick_of(EnergyAccounts& accounts, int s, std::vector<Worker> workers) {
  const std::vector<double> weights(workers.size(), 1);
  accounts.begin_tick(at(s), std::move(workers));
  accounts.charge({0, joules(static_cast<double>(weights.size())), seconds{5}, {}, weights, 0});
  accounts.end_tick();
}

TEST(EnergyAccounts, SeriesAreBoundedAndTheRestIsOther) {
  EnergyAccounts accounts(2, {.most_series = 3, .keep = seconds{1}});
  const double weights[] = {2, 1};
  accounts.begin_tick(at(0), {process(1), process(2)});
  accounts.charge({0, joules(3), seconds{5}, {}, weights, 0});
  accounts.charge({1, joules(3), seconds{5}, {}, weights, 0});
  accounts.end_tick();
  const auto& processes = *accounts.family(Family::kProcess);
  EXPECT_EQ(processes.series, 2u);  // whole entities make room
  EXPECT_EQ(processes.other[1], joules(1));
  EXPECT_FALSE(of(accounts, Family::kProcess, "102", 1));
  // A place that becomes free is given to the next that is charged, which counts from then on.
  accounts.begin_tick(at(10), {process(2)});
  const double one[] = {1};
  accounts.charge({1, joules(5), seconds{5}, {}, one, 0});
  accounts.end_tick();
  EXPECT_EQ(of(accounts, Family::kProcess, "102", 1), joules(5));
  EXPECT_EQ(processes.entities.at("102").energies[1]->since, at(10));
  for (const auto family : kAllFamilies) {
    EXPECT_EQ(sum_of(accounts, family, 0), joules(3));
    EXPECT_EQ(sum_of(accounts, family, 1), joules(8));
  }
}

TEST(EnergyAccounts, WhatEndedAndIsSmallMakesRoomForAGpuHolder) {
  EnergyAccounts accounts(1, {.most_series = 50});
  for (std::uint64_t i = 1; i <= 500; ++i) tick_of(accounts, static_cast<int>(i), {process(i)});
  Worker holder = process(1000);
  holder.holds_gpu = true;
  tick_of(accounts, 501, {holder, process(500)});
  EXPECT_EQ(of(accounts, Family::kProcess, "1100"), joules(1));
  EXPECT_EQ(accounts.family(Family::kProcess)->series, 50u);
  EXPECT_EQ(accounts.family(Family::kProcess)->other[0], Energy{});
  // A holder that ended is kept before those that never held one.
  for (std::uint64_t i = 2000; i < 2600; ++i) tick_of(accounts, 502, {process(i), process(1)});
  EXPECT_EQ(of(accounts, Family::kProcess, "1100"), joules(1));
  EXPECT_EQ(sum_of(accounts, Family::kProcess, 0), joules(502 + 1200));
}

TEST(EnergyAccounts, HoldersOfAGpuAreShownBeyondTheBound) {
  EnergyAccounts accounts(1, {.most_series = 2});
  std::vector<Worker> workers;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    workers.push_back(process(i));
    workers.back().holds_gpu = i > 1;
  }
  tick_of(accounts, 1, workers);
  EXPECT_EQ(accounts.family(Family::kProcess)->series, 4u);
  EXPECT_EQ(accounts.family(Family::kProcess)->other[0], joules(1));
  EXPECT_EQ(sum_of(accounts, Family::kProcess, 0), joules(5));
}

TEST(EnergyAccounts, SeriesOfLikeSizeDoNotTakeEachOthersPlace) {
  EnergyAccounts accounts(1, {.most_series = 1});
  tick_of(accounts, 1, {process(1)});
  tick_of(accounts, 2, {process(1), process(2)});
  EXPECT_EQ(of(accounts, Family::kProcess, "101"), joules(2));
  EXPECT_EQ(accounts.family(Family::kProcess)->other[0], joules(1));
}

TEST(EnergyAccounts, TheSmallestMakesRoomByAllThatItUsed) {
  EnergyAccounts accounts(1, {.most_series = 1});
  const auto tick = [&](int s, double first, double second) {
    const double weights[] = {first, second};
    accounts.begin_tick(at(s), {process(1), process(2)});
    accounts.charge({0, joules(first + second), seconds{5}, {}, weights, 0});
    accounts.end_tick();
  };
  tick(1, 10, 1);
  // Each tick it uses less than the first one did in all, and soon more than that in all.
  for (int s = 2; s <= 8; ++s) tick(s, 0.1, 8);
  EXPECT_FALSE(of(accounts, Family::kProcess, "101"));
  EXPECT_GT(of(accounts, Family::kProcess, "102"), joules(8));
  EXPECT_EQ(sum_of(accounts, Family::kProcess, 0), joules(11 + 7 * 8.1));
}

TEST(EnergyAccounts, EnergyOfAnUnknownTimeIsUnattributed) {
  EnergyAccounts accounts(1, {});
  tick_of(accounts, 1, {process(1)});
  accounts.add_unattributed(0, joules(7));
  EXPECT_EQ(accounts.domains()[0].unattributed, joules(7));
  for (const auto family : kAllFamilies) EXPECT_EQ(sum_of(accounts, family, 0), joules(8));
}

TEST(EnergyAccounts, APidThatWasGivenOutAgainIsAnotherProcess) {
  EnergyAccounts accounts(1, {});
  const double one[] = {1};
  accounts.begin_tick(at(0), {process(1)});
  accounts.charge({0, joules(4), seconds{5}, {}, one, 0});
  Worker other = process(2);
  other.pid = 101;
  accounts.begin_tick(at(5), {other});
  accounts.charge({0, joules(1), seconds{5}, {}, one, 0});
  EXPECT_EQ(of(accounts, Family::kProcess, "101"), joules(1));
  EXPECT_EQ(accounts.family(Family::kProcess)->ended[0], joules(4));
  EXPECT_EQ(accounts.family(Family::kProcess)->series, 1u);
}

TEST(EnergyAccounts, APidThatWasGivenOutAgainWithinATickIsOfTheProcessThatLives) {
  EnergyAccounts accounts(1, {});
  const double two[] = {1, 3};
  const Worker ended = process(1, "", "", 1000);
  Worker lives = process(2, "", "", 2000);
  lives.pid = ended.pid;
  for (int s = 0; s < 2; ++s) {
    accounts.begin_tick(at(s), {lives, ended});
    accounts.charge({0, joules(4), seconds{1}, {}, two, 0});
    accounts.end_tick();
    const auto& account = *accounts.family(Family::kProcess);
    EXPECT_EQ(account.entities.at("101").worker.owner.user, 2000u);
    EXPECT_EQ(of(accounts, Family::kProcess, "101"), joules(s + 1));
    EXPECT_EQ(account.ended[0], joules(3 * (s + 1)));
    EXPECT_EQ(of(accounts, Family::kUser, "1000"), joules(3 * (s + 1)));
  }
}

TEST(EnergyAccounts, OnlyChosenFamiliesAreAccounted) {
  EnergyAccounts accounts(1, {.families = {Family::kJob}});
  accounts.begin_tick(at(0), {process(1, "a", "7")});
  EXPECT_EQ(accounts.family(Family::kProcess), nullptr);
  ASSERT_NE(accounts.family(Family::kJob), nullptr);
}

TEST(EnergyAccounts, FamiliesHaveNames) {
  for (const auto family : kAllFamilies) EXPECT_EQ(parse_family(to_string(family)), family);
  EXPECT_FALSE(parse_family("node"));
}

// Thousands of processes, containers and jobs come and go, with any weights.
TEST(EnergyAccounts, ConserveAndNeverFallUnderChurn) {
  constexpr std::size_t kDomains = 4;
  std::mt19937_64 random(16);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  EnergyAccounts accounts(kDomains, {.most_series = 150, .keep = seconds{20}});
  std::map<std::uint64_t, Worker> alive;
  std::uint64_t next = 1;
  std::map<std::string, Energy> before;
  std::vector<Energy> totals(kDomains);
  for (int tick = 0; tick < 250; ++tick) {
    for (std::uint64_t n = below(40); n > 0; --n, ++next) {
      alive[next] = process(next, below(3) == 0 ? "" : "c" + std::to_string(next / 50),
                            below(4) == 0 ? "" : std::to_string(next / 300),
                            static_cast<std::uint32_t>(below(30)));
    }
    while (!alive.empty() && (alive.size() > 80 || below(3) == 0)) {
      alive.erase(std::next(alive.begin(), static_cast<std::ptrdiff_t>(below(alive.size()))));
    }
    std::vector<Worker> workers;
    for (const auto& [id, worker] : alive) workers.push_back(worker);
    workers.push_back(of_group("c1"));
    accounts.begin_tick(at(tick), workers);
    for (std::size_t d = 0; d < kDomains; ++d) {
      if (below(10) == 0) continue;  // the board is gone
      std::vector<double> weights;
      for (std::size_t w = 0; w < workers.size(); ++w) {
        weights.push_back(below(2) == 0 ? 0 : static_cast<double>(below(1'000'000)) * 1e-7);
      }
      const Energy energy = Energy::microjoules(static_cast<std::int64_t>(below(5'000'000'000)));
      const auto rest = d == 0 ? std::optional(Energy::joules(400)) : std::nullopt;
      if (below(20) == 0) weights.clear();
      accounts.charge({d, energy, seconds{5}, rest, weights, static_cast<double>(below(2))});
      totals[d] += energy;
    }
    accounts.end_tick();
    std::map<std::string, Energy> after;
    for (std::size_t d = 0; d < kDomains; ++d) {
      const auto& domain = accounts.domains()[d];
      ASSERT_EQ(domain.total, totals[d]);
      const auto name = std::to_string(d);
      after["total" + name] = domain.total;
      after["unattributed" + name] = domain.unattributed;
      after["rest" + name] = domain.rest.value_or(Energy{});
      for (const auto family : kAllFamilies) {
        ASSERT_EQ(sum_of(accounts, family, d), totals[d]) << to_string(family) << " tick " << tick;
        const auto& account = *accounts.family(family);
        ASSERT_LE(account.series, 150u);
        const auto prefix = name + std::string(to_string(family));
        after[prefix + "outside"] = account.outside[d];
        after[prefix + "other"] = account.other[d];
        after[prefix + "ended"] = account.ended[d];
        for (const auto& [key, entity] : account.entities) {
          if (entity.energies[d]) after[prefix + ":" + key] = entity.energies[d]->energy;
        }
      }
    }
    for (const auto& [series, energy] : after) {
      const auto found = before.find(series);
      ASSERT_GE(energy, found == before.end() ? Energy{} : found->second) << series;
    }
    before = std::move(after);
  }
  EXPECT_GT(accounts.family(Family::kProcess)->ended[0], Energy{});
  EXPECT_GT(accounts.family(Family::kProcess)->other[0], Energy{});
}

}  // namespace
}  // namespace jouleprof::analysis
