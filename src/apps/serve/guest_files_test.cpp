#include "apps/serve/guest_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::serve {
namespace {

using namespace std::chrono_literals;

class Guests : public testing::Test {
 protected:
  Guests() {
    for (const auto kind : {model::DomainKind::kCpu, model::DomainKind::kGpu}) {
      model::DomainSnapshot domain;
      domain.domain.kind = kind;
      state.snapshot.domains.push_back(domain);
      state.domains.push_back({model::Provenance::kMeasured, true, true, true, 0});
    }
    state.snapshot.time = RealTime{1'795'000'000s};
  }
  // A tick in which each unit used so many joules of the CPU.
  void tick(const std::vector<std::pair<std::string, double>>& units) {
    at += 1s;
    state.snapshot.time += 1s;
    std::vector<analysis::Worker> workers;
    std::vector<double> weights;
    double sum = 0;
    for (std::size_t i = 0; i < units.size(); ++i) {
      analysis::Worker worker{i + 1, static_cast<pid_t>(i + 1), "qemu", {}};
      worker.owner.unit = units[i].first;
      workers.push_back(worker);
      weights.push_back(units[i].second);
      sum += units[i].second;
    }
    accounts.begin_tick(at, workers);
    accounts.charge({0, Energy::joules(sum), 1s, {}, weights, 0});
    accounts.end_tick();
  }
  double joules(const char* file) const {
    const auto text = read_file(tree / file);
    const auto parsed = model::parse_guest_file(text.value_or(""));
    EXPECT_TRUE(parsed) << text.value_or("no file");
    if (!parsed || parsed->energies.size() != 1) return -1;
    EXPECT_EQ(parsed->time, state.snapshot.time);
    EXPECT_EQ(parsed->energies[0].first, model::DomainKind::kCpu);
    return parsed->energies[0].second.joules();
  }
  std::vector<std::string> options() const {
    return {"machine-qemu*web.scope=" + (tree / "web").string(),
            "machine-qemu*db.scope=" + (tree / "db").string()};
  }

  TempTree tree;
  HostTime at{1h};
  analysis::MachineState state;
  analysis::EnergyAccounts accounts{2, {}};
};

constexpr const char* kWeb = "machine-qemu\\x2d3\\x2dweb.scope";

TEST_F(Guests, EachHasTheEnergyOfItsUnit) {
  auto files = GuestFiles::open(options());
  ASSERT_TRUE(files) << files.error().message;
  tick({{kWeb, 5}, {"ssh.service", 9}});
  ASSERT_TRUE(files->write(state, accounts));
  EXPECT_EQ(joules("web"), 0);  // from the first tick on
  EXPECT_EQ(joules("db"), 0);
  tick({{kWeb, 7}, {"machine-qemu\\x2d4\\x2ddb.scope", 2}});
  ASSERT_TRUE(files->write(state, accounts));
  EXPECT_NEAR(joules("web"), 7, 1e-5);
  EXPECT_NEAR(joules("db"), 2, 1e-5);
  // The machine is started again: another unit, the same guest.
  tick({{"machine-qemu\\x2d5\\x2dweb.scope", 4}});
  ASSERT_TRUE(files->write(state, accounts));
  EXPECT_NEAR(joules("web"), 11, 1e-5);
  // Another service with the counters of this one.
  auto later = GuestFiles::open(options());
  ASSERT_TRUE(later);
  ASSERT_TRUE(later->write(state, accounts));
  EXPECT_NEAR(joules("web"), 11, 1e-5);
}

TEST_F(Guests, MistakesAreNamed) {
  for (const char* text : {"web", "=file", "unit="}) {
    EXPECT_EQ(GuestFiles::open({text}).error().code, Errc::kInvalidArgument) << text;
  }
  tree.write("web", "the user's");
  const auto refused = GuestFiles::open(options());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("name another file"));
  auto files =
      GuestFiles::open({"a.scope=/proc/nowhere/energy", "b.scope=" + (tree / "b").string()});
  ASSERT_TRUE(files);
  tick({{"b.scope", 1}});
  EXPECT_FALSE(files->write(state, accounts));
  EXPECT_EQ(joules("b"), 0);
}

}  // namespace
}  // namespace jouleprof::serve
