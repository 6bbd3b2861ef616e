#include <gmock/gmock.h>

#include "meters/rapl/rapl_fixture.h"
#include "meters/rapl/rapl_meter.h"

namespace jouleprof::meters {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RaplPerf : public ::testing::Test {
 protected:
  RaplPerf() {
    tree.write(std::string(kPmu) + "type", "21\n");
    tree.write(std::string(kPmu) + "cpumask", "0,18\n");
    add_event(tree, "energy-pkg", "event=0x02");
    add_event(tree, "energy-ram", "event=0x03");
    add_event(tree, "energy-psys", "event=0x05");
    for (const auto& [cpu, package] : {std::pair{"0", "1\n"}, std::pair{"18", "0\n"}}) {
      const std::string topology = std::string("sys/devices/system/cpu/cpu") + cpu + "/topology/";
      tree.write(topology + "physical_package_id", package);
      tree.write(topology + "die_id", "0\n");
    }
  }
  TempTree tree;
  FakePerf perf;
};

TEST_F(RaplPerf, IsUsedWherePowercapCannotBeRead) {
  // As for a user who is not root, on any machine: the file is there and does not answer.
  tree.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  std::filesystem::create_directories(tree / "sys/class/powercap/intel-rapl:0/energy_uj");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("cpu package-0", "dram package-0", "cpu package-1", "dram package-1",
                          "platform platform"));
  EXPECT_EQ(perf.opened(), 5u);
  EXPECT_EQ(meter->sensors()[0].name, "perf:power/energy-pkg/");
  EXPECT_EQ(meter->sensors()[0].traits.wrap, std::nullopt);
  EXPECT_TRUE(meter->missing().empty());

  perf.count(2, 18, std::uint64_t{5} << 32);       // 5 J
  perf.count(3, 18, 1);                            // 2^-32 J
  perf.count(2, 0, 0x0123'4567'89ab'cdefu);        // 19088743.53777... J
  perf.count(3, 0, (std::uint64_t{1} << 32) / 2);  // 0.5 J
  perf.count(5, 0, std::uint64_t{1} << 32);
  model::Readings out;
  meter->read(0, out);
  ASSERT_EQ(out.counters.size(), 5u);
  EXPECT_EQ(out.counters[0].total, Energy::joules(5));
  EXPECT_EQ(out.counters[1].total, Energy{});
  EXPECT_EQ(out.counters[2].total, Energy::microjoules(19088743537778));
  EXPECT_EQ(out.counters[3].total, Energy::millijoules(500));
  EXPECT_EQ(out.counters[4].total, Energy::joules(1));
}

TEST_F(RaplPerf, AReadErrorIsAFailure) {
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  for (const auto& [config, cpu] :
       {std::pair{3, 18}, std::pair{2, 0}, std::pair{3, 0}, std::pair{5, 0}}) {
    perf.count(static_cast<std::uint64_t>(config), cpu, 0);
  }
  perf.end(2, 18);
  model::Readings out;
  meter->read(0, out);
  EXPECT_EQ(out.counters.size(), 4u);
  ASSERT_EQ(out.failures.size(), 1u);
  EXPECT_EQ(out.failures[0].sensor, meter->sensors()[0].id);
}

TEST_F(RaplPerf, TwoCpusOfOnePackageAreItsDies) {
  tree.write("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
  tree.write("sys/devices/system/cpu/cpu18/topology/die_id", "1\n");
  tree.write(std::string(kPmu) + "cpumask", "0,18");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("cpu package-0-die-0", "dram package-0-die-0", "cpu package-0-die-1",
                          "dram package-0-die-1", "platform platform"));
}

TEST_F(RaplPerf, AmdsCoresAreSummedByPackage) {
  const std::string pmu = "sys/bus/event_source/devices/power_core/";
  tree.write(pmu + "type", "21\n");
  tree.write(pmu + "cpumask", "0-2,18\n");
  tree.write(pmu + "events/energy-core", "event=0x01\n");
  tree.write(pmu + "events/energy-core.unit", "Joules\n");
  tree.write(pmu + "events/energy-core.scale", "2.3283064365386962890625e-10\n");
  for (const char* cpu : {"1", "2"}) {
    tree.write(std::string("sys/devices/system/cpu/cpu") + cpu + "/topology/physical_package_id",
               "1\n");
  }
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("cpu package-0", "dram package-0", "cpu_cores package-0 in package-0",
                          "cpu package-1", "dram package-1", "cpu_cores package-1 in package-1",
                          "platform platform"));
  for (const int cpu : {0, 18}) {
    perf.count(2, cpu, std::uint64_t{50} << 32);
    perf.count(3, cpu, 0);
  }
  perf.count(5, 0, 0);
  perf.count(1, 18, std::uint64_t{4} << 32);
  for (const int cpu : {0, 1, 2}) perf.count(1, cpu, std::uint64_t{7} << 32);
  model::Readings out;
  meter->read(0, out);
  ASSERT_EQ(out.counters.size(), 7u);
  EXPECT_EQ(out.counters[2].total, Energy::joules(4));
  EXPECT_EQ(out.counters[5].total, Energy::joules(21));
}

TEST_F(RaplPerf, BothRefusedSaysSoTwiceWithTheFixes) {
  perf.denied = true;
  tree.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  std::filesystem::create_directories(tree / "sys/class/powercap/intel-rapl:0/energy_uj");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_TRUE(meter->sensors().empty());
  EXPECT_TRUE(meter->domains().empty());
  EXPECT_TRUE(meter->probes().empty());
  ASSERT_EQ(meter->missing().size(), 1u);
  EXPECT_THAT(meter->missing()[0].error.message, HasSubstr("intel-rapl:0/energy_uj"));
  EXPECT_THAT(meter->missing()[0].error.message, HasSubstr("perf says no"));
}

TEST_F(RaplPerf, APermissionProblemComesWithItsFixes) {
  perf.denied = true;  // and there is no powercap at all
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  ASSERT_EQ(meter->missing().size(), 1u);
  const Missing& missing = meter->missing()[0];
  EXPECT_EQ(missing.error.code, Errc::kPermissionDenied);
  const auto perfmon = missing.fix.find("cap_perfmon");
  const auto root = missing.fix.find("as root");
  const auto rule = missing.fix.find("udev");
  EXPECT_LT(perfmon, root);
  EXPECT_LT(root, rule);
  EXPECT_NE(rule, std::string::npos);
  EXPECT_THAT(missing.fix, Not(HasSubstr("-R ")));
}

TEST_F(RaplPerf, AnEventWithoutAScaleIsNotGuessed) {
  tree.write(std::string(kPmu) + "events/energy-ram.scale", "much\n");
  const auto meter = open_meter(tree, perf);
  ASSERT_TRUE(meter);
  EXPECT_EQ(meter->sensors().size(), 3u);
  ASSERT_EQ(meter->missing().size(), 2u);
  EXPECT_EQ(meter->missing()[0].what, "RAPL dram of package-0");
  EXPECT_THAT(meter->missing()[0].error.message, HasSubstr("energy-ram"));
}

TEST(RaplSystemCall, RefusesAnUnknownPmu) {
  // No PMU has this number, so the real call fails on every machine, for everyone.
  const auto fd = rapl::open_event(0x7fff'fff0u, 2, 0);
  ASSERT_FALSE(fd);
  EXPECT_THAT(fd.error().message, HasSubstr("CPU 0"));
}

}  // namespace
}  // namespace jouleprof::meters
