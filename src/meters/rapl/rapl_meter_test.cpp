#include "meters/rapl/rapl_meter.h"

#include <gmock/gmock.h>

#include "meters/rapl/rapl_fixture.h"

namespace jouleprof::meters {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Rapl, WrapsOneUnitAfterTheGreatestValue) {
  // 2^32 - 1 units of 61.035 uJ are shown as 262143328850 uJ; 2^32 units are 262143328911.
  EXPECT_EQ(rapl::wrap_of(Energy::microjoules(262143328850)), Energy::microjoules(262143328911));
  EXPECT_EQ(rapl::wrap_of(Energy::microjoules(65532610987)), Energy::microjoules(65532611002));
}

TEST(Rapl, TwoPackagesWithEverything) {
  TempTree tree;
  FakePerf perf;
  add_cpu(tree, "GenuineIntel", "Intel(R) Xeon(R) Gold 6130");
  tree.write("sys/class/powercap/intel-rapl/enabled", "1\n");
  // The zone's number is not the package's.
  add_zone(tree, "intel-rapl:0", "package-1", "1000001");
  add_zone(tree, "intel-rapl:0:0", "dram", "1000002", "65712999613\n");
  add_zone(tree, "intel-rapl:1", "package-0", "1000003");
  add_zone(tree, "intel-rapl:1:0", "core", "1000004");
  add_zone(tree, "intel-rapl:1:1", "uncore", "1000005");
  add_zone(tree, "intel-rapl:1:2", "dram", "1000006");
  add_zone(tree, "intel-rapl:2", "psys", "1000007");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);

  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("cpu package-0", "dram package-0", "cpu_cores package-0 in package-0",
                          "cpu_uncore package-0 in package-0", "cpu package-1", "dram package-1",
                          "platform platform"));
  EXPECT_EQ(meter->domains()[0].name, "Intel(R) Xeon(R) Gold 6130");
  EXPECT_TRUE(meter->missing().empty());
  EXPECT_EQ(perf.opened(), 0u);

  ASSERT_EQ(meter->sensors().size(), 7u);
  const model::Sensor& package = meter->sensors()[0];
  EXPECT_EQ(package.kind, model::SensorKind::kEnergyCounter);
  EXPECT_EQ(package.name, "powercap:intel-rapl:1/energy_uj");
  EXPECT_EQ(package.traits.wrap, Energy::microjoules(262143328911));
  EXPECT_EQ(package.traits.quantum, Energy::microjoules(61));
  EXPECT_EQ(package.traits.refresh, std::chrono::milliseconds{1});

  model::Readings out;
  const HostTime begin = HostClock::now();
  const HostTime next = meter->read(0, out);
  std::vector<std::int64_t> totals;
  for (const auto& c : out.counters) {
    totals.push_back(c.total.microjoules());
    EXPECT_LE(begin, c.before);
    EXPECT_LE(c.before, c.after);
  }
  EXPECT_THAT(totals, ElementsAre(1000003, 1000006, 1000004, 1000005, 1000001, 1000002, 1000007));
  EXPECT_GE(next - begin, std::chrono::milliseconds{100});
}

TEST(Rapl, DiesAreDomainsOfTheirOwn) {
  TempTree tree;
  FakePerf perf;
  add_zone(tree, "intel-rapl:0", "package-0-die-1", "1");
  add_zone(tree, "intel-rapl:0:0", "dram", "2");
  add_zone(tree, "intel-rapl:1", "package-0-die-0", "3");
  add_zone(tree, "intel-rapl:10", "package-10-die-0", "4");
  add_zone(tree, "intel-rapl:2", "package-2-die-0", "5");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("cpu package-0-die-0", "cpu package-0-die-1", "dram package-0-die-1",
                          "cpu package-2-die-0", "cpu package-10-die-0"));
}

TEST(Rapl, TwoZonesOfOneNameAreNamed) {
  FakePerf perf;
  TempTree tree;
  add_zone(tree, "intel-rapl:0", "package-0", "5");
  add_zone(tree, "intel-rapl:2", "package-0", "7");
  const auto meter = RaplMeter::open({tree.root(), {}, perf.opener(), Duration{}});
  ASSERT_TRUE(meter);
  EXPECT_EQ((*meter)->sensors().size(), 1u);
  EXPECT_THAT((*meter)->take_notices(),
              ElementsAre(HasSubstr("intel-rapl:2 has the name of another zone")));
}

TEST(Rapl, MmioMirrorsAreIgnoredUnlessAlone) {
  FakePerf perf;
  TempTree both;
  add_zone(both, "intel-rapl-mmio:0", "package-0", "7");
  add_zone(both, "intel-rapl:0", "package-0", "8");
  const auto meter = open_meter(both, perf);
  ASSERT_TRUE(meter);
  ASSERT_EQ(meter->sensors().size(), 1u);
  EXPECT_EQ(meter->sensors()[0].name, "powercap:intel-rapl:0/energy_uj");

  TempTree alone;
  add_zone(alone, "intel-rapl-mmio:0", "package-0", "7");
  const auto other = open_meter(alone, perf);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->sensors().size(), 1u);
}

TEST(Rapl, AmdHasNoDramAndItsCoreCounterIsOneCores) {
  TempTree tree;
  FakePerf perf;
  add_cpu(tree, "AuthenticAMD", "AMD EPYC 7763 64-Core Processor");
  add_zone(tree, "intel-rapl:0", "package-0", "5", "65532610987\n");
  add_zone(tree, "intel-rapl:0:0", "core", "6", "65532610987\n");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("cpu package-0"));
  ASSERT_EQ(meter->missing().size(), 1u);
  EXPECT_EQ(meter->missing()[0].what, "RAPL core of package-0");
  EXPECT_EQ(meter->missing()[0].error.code, Errc::kUnsupported);
}

TEST(Rapl, AnUnreadableMaximumLeavesTheWrapUnknown) {
  TempTree tree;
  FakePerf perf;
  add_zone(tree, "intel-rapl:0", "package-0", "5", "");
  add_zone(tree, "intel-rapl:1", "package-1", "5", "unknown\n");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  ASSERT_EQ(meter->sensors().size(), 2u);
  for (const auto& sensor : meter->sensors()) EXPECT_EQ(sensor.traits.wrap, std::nullopt);
}

TEST(Rapl, AReadErrorIsAFailureNotAWrap) {
  TempTree tree;
  FakePerf perf;
  add_zone(tree, "intel-rapl:0", "package-0", "262143000000");
  add_zone(tree, "intel-rapl:0:0", "dram", "70");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  const std::string energy = std::string(kPowercap) + "intel-rapl:0/energy_uj";

  for (const std::string bad : {"", "-5\n", "I/O error\n"}) {
    tree.write(energy, bad);
    model::Readings out;
    meter->read(0, out);
    ASSERT_EQ(out.failures.size(), 1u) << bad;
    EXPECT_EQ(out.failures[0].sensor, meter->sensors()[0].id);
    EXPECT_EQ(out.failures[0].error.code, Errc::kCorrupt);
    EXPECT_EQ(out.counters.size(), 1u);
  }
  std::filesystem::remove(tree / energy);
  model::Readings out;
  meter->read(0, out);
  ASSERT_EQ(out.failures.size(), 1u);
  EXPECT_EQ(out.failures[0].error.code, Errc::kNotFound);

  // A wrap is handed out raw.
  tree.write(energy, "12\n");
  out.clear();
  meter->read(0, out);
  ASSERT_EQ(out.counters.size(), 2u);
  EXPECT_EQ(out.counters[0].total, Energy::microjoules(12));
}

TEST(Rapl, OneUnreadableZoneIsMissingAndTheRestWorks) {
  TempTree tree;
  FakePerf perf;
  add_zone(tree, "intel-rapl:0", "package-0", "1");
  add_zone(tree, "intel-rapl:1", "package-1", "no number");
  add_zone(tree, "intel-rapl:1:0", "core", "2");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_EQ(meter->sensors().size(), 2u);
  ASSERT_EQ(meter->missing().size(), 1u);
  EXPECT_EQ(meter->missing()[0].what, "RAPL package-1");
  // The package stays a domain, so that its cores are not taken for a whole.
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("cpu package-0", "cpu package-1", "cpu_cores package-1 in package-1"));
  EXPECT_TRUE(meter->domains()[0].unavailable_reason.empty());
  EXPECT_THAT(meter->domains()[1].unavailable_reason, HasSubstr("intel-rapl:1/energy_uj"));
}

TEST(Rapl, PollsFastEnoughForWindowsAndWraps) {
  TempTree tree;
  FakePerf perf;
  add_zone(tree, "intel-rapl:0", "package-0", "1");
  const auto period = [&](Demand demand) {
    const auto meter = open_meter(tree, perf, demand);
    return meter ? meter->probes().at(0).period : Duration{};
  };
  using namespace std::chrono_literals;
  EXPECT_EQ(period({}), 100ms);
  EXPECT_EQ(period({.shortest_window = 999ms}), 10ms);
  EXPECT_EQ(period({.shortest_window = 1s}), 100ms);
  EXPECT_EQ(period({.poll_period = 2s}), 2s);
  // 262 kJ are full after 262 s at 1 kW; a poll an hour would miss wraps.
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(period({.poll_period = 1h})), 66s);
}

TEST(Rapl, NoRaplAtAllIsNotFound) {
  FakePerf perf;
  TempTree empty;
  const auto meter = RaplMeter::open({empty.root(), {}, perf.opener()});
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, Errc::kNotFound);
  EXPECT_THAT(meter.error().message, HasSubstr("sys/class/powercap"));

  // A powercap folder without RAPL zones is the same.
  TempTree other;
  other.write("sys/class/powercap/dtpm/enabled", "0\n");
  const auto none = RaplMeter::open({other.root(), {}, perf.opener()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kNotFound);
}

TEST(Rapl, ZonesThatAContainerHidesAreNamed) {
  FakePerf perf;
  TempTree tree;
  tree.write("sys/class/powercap/dtpm/enabled", "0\n");
  std::filesystem::create_symlink("../../devices/virtual/powercap/intel-rapl/intel-rapl:0",
                                  tree.root() / "sys/class/powercap/intel-rapl:0");
  const auto meter = RaplMeter::open({tree.root(), {}, perf.opener()});
  ASSERT_TRUE(meter);
  EXPECT_THAT((*meter)->sensors(), IsEmpty());
  ASSERT_EQ((*meter)->missing().size(), 1u);
  EXPECT_THAT((*meter)->missing()[0].error.message,
              HasSubstr("intel-rapl:0 is there, but its files are hidden"));
  EXPECT_THAT((*meter)->take_notices(), ElementsAre(HasSubstr("container runtimes mask them")));
}

TEST(Rapl, CountersThatStandStillAreMissing) {
  FakePerf perf;
  TempTree tree;
  add_zone(tree, "intel-rapl:0", "package-0", "23737296043");
  const auto meter = RaplMeter::open({tree.root(), {}, perf.opener()});
  ASSERT_TRUE(meter);
  EXPECT_THAT((*meter)->sensors(), IsEmpty());
  ASSERT_EQ((*meter)->missing().size(), 1u);
  EXPECT_THAT((*meter)->missing()[0].error.message, HasSubstr("stands still at 23737.3 J"));
  EXPECT_THAT((*meter)->take_notices(), ElementsAre(HasSubstr("stands still at 23737.3 J")));
}

TEST(Rapl, TheRowOfDramThatStandsStillSaysSo) {
  FakePerf perf;
  TempTree tree;
  add_zone(tree, "intel-rapl:0", "package-0", "23737296043");
  add_zone(tree, "intel-rapl:0:0", "dram", "5000000");
  const auto meter = RaplMeter::open({tree.root(), {}, perf.opener()});
  ASSERT_TRUE(meter);
  EXPECT_THAT((*meter)->sensors(), IsEmpty());
  EXPECT_THAT(describe_domains(**meter), ElementsAre("dram package-0"));
  EXPECT_THAT((*meter)->domains()[0].unavailable_reason, HasSubstr("stands still at 5.0 J"));
  ASSERT_EQ((*meter)->missing().size(), 2u);
  EXPECT_THAT((*meter)->missing()[0].error.message, HasSubstr("stands still at 23737.3 J"));
  EXPECT_EQ((*meter)->missing()[1].what, "RAPL dram of package-0");
}

TEST(Rapl, DramIsMeasuredWhereItsPackageIsNot) {
  FakePerf perf;
  TempTree tree;
  tree.write(std::string(kPowercap) + "intel-rapl:0/name", "package-0\n");
  add_zone(tree, "intel-rapl:0:0", "dram", "5000000");
  const auto meter = RaplMeter::open({tree.root(), {}, perf.opener(), Duration{}});
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(**meter), ElementsAre("dram package-0"));
  EXPECT_EQ((*meter)->sensors().size(), 1u);
}

}  // namespace
}  // namespace jouleprof::meters
