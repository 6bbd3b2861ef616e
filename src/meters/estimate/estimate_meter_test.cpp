#include "meters/estimate/estimate_meter.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/support/temp_tree.h"

namespace jouleprof::meters {
namespace {

using estimate::kIdleShare;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::chrono_literals;

// A machine with a 100 W processor and a clock, both under the test's control; 100 ticks a second.
class Machine {
 public:
  explicit Machine(int cpus) : cpus_(cpus) { write(); }

  // Lets `wall` pass with so many CPUs busy.
  void run(Duration wall, double busy_cpus) {
    now += wall;
    busy_ticks += std::llround(seconds(wall) * busy_cpus * 100);
    write();
  }
  void set_cpus(int cpus) {
    cpus_ = cpus;
    write();
  }
  void write() const {
    // user nice system idle iowait irq softirq steal guest guest_nice
    std::string text = "cpu  " + std::to_string(busy_ticks - 6) + " 1 2 " + std::to_string(idle) +
                       " 700 1 2 9000 " + std::to_string(busy_ticks / 2) + " 0\n";
    for (int i = 0; i < cpus_; ++i) text += "cpu" + std::to_string(i) + " 1 2 3 4 5 6 7 8 9 10\n";
    tree.write("proc/stat", text + "intr 12 3\nctxt 5\ncpufreq 1\n");
  }
  std::unique_ptr<EstimateMeter> open(EstimateOptions options = {.cpu_tdp = Power::watts(100)}) {
    options.root = tree.root();
    options.clock = [this] { return now; };
    options.ticks_per_second = 100;
    auto meter = EstimateMeter::open(options);
    if (!meter) {
      ADD_FAILURE() << meter.error().message;
      return nullptr;
    }
    return std::move(*meter);
  }

  TempTree tree;
  HostTime now{1000s};
  std::int64_t busy_ticks = 5000;
  std::int64_t idle = 100000;

 private:
  int cpus_;
};

double read_watts(EstimateMeter& meter) {
  model::Readings out;
  meter.read(0, out);
  EXPECT_THAT(out.powers, SizeIs(1));
  return out.powers.empty() ? -1 : out.powers[0].power.watts();
}

TEST(Estimate, KnownLoads) {
  Machine machine(4);
  const auto meter = machine.open();
  ASSERT_TRUE(meter);
  machine.run(1s, 0);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100 * kIdleShare);
  machine.run(1s, 2);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100 * (1 + kIdleShare) / 2);
  machine.run(1s, 4);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100);
  machine.run(2s, 4);
  machine.run(2s, 0);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100 * (1 + kIdleShare) / 2);
}

TEST(Estimate, SaysWhatItIs) {
  Machine machine(2);
  machine.tree.write("proc/cpuinfo",
                     "processor : 0\nvendor_id : AuthenticAMD\n"
                     "model name : AMD EPYC 7763 64-Core Processor\n");
  const auto meter = machine.open({});
  ASSERT_TRUE(meter);
  const model::Sensor& sensor = meter->sensors().at(0);
  EXPECT_EQ(sensor.provenance, model::Provenance::kEstimated);
  EXPECT_EQ(sensor.kind, model::SensorKind::kPowerInstant);
  EXPECT_EQ(sensor.name, "load model of 2 logical CPUs at 2.2 W each, assumed");
  EXPECT_GE(sensor.traits.scale.gain_half(), 0.5);
  EXPECT_EQ(meter->domains()[0].device, "package-0");
  EXPECT_EQ(meter->domains()[0].name, "AMD EPYC 7763 64-Core Processor");
  // 2 logical CPUs of an EPYC.
  machine.run(1s, 2);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 4.4);

  // DRAM is absent with a reason, and is not 0 W.
  EXPECT_EQ(meter->domains()[1].kind, model::DomainKind::kDram);
  EXPECT_THAT(meter->domains()[1].unavailable_reason, HasSubstr("memory traffic"));
  EXPECT_THAT(meter->sensors(), SizeIs(1));
  EXPECT_THAT(meter->missing(), SizeIs(1));

  const auto reported = machine.open();
  ASSERT_TRUE(reported);
  EXPECT_LT(reported->sensors()[0].traits.scale.gain_half(), sensor.traits.scale.gain_half());
}

TEST(Estimate, EnergyDoesNotDependOnThePeriod) {
  const auto energy = [](Duration period) {
    Machine machine(4);
    const auto meter = machine.open();
    Energy sum;
    HostTime last = machine.now;
    for (int i = 0; i < 60; ++i) {
      machine.run(50ms, (i * 7 % 5) * 0.8);
      if ((machine.now - HostTime{1000s}) % period != Duration::zero()) continue;
      model::Readings out;
      meter->read(0, out);
      for (const auto& p : out.powers) {
        sum += p.power * (p.at - last);
        last = p.at;
      }
    }
    EXPECT_EQ(last, machine.now);
    return sum;
  };
  EXPECT_NEAR(energy(50ms).joules(), energy(100ms).joules(), 1e-4);
  EXPECT_NEAR(energy(50ms).joules(), energy(3s).joules(), 1e-4);
  EXPECT_GT(energy(3s).joules(), 100);
}

TEST(Estimate, IoWaitAndStolenTimeAreNotBusy) {
  const auto parsed = estimate::parse_cpu_time("cpu  10 20 30 1000 2000 40 50 3000 5 6\n", 100);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->busy, 1500ms);
  for (const char* bad :
       {"", "cpu0 1 2 3 4 5 6 7", "cpu 1 2 3", "cpu a b c d e f g h", "cpu  -1 2 3 4 5 6 7 8"}) {
    const auto result = estimate::parse_cpu_time(bad, 100);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, Errc::kCorrupt);
  }
}

TEST(Estimate, AnIdleCounterThatSlipsBackDoesNotMatter) {
  Machine machine(2);
  const auto meter = machine.open();
  machine.idle -= 500;
  machine.run(1s, 1);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100 * (1 + kIdleShare) / 2);
}

TEST(Estimate, BusyTimeThatGoesBackIsAFailureAndANewBeginning) {
  Machine machine(2);
  const auto meter = machine.open();
  machine.run(1s, 1);
  machine.busy_ticks = 50;
  machine.write();
  model::Readings out;
  meter->read(0, out);
  EXPECT_TRUE(out.powers.empty());
  ASSERT_THAT(out.failures, SizeIs(1));
  EXPECT_EQ(out.failures[0].error.code, Errc::kCorrupt);
  machine.run(1s, 2);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100);
}

TEST(Estimate, AFileThatCannotBeReadIsBridged) {
  Machine machine(2);
  const auto meter = machine.open();
  machine.run(1s, 0);
  machine.tree.write("proc/stat", "garbage");
  model::Readings out;
  meter->read(0, out);
  EXPECT_TRUE(out.powers.empty());
  EXPECT_THAT(out.failures, SizeIs(1));
  machine.run(1s, 2);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 100 * (1 + kIdleShare) / 2);
}

TEST(Estimate, CpusThatComeAndGoChangeOnlyTheirOwnPower) {
  Machine machine(4);
  const auto meter = machine.open();
  machine.set_cpus(1);  // three taken offline, the last one busy: a quarter of the processor
  machine.run(1s, 1);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 20 + 80.0 / 4);
  machine.set_cpus(8);  // four more than at the beginning, all busy
  machine.run(1s, 8);
  EXPECT_DOUBLE_EQ(read_watts(*meter), 20 + 80.0 * 2);
}

TEST(Estimate, TooShortAnIntervalIsLeftToTheNext) {
  Machine machine(1);
  const auto meter = machine.open();
  machine.run(10ms, 1);  // one tick: 0 or 100 % by chance
  model::Readings out;
  const HostTime next = meter->read(0, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(next, machine.now + 1s);
  machine.run(90ms, 0);
  EXPECT_NEAR(read_watts(*meter), 20 + 80 * 0.1, 1e-9);
}

TEST(Estimate, AnImplausibleDesignPowerIsDoubted) {
  const auto name = [](int cpus, double watts) {
    Machine machine(cpus);
    return machine.open({.cpu_tdp = Power::watts(watts)})->sensors().at(0).name;
  };
  EXPECT_EQ(name(2, 65), "load model of 2 logical CPUs at 32.5 W each, given");
  EXPECT_EQ(
      name(1, 100),
      "load model of 1 logical CPU at 100 W, given; implausible: processors have 0.5 to 35 W");
  EXPECT_THAT(name(2, 0.4), HasSubstr("implausible"));
}

TEST(Estimate, ThePeriodIsNeverBelowTenTicks) {
  Machine machine(1);
  EXPECT_EQ(
      machine.open({.demand = {.shortest_window = 10ms, .poll_period = 1ms}})->probes()[0].period,
      100ms);
  EXPECT_EQ(machine.open({.demand = {.poll_period = 2s}})->sensors()[0].traits.window, 2s);
}

TEST(Estimate, BadInputIsRefused) {
  Machine machine(2);
  for (const double watts : {0.0, -5.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    const auto meter =
        EstimateMeter::open({.root = machine.tree.root(), .cpu_tdp = Power::watts(watts)});
    ASSERT_FALSE(meter) << watts;
    EXPECT_EQ(meter.error().code, Errc::kInvalidArgument);
  }
  TempTree empty;
  const auto none = EstimateMeter::open({.root = empty.root()});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kNotFound);
  empty.write("proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\n");
  const auto no_cpu = EstimateMeter::open({.root = empty.root()});
  ASSERT_FALSE(no_cpu);
  EXPECT_EQ(no_cpu.error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::meters
