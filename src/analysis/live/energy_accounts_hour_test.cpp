// An hour of a busy machine: processes, containers and jobs come and go, boards vanish and return.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "analysis/live/energy_accounts.h"
#include "analysis/live/family_sum_test.h"

namespace jouleprof::analysis {
namespace {

using std::chrono::seconds;

constexpr int kTicks = 720;  // of 5 s
constexpr std::size_t kDomains = 10;
constexpr std::uint64_t kProcesses = 10'000;
constexpr int kContainers = 200;
constexpr int kJobs = 20;
constexpr int kAlive = 500;  // processes at a time

Worker process(std::uint64_t id) {
  // Pids are given out again; containers and jobs end and others begin.
  Worker worker{id, static_cast<pid_t>(2 + id % 3000), "p", {}};
  const int container = static_cast<int>(id * kContainers / kProcesses);
  if (id % 4 != 0) worker.owner.container = "c" + std::to_string(container);
  if (id % 3 != 0) worker.owner.job = std::to_string(container * kJobs / kContainers);
  if (id % 5 != 0) worker.owner.user = static_cast<std::uint32_t>(1000 + id % 7);
  return worker;
}

TEST(EnergyAccounts, ConserveAnHourOfChurn) {
  EnergyAccounts::Options options;
  options.most_series = 300;  // beyond it, some are in `other`
  EnergyAccounts accounts(kDomains, options);
  std::mt19937 random(16);
  std::uniform_real_distribution<double> ratio(0, 1);
  std::vector<Energy> given(kDomains);
  std::map<std::tuple<Family, std::string, std::size_t>, std::pair<std::uint64_t, Energy>> before;

  for (int tick = 0; tick < kTicks; ++tick) {
    std::vector<Worker> workers;
    const auto first = (kProcesses - kAlive) * static_cast<std::uint64_t>(tick) / (kTicks - 1) + 1;
    for (auto id = first; id < first + kAlive; ++id) workers.push_back(process(id));
    accounts.begin_tick(HostTime{seconds{5 * tick}}, workers);
    for (std::size_t d = 0; d < kDomains; ++d) {
      const bool is_lost = (static_cast<std::size_t>(tick) / 60 + d) % 6 == 0;
      if (is_lost) continue;
      std::vector<double> weights;
      for (std::size_t w = 0; w < workers.size(); ++w) {
        weights.push_back(ratio(random) < 0.7 ? 0 : ratio(random));
      }
      if (ratio(random) < 0.05) weights.clear();  // the use of the processes is unknown
      const auto energy = Energy::joules(ratio(random) * 3500);
      const auto rest = d % 2 == 0 ? std::optional(Energy::joules(350)) : std::nullopt;
      accounts.charge({d, energy, seconds{5}, rest, weights, ratio(random)});
      given[d] += energy;
    }
    accounts.end_tick();
    for (std::size_t d = 0; d < kDomains; ++d) {
      ASSERT_EQ(accounts.domains()[d].total, given[d]) << tick;
      for (const auto family : kAllFamilies) {
        ASSERT_EQ(sum_of(accounts, family, d), given[d]) << tick << ' ' << to_string(family);
      }
    }
    for (const auto family : kAllFamilies) {
      for (const auto& [key, entity] : accounts.family(family)->entities) {
        for (std::size_t d = 0; d < kDomains; ++d) {
          if (!entity.energies[d]) continue;
          const auto id = family == Family::kProcess ? entity.worker.process : 0;
          auto& [process, energy] = before[{family, key, d}];
          const auto since = entity.energies[d]->since;
          // A series that ended may begin again.
          const bool is_same = process == id && since < HostTime{seconds{5 * tick}};
          if (is_same) {
            ASSERT_GE(entity.energies[d]->energy, energy) << key;
          }
          std::tie(process, energy) = std::pair(id, entity.energies[d]->energy);
        }
      }
    }
  }
  const auto& processes = *accounts.family(Family::kProcess);
  EXPECT_GT(processes.other[0], Energy{});
  EXPECT_GT(processes.ended[0], Energy{});
  EXPECT_GT(processes.outside[0], Energy{});
  EXPECT_GT(accounts.domains()[0].unattributed, Energy{});
}

}  // namespace
}  // namespace jouleprof::analysis
