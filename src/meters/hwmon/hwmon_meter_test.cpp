#include "meters/hwmon/hwmon_meter.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "meters/hwmon/hwmon_fixture.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters {
namespace {

using model::DomainKind;
using model::SensorKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

double watts(HwmonMeter& meter, std::size_t index) {
  model::Readings out;
  meter.read(index, out);
  EXPECT_THAT(out.powers, SizeIs(1));
  return out.powers.empty() ? -1 : out.powers[0].power.watts();
}

TEST(Hwmon, NothingIsNotFound) {
  TempTree empty;
  auto meter = HwmonMeter::open({empty.root(), {}});
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, Errc::kNotFound);
  EXPECT_THAT(meter.error().message, HasSubstr("sys/class/hwmon"));

  TempTree temperatures;
  Chip(temperatures, "hwmon0", "coretemp").set("temp1_input", "40000");
  meter = HwmonMeter::open({temperatures.root(), {}});
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, Errc::kNotFound);
}

TEST(Hwmon, AmdBoardsInTheOrderOfTheirSlots) {
  TempTree tree;
  Chip(tree, "hwmon7", "amdgpu", "0000:83:00.0").set("power1_average", "11000000");
  Chip(tree, "hwmon2", "amdgpu", "0000:c3:00.0")
      .set("power1_average", "90000000")
      .set("power1_input", "250000000")
      .set("power1_label", "PPT")
      .set_device("product_name", "AMD INSTINCT MI210\n")
      .set_device("unique_id", "c1ce4e3a1b2c3d4e\n");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("gpu amdgpu-0", "gpu amdgpu-1"));
  EXPECT_EQ(meter->domains()[0].name, "AMD GPU at 0000:83:00.0");
  EXPECT_EQ(meter->domains()[1].name, "AMD INSTINCT MI210");
  EXPECT_EQ(meter->domains()[0].uuid, "");
  EXPECT_EQ(meter->domains()[1].uuid, "GPU-c1ce4e3a1b2c3d4e");
  EXPECT_THAT(meter->missing(), IsEmpty());

  ASSERT_THAT(meter->sensors(), SizeIs(3));
  EXPECT_EQ(meter->sensors()[0].kind, SensorKind::kPowerAverage);
  EXPECT_EQ(meter->sensors()[0].traits.window, std::nullopt);
  EXPECT_EQ(meter->sensors()[1].kind, SensorKind::kPowerAverage);
  EXPECT_EQ(meter->sensors()[2].kind, SensorKind::kPowerInstant);
  EXPECT_EQ(meter->sensors()[2].name, "hwmon:amdgpu/power1_input");
  EXPECT_EQ(meter->sensors()[2].domain, meter->domains()[1].id);
  // A sensor that may be the chip's alone says less of the board.
  EXPECT_EQ(meter->sensors()[0].traits.scale, model::scale_of_gpu("AMD Radeon"));
  EXPECT_EQ(meter->sensors()[2].traits.scale, model::scale_of_gpu("AMD Instinct"));
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 11);
  EXPECT_DOUBLE_EQ(watts(*meter, 2), 250);
}

TEST(Hwmon, AnApuIsNotAGpu) {
  TempTree tree;
  Chip(tree, "hwmon0", "amdgpu", "0000:05:00.0")
      .set("power1_input", "15000000")
      .set_device("gpu_metrics", std::string("\x78\x00\x02\x03", 4));
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("module amdgpu-0"));
  EXPECT_EQ(meter->sensors()[0].traits.scale, model::scale_of_gpu(""));
}

TEST(Hwmon, IntelBoardsCountEnergy) {
  TempTree tree;
  Chip(tree, "hwmon1", "xe", "0000:03:00.0")
      .set("energy1_input", "123456789012345")
      .set("energy2_input", "5000000")
      .set("energy2_label", "pkg");
  Chip(tree, "hwmon2", "i915", "0000:04:00.0").set("energy1_input", "7");
  Chip(tree, "hwmon3", "i915_gt0", "0000:04:00.0").set("energy1_input", "6");
  Chip(tree, "hwmon4", "xe", "0000:05:00.0").set("energy2_input", "9");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("gpu i915-0-package", "gpu xe-0", "gpu xe-1-package",
                          "gpu xe-0-package in xe-0", "gpu i915-0", "gpu xe-1"));
  // What i915 counts, and xe on some boards, is the package: a part of the card.
  EXPECT_THAT(meter->domains()[0].name, HasSubstr("package only: a lower bound of the card"));
  EXPECT_THAT(meter->domains()[4].unavailable_reason, HasSubstr("i915-0-package only"));
  EXPECT_THAT(meter->domains()[5].unavailable_reason, HasSubstr("xe-1-package only"));
  EXPECT_THAT(meter->missing(), IsEmpty());
  model::Readings out;
  for (std::size_t i = 0; i < meter->probes().size(); ++i) meter->read(i, out);
  ASSERT_THAT(out.counters, SizeIs(4));
  EXPECT_EQ(out.counters[0].total, Energy::microjoules(7));
  EXPECT_EQ(out.counters[1].total, Energy::microjoules(123456789012345));
  EXPECT_EQ(out.counters[2].total, Energy::microjoules(9));
  EXPECT_EQ(out.counters[3].total, Energy::microjoules(5000000));
  EXPECT_LE(out.counters[0].before, out.counters[0].after);
  EXPECT_EQ(meter->sensors()[0].kind, SensorKind::kEnergyCounter);
}

TEST(Hwmon, JetsonRailsAreVoltageTimesCurrent) {
  TempTree tree;
  Chip(tree, "hwmon0", "ina3221", "1-0040")
      .set("in1_label", "VDD_GPU_SOC")
      .set("in1_input", "19960")
      .set("curr1_input", "1000")
      .set("in2_label", "VDD_CPU_CV")
      .set("in2_input", "20000")
      .set("curr2_input", "125")
      .set("in3_label", "VIN_SYS_5V0")
      .set("in3_input", "5000")
      .set("curr3_input", "100")
      .set("in7_label", "sum of shunt voltages")
      .set("in7_input", "1")
      .set("curr4_input", "9")
      .set("update_interval", "36");
  Chip(tree, "hwmon1", "ina3221", "1-0041")
      .set("in1_label", "NC")
      .set("in1_input", "0")
      .set("curr1_input", "0")
      .set("in2_label", "VDDQ_VDD2_1V8AO")
      .set("in2_input", "1100")
      .set("curr2_input", "0")
      .set("in2_enable", "0")
      .set("in3_label", "VDD_IN")
      .set("in3_input", "20000")
      .set("curr3_input", "2000");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("gpu hwmon:VDD_GPU_SOC", "cpu hwmon:VDD_CPU_CV",
                          "dram hwmon:VDDQ_VDD2_1V8AO", "platform hwmon:VDD_IN"));
  ASSERT_THAT(meter->sensors(), SizeIs(3));
  EXPECT_EQ(meter->sensors()[0].kind, SensorKind::kPowerInstant);
  EXPECT_EQ(meter->sensors()[0].name, "hwmon:ina3221/in1_input*curr1_input");
  EXPECT_EQ(meter->sensors()[0].traits.window, 36ms);
  EXPECT_EQ(meter->sensors()[0].traits.scale, model::scale_of_rail());  // no card's
  EXPECT_EQ(meter->sensors()[2].traits.window, std::nullopt);
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 19.96);
  EXPECT_DOUBLE_EQ(watts(*meter, 1), 2.5);
  EXPECT_DOUBLE_EQ(watts(*meter, 2), 40);

  // The 5 V rail has no place in the model, the memory rail is switched off: neither is 0 W.
  ASSERT_THAT(meter->missing(), SizeIs(2));
  EXPECT_EQ(meter->missing()[0].error.code, Errc::kUnsupported);
  EXPECT_THAT(meter->missing()[0].error.message, HasSubstr("VIN_SYS_5V0"));
  EXPECT_THAT(meter->missing()[1].error.message, HasSubstr("in2_enable"));
  EXPECT_THAT(meter->missing()[1].fix, HasSubstr("echo 1"));
  EXPECT_THAT(meter->domains()[2].unavailable_reason, HasSubstr("switched off"));
}

TEST(Hwmon, ThorsRailsHaveChipsOfTheirOwn) {
  TempTree tree;
  Chip(tree, "hwmon0", "ina238", "2-0044")
      .set("label", "VIN")
      .set("power1_input", "61250000")
      .set("energy1_input", "5");
  Chip(tree, "hwmon1", "ina3221", "1-0040")
      .set("in1_label", "VDD_GPU")
      .set("in1_input", "20000")
      .set("curr1_input", "1500")
      .set("in2_label", "VDD_CPU_SOC_MSS")
      .set("in2_input", "20000")
      .set("curr2_input", "325");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  // What holds the SoC and the memory, too, is in no total.
  EXPECT_THAT(describe_domains(*meter), ElementsAre("platform hwmon:VIN", "gpu hwmon:VDD_GPU",
                                                    "module hwmon:VDD_CPU_SOC_MSS"));
  EXPECT_THAT(meter->missing(), IsEmpty());
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 61.25);
  EXPECT_DOUBLE_EQ(watts(*meter, 1), 30);
}

TEST(Hwmon, SocketsOfAnEpyc) {
  TempTree tree;
  Chip(tree, "hwmon4", "amd_hsmp_hwmon", "AMDI0097:01").set("power1_input", "181500000");
  Chip(tree, "hwmon3", "amd_hsmp_hwmon", "AMDI0097:00").set("power1_input", "65088000");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("cpu package-0", "cpu package-1"));
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 65.088);
  EXPECT_DOUBLE_EQ(watts(*meter, 1), 181.5);
  // Where RAPL counts them, there is no second figure of the same processor.
  const auto second = HwmonMeter::open({.root = tree.root(), .has_cpu = true});
  ASSERT_TRUE(second);
  EXPECT_THAT((*second)->domains(), IsEmpty());
  EXPECT_THAT((*second)->missing(), SizeIs(2));

  TempTree older;
  Chip(older, "hwmon0", "amd_energy", "amd_energy.0")
      .set("energy1_input", "12")
      .set("energy1_label", "Ecore000")
      .set("energy65_input", "7000000")
      .set("energy65_label", "Esocket0");
  const auto energy = open_meter(older);
  ASSERT_TRUE(energy);
  EXPECT_THAT(describe_domains(*energy), ElementsAre("cpu package-0"));
  model::Readings out;
  energy->read(0, out);
  ASSERT_THAT(out.counters, SizeIs(1));
  EXPECT_EQ(out.counters[0].total, Energy::joules(7));
  // Both drivers have the same socket: no total may add them.
  Chip(older, "hwmon1", "amd_hsmp_hwmon", "AMDI0097:00").set("power1_input", "65088000");
  const auto both = open_meter(older);
  ASSERT_TRUE(both);
  EXPECT_THAT(describe_domains(*both), ElementsAre("cpu package-0"));
  ASSERT_THAT(both->sensors(), SizeIs(1));
  EXPECT_EQ(both->sensors()[0].name, "hwmon:amd_energy/energy65_input");
  ASSERT_THAT(both->missing(), SizeIs(1));
  EXPECT_THAT(both->missing()[0].error.message, HasSubstr("counts the same processor"));
  std::filesystem::remove(older / "sys/class/hwmon/hwmon0/energy65_input");
  older.write("sys/class/hwmon/hwmon0/energy65_input/unreadable", "");
  const auto other = open_meter(older);
  ASSERT_TRUE(other);
  EXPECT_TRUE(std::ranges::any_of(other->sensors(), [](const auto& sensor) {
    return sensor.name == "hwmon:amd_hsmp_hwmon/power1_input";
  }));
}

TEST(Hwmon, ZonesOfScmiFirmwareAreMeans) {
  TempTree tree;
  const auto zone = [&](const std::string& name, const std::string& label, const std::string& power,
                        const std::string& window) {
    const std::string folder = "sys/class/powercap/" + name + "/";
    tree.write(folder + "name", label + "\n");
    tree.write(folder + "power_uw", power + "\n");
    tree.write(folder + "constraint_0_time_window_us", window + "\n");
  };
  zone("arm-scmi:0", "soc", "24500000", "1000000");
  zone("arm-scmi:0:0", "big cores", "9000000", "20000");
  tree.write("sys/class/powercap/arm-scmi/enabled", "1\n");
  tree.write("sys/class/powercap/intel-rapl:0/energy_uj", "1\n");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("platform scmi:soc", "platform scmi:big cores"));
  ASSERT_THAT(meter->sensors(), SizeIs(2));
  EXPECT_EQ(meter->sensors()[0].kind, SensorKind::kPowerAverage);
  EXPECT_EQ(meter->sensors()[0].traits.window, 1s);
  EXPECT_EQ(meter->sensors()[1].kind, SensorKind::kPowerInstant);
  EXPECT_EQ(meter->sensors()[1].traits.window, 20ms);
  EXPECT_EQ(meter->sensors()[1].name, "powercap:arm-scmi:0:0/power_uw");
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 24.5);
}

TEST(Hwmon, OneLabelOnTwoChipsIsTwoDomains) {
  TempTree tree;
  for (const char* hwmon : {"hwmon0", "hwmon1"}) {
    Chip(tree, hwmon, "ina3221")
        .set("in1_label", "VDD_GPU")
        .set("in1_input", "1000")
        .set("curr1_input", "1000");
  }
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("gpu hwmon:VDD_GPU", "gpu hwmon:VDD_GPU@hwmon1/in1"));
}

TEST(Hwmon, GraceSocketsByTheirFirmwareLabels) {
  TempTree tree;
  const auto add = [&](const std::string& hwmon, const std::string& label,
                       const std::string& microwatts, const std::string& interval) {
    // This driver leaves everything in the device's folder.
    const std::string folder = "sys/class/hwmon/" + hwmon + "/device/";
    tree.write(folder + "name", "power_meter\n");
    tree.write(folder + "power1_average", microwatts + "\n");
    tree.write(folder + "power1_oem_info", label + "\n");
    tree.write(folder + "power1_average_interval", interval + "\n");
    tree.write(folder + "power1_is_battery", "0\n");
  };
  add("hwmon1", "CPU Power Socket 0", "70000000", "50");
  add("hwmon2", "Module Power Socket 0", "500000000", "1000");
  add("hwmon3", "Grace Power Socket 0", "120000000", "50");
  add("hwmon4", "SysIO Power Socket 0", "30000000", "50");
  add("hwmon5", "Grace Power Socket 1", "4294967295000", "1000");  // 0xFFFFFFFF mW: unknown
  add("hwmon6", "CPU Power Socket 1", "60000000", "1000");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter),
              ElementsAre("module module-0", "cpu package-0", "cpu package-1",
                          "cpu_cores package-0 in package-0", "cpu_uncore package-0 in package-0",
                          "cpu_cores package-1 in package-1"));
  ASSERT_THAT(meter->sensors(), SizeIs(5));
  EXPECT_EQ(meter->sensors()[0].kind, SensorKind::kPowerAverage);
  EXPECT_EQ(meter->sensors()[0].traits.window, 1s);
  EXPECT_EQ(meter->probes()[0].period, 500ms);
  EXPECT_EQ(meter->sensors()[1].kind, SensorKind::kPowerInstant);
  EXPECT_EQ(meter->sensors()[1].traits.window, 50ms);
  EXPECT_DOUBLE_EQ(watts(*meter, 1), 120);
  // Socket 1 has no value for the whole, so it has none; its CPU rail does not stand in for it.
  EXPECT_THAT(meter->domains()[2].unavailable_reason, HasSubstr("4294967295000"));
  ASSERT_THAT(meter->missing(), SizeIs(1));
  EXPECT_EQ(meter->missing()[0].error.code, Errc::kCorrupt);
}

TEST(Hwmon, AnAcpiMeterWithoutLabelIsTheMachine) {
  TempTree tree;
  Chip(tree, "hwmon0", "power_meter", "ACPI000D:00")
      .set("power1_average", "345000000")
      .set("power1_average_interval", "1000");
  Chip(tree, "hwmon1", "power_meter", "ACPI000D:01")
      .set("power1_average", "5000000")
      .set("power1_is_battery", "1");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("platform hwmon:ACPI000D:00"));
  EXPECT_THAT(meter->missing(), SizeIs(1));
}

TEST(Hwmon, AnUnknownDriverIsMissingNotGuessed) {
  TempTree tree;
  Chip(tree, "hwmon0", "mystery").set("power1_input", "1000000").set("energy3_input", "1");
  Chip(tree, "hwmon1", "amdgpu").set("power2_input", "1000000");
  tree.write("sys/class/hwmon/hwmon2/power1_input", "1000000\n");  // no name at all
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("gpu amdgpu-0"));
  EXPECT_THAT(meter->domains()[0].unavailable_reason, HasSubstr("neither its power nor"));
  EXPECT_THAT(meter->sensors(), IsEmpty());
  ASSERT_THAT(meter->missing(), SizeIs(3));
  for (const Missing& m : meter->missing()) EXPECT_EQ(m.error.code, Errc::kUnsupported);
}

TEST(Hwmon, ChannelsThatDoNotAnswerAreMissing) {
  for (const std::string bad : {"", "N/A", "-1000000", "12.5", "4294967295", "65535000000"}) {
    TempTree tree;
    Chip(tree, "hwmon0", "amdgpu", "0000:01:00.0").set("power1_average", bad);
    const auto meter = open_meter(tree);
    ASSERT_TRUE(meter);
    EXPECT_THAT(meter->sensors(), IsEmpty()) << bad;
    ASSERT_THAT(meter->missing(), SizeIs(1)) << bad;
    EXPECT_EQ(meter->missing()[0].error.code, Errc::kCorrupt);
    ASSERT_THAT(meter->domains(), SizeIs(1));
    EXPECT_THAT(meter->domains()[0].unavailable_reason, HasSubstr("power1_average"));
  }
  // Where the other sensor of the same board answers, the board is measured.
  for (const auto& [blocked, working] :
       {std::pair{"power1_average", "power1_input"}, std::pair{"power1_input", "power1_average"}}) {
    TempTree tree;
    Chip(tree, "hwmon0", "amdgpu", "0000:01:00.0").block(blocked).set(working, "5");
    const auto meter = open_meter(tree);
    ASSERT_TRUE(meter);
    EXPECT_THAT(meter->missing(), SizeIs(1));
    EXPECT_THAT(meter->sensors(), SizeIs(1));
    EXPECT_THAT(meter->domains()[0].unavailable_reason, IsEmpty());
  }
}

// amdgpu refuses reads of a board that runtime power management has switched off.
TEST(Hwmon, ABoardThatIsAsleepIsReadOnceItWakesUp) {
  TempTree tree;
  Chip board(tree, "hwmon0", "amdgpu", "0000:01:00.0");
  board.block("power1_average");
  std::filesystem::create_directories(tree / "sys/devices/0000:01:00.0/power");
  board.set_device("power/runtime_status", "suspended\n");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  ASSERT_THAT(meter->sensors(), SizeIs(1));
  EXPECT_THAT(meter->missing(), IsEmpty());
  model::Readings out;
  meter->read(0, out);
  EXPECT_THAT(out.powers, IsEmpty());
  ASSERT_THAT(out.failures, SizeIs(1));
  EXPECT_THAT(out.failures[0].error.message, HasSubstr("until work wakes it up"));
  std::filesystem::remove_all(tree / "sys/class/hwmon/hwmon0/power1_average");
  board.set("power1_average", "45000000").set_device("power/runtime_status", "active\n");
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 45);
}

TEST(Hwmon, AReadThatFailsLaterIsAFailure) {
  TempTree tree;
  Chip board(tree, "hwmon0", "amdgpu", "0000:01:00.0");
  board.set("power1_input", "100000000");
  Chip rail(tree, "hwmon1", "ina3221", "1-0040");
  rail.set("in1_label", "VDD_GPU").set("in1_input", "1000").set("curr1_input", "500");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  ASSERT_THAT(meter->sensors(), SizeIs(2));
  const auto fails = [&](std::size_t index) {
    model::Readings out;
    meter->read(index, out);
    EXPECT_TRUE(out.powers.empty());
    return out.failures.size() == 1 && out.failures[0].sensor == meter->sensors()[index].id;
  };
  board.block("power1_input");  // busy
  EXPECT_TRUE(fails(0));
  board.block("power1_input").set("other", "1");
  std::filesystem::remove_all(tree / "sys/class/hwmon/hwmon0/power1_input");  // fell off the bus
  EXPECT_TRUE(fails(0));
  board.set("power1_input", "101000000");
  EXPECT_DOUBLE_EQ(watts(*meter, 0), 101);

  rail.set("curr1_input", "none");
  EXPECT_TRUE(fails(1));
  rail.set("curr1_input", "-40");
  EXPECT_TRUE(fails(1));
  rail.set("curr1_input", "0");
  EXPECT_DOUBLE_EQ(watts(*meter, 1), 0);
}

TEST(Hwmon, PollsAsOftenAsItIsWorth) {
  TempTree tree;
  Chip(tree, "hwmon0", "amdgpu", "0000:01:00.0")
      .set("power1_average", "1")
      .set("power1_input", "1");
  Chip(tree, "hwmon1", "ina3221", "1-0040")
      .set("in1_label", "VDD_GPU")
      .set("in1_input", "1000")
      .set("curr1_input", "500")
      .set("update_interval", "40");
  Chip(tree, "hwmon2", "xe", "0000:02:00.0").set("energy1_input", "1");
  const auto periods = [&](Demand demand) {
    std::vector<Duration> result;
    if (const auto meter = open_meter(tree, demand)) {
      for (const Probe& p : meter->probes()) result.push_back(p.period);
    }
    return result;
  };
  EXPECT_THAT(periods({}), ElementsAre(500ms, 100ms, 100ms, 100ms));
  EXPECT_THAT(periods({.shortest_window = 500ms}), ElementsAre(500ms, 20ms, 40ms, 10ms));
  EXPECT_THAT(periods({.poll_period = 2s}), ElementsAre(2s, 2s, 2s, 2s));
}

// A load of the period of the reads is seen in all its phases.
TEST(Hwmon, ReadsPowerInAllPartsOfAPeriod) {
  TempTree tree;
  Chip(tree, "hwmon0", "amdgpu", "0000:01:00.0").set("power1_input", "1000000");
  Chip(tree, "hwmon1", "xe", "0000:02:00.0").set("energy1_input", "1000000");
  const auto meter = open_meter(tree, {.poll_period = 100s});
  const auto next = [&](std::size_t probe) {
    model::Readings out;
    const HostTime now = HostClock::now();
    return seconds(meter->read(probe, out) - now) / 100;
  };
  std::array<int, 5> fifths{};
  double at = 0;
  for (int i = 0; i < 25; ++i) {
    at += next(0);
    ++fifths.at(static_cast<std::size_t>(5 * (at - std::floor(at))));
  }
  EXPECT_NEAR(at, 25, 1);
  EXPECT_GE(*std::min_element(fifths.begin(), fifths.end()), 3);
  EXPECT_NEAR(next(1), 1, 0.1);
}

}  // namespace
}  // namespace jouleprof::meters
