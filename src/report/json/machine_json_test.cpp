#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/json/live_json.h"

namespace jouleprof::report {
namespace {

using analysis::EnergyAccounts;
using analysis::MachineState;
using analysis::Worker;
using nlohmann::json;
using std::chrono::seconds;

// A GPU that is measured, and a CPU that is estimated.
struct Machine {
  MachineState state;
  EnergyAccounts accounts{2, {}};

  Machine() {
    state.now = HostTime{seconds{5}};
    for (std::uint32_t d = 0; d < 2; ++d) {
      model::DomainSnapshot s;
      s.domain.id = model::DomainId{d};
      s.domain.kind = d == 0 ? model::DomainKind::kGpu : model::DomainKind::kCpu;
      s.domain.device = d == 0 ? "gpu0" : "package-0";
      state.snapshot.domains.push_back(s);
      state.domains.push_back(
          {d == 0 ? model::Provenance::kMeasured : model::Provenance::kEstimated, true, true, true,
           0});
    }
    std::vector<Worker> workers;
    for (std::uint64_t i = 1; i <= 4; ++i) {
      workers.push_back({i, static_cast<pid_t>(i), "p" + std::to_string(i), {}});
    }
    workers[0].owner.job = "7";
    accounts.begin_tick(state.now, workers);
    const double weights[] = {1, 2, 3, 4};
    accounts.charge({0, Energy::joules(100), seconds{5}, {}, weights, 0});
    accounts.charge({1, Energy::joules(10), seconds{5}, {}, weights, 0});
  }
  json document(const MachineJsonOptions& options = {}) const {
    return json::parse(machine_json(state, accounts, options));
  }
};

// The page writes it with both signs.
TEST(MachineJson, ErrorsOfASensorThatReadsLowHoldItsInterval) {
  Machine machine;
  auto& energy = machine.state.snapshot.domains[0].energy.emplace();
  energy.energy = Energy::joules(100);
  energy.error = Energy::joules(4);
  energy.shift = 0.05;
  EXPECT_DOUBLE_EQ(machine.document()["devices"][0]["error_ratio"].get<double>(), 0.09);
}

TEST(MachineJson, ListsEntitiesByEnergy) {
  MachineJsonOptions options;
  options.most = 2;
  const auto all = Machine().document(options);
  const auto& processes = all["families"]["process"];
  EXPECT_EQ(processes["count"], 4);
  ASSERT_EQ(processes["entities"].size(), 2u);
  EXPECT_EQ(processes["entities"][0]["id"], "4");
  EXPECT_EQ(processes["entities"][0]["name"], "p4");
  EXPECT_EQ(processes["entities"][0]["energy_joules"], 44.0);
  EXPECT_EQ(processes["entities"][0]["joules"]["gpu0"], 40.0);
  EXPECT_EQ(processes["entities"][0]["power_watts"], 8.8);
  EXPECT_EQ(processes["entities"][0]["present"], true);
  EXPECT_EQ(processes["entities"][0]["job"], nullptr);
  EXPECT_EQ(processes["unlisted_joules"]["gpu0"], 30.0);  // 10 and 20
  EXPECT_EQ(all["families"]["job"]["unlisted_joules"]["gpu0"], 0.0);
  EXPECT_EQ(all["families"]["job"]["entities"][0]["id"], "7");
  EXPECT_EQ(all["families"]["job"]["outside_joules"]["gpu0"], 90.0);
}

TEST(MachineJson, WithoutEstimatesTheyAreAbsentAndSaySo) {
  MachineJsonOptions options;
  options.estimates = false;
  const auto all = Machine().document(options);
  EXPECT_EQ(all["devices"][0]["energy_joules"], 100.0);
  EXPECT_EQ(all["devices"][1]["energy_joules"], nullptr);
  EXPECT_EQ(all["devices"][1]["provenance"], "unavailable");
  EXPECT_NE(all["devices"][1]["reason"], nullptr);
  EXPECT_FALSE(all["families"]["process"]["outside_joules"].contains("package-0"));
  EXPECT_EQ(all["families"]["process"]["entities"][0]["energy_joules"], 40.0);
}

TEST(MachineJson, WhatIsNotCountedIsNull) {
  Machine machine;
  machine.state.domains[0].counted = false;
  const auto all = machine.document();
  EXPECT_EQ(all["devices"][0]["energy_joules"], nullptr);
  EXPECT_EQ(all["devices"][0]["unattributed_joules"], nullptr);
  EXPECT_EQ(all["devices"][0]["power_watts"], nullptr);
}

}  // namespace
}  // namespace jouleprof::report
