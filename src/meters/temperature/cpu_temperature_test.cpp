#include <gmock/gmock.h>

#include "meters/temperature/cpu_temperature_meter.h"
#include "model/device/sensor.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kHwmon = "sys/class/hwmon/";

void add_chip(const TempTree& tree, const std::string& hwmon, const std::string& driver,
              const std::string& device = "") {
  tree.write(kHwmon + hwmon + "/name", driver + "\n");
  if (device.empty()) return;
  std::filesystem::create_directories(tree / ("sys/devices/" + device));
  std::filesystem::create_directory_symlink("../../../devices/" + device,
                                            tree / (kHwmon + hwmon + "/device"));
}

void add_input(const TempTree& tree, const std::string& hwmon, int number, const std::string& label,
               const std::string& value) {
  const std::string file = kHwmon + hwmon + "/temp" + std::to_string(number);
  if (!label.empty()) tree.write(file + "_label", label + "\n");
  tree.write(file + "_input", value + "\n");
}

void add_packages(const TempTree& tree, const std::vector<int>& of_cpus) {
  for (std::size_t i = 0; i < of_cpus.size(); ++i) {
    tree.write("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/physical_package_id",
               std::to_string(of_cpus[i]) + "\n");
  }
}

std::vector<std::pair<int, double>> found_in(const TempTree& tree) {
  std::vector<std::pair<int, double>> out;
  for (const auto& t : find_cpu_temperatures(tree.root())) {
    out.emplace_back(t.package.value_or(-1), read_celsius(t.file).value_or(-1000));
  }
  return out;
}

TEST(CpuTemperature, CoretempOfThePackagesNotOfTheirCores) {
  TempTree tree;
  add_chip(tree, "hwmon9", "coretemp");
  add_input(tree, "hwmon9", 1, "Package id 0", "41000");
  add_input(tree, "hwmon9", 2, "Core 0", "99000");
  add_chip(tree, "hwmon10", "coretemp");
  add_input(tree, "hwmon10", 1, "Package id 1", "52500");
  add_chip(tree, "hwmon0", "nvme");
  add_input(tree, "hwmon0", 1, "Composite", "30000");
  tree.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");  // the same once more
  tree.write("sys/class/thermal/thermal_zone0/temp", "40000\n");
  EXPECT_THAT(found_in(tree), ElementsAre(std::pair(0, 41.0), std::pair(1, 52.5)));
}

TEST(CpuTemperature, OlderDriversLeaveTheirFilesInTheDevice) {
  TempTree tree;
  tree.write("sys/class/hwmon/hwmon0/device/name", "coretemp\n");
  tree.write("sys/class/hwmon/hwmon0/device/temp1_label", "Package id 0\n");
  tree.write("sys/class/hwmon/hwmon0/device/temp1_input", "38000\n");
  EXPECT_THAT(found_in(tree), ElementsAre(std::pair(0, 38.0)));
}

TEST(CpuTemperature, K10tempByTheOrderOfItsNodes) {
  TempTree tree;
  add_packages(tree, {0, 0, 1, 1});
  add_chip(tree, "hwmon0", "k10temp", "0000:00:19.3");
  add_input(tree, "hwmon0", 1, "Tctl", "60000");
  add_chip(tree, "hwmon1", "k10temp", "0000:00:18.3");
  add_input(tree, "hwmon1", 1, "Tctl", "70000");  // with the offset for the fans
  add_input(tree, "hwmon1", 2, "Tdie", "50000");
  add_input(tree, "hwmon1", 3, "Tccd1", "49000");
  EXPECT_THAT(found_in(tree), ElementsAre(std::pair(0, 50.0), std::pair(1, 60.0)));
}

TEST(CpuTemperature, ProcessorsOfSeveralNodesHaveSeveralChips) {
  TempTree tree;
  add_packages(tree, {0, 1});
  for (int i = 0; i < 4; ++i) {
    const std::string hwmon = "hwmon" + std::to_string(i);
    add_chip(tree, hwmon, "k10temp", "0000:00:1" + std::string(1, "89ab"[i]) + ".3");
    add_input(tree, hwmon, 1, "Tctl", std::to_string(40 + i) + "000");
  }
  EXPECT_THAT(found_in(tree), ElementsAre(std::pair(0, 40.0), std::pair(0, 41.0),
                                          std::pair(1, 42.0), std::pair(1, 43.0)));
  add_packages(tree, {0, 1, 2});  // four chips, three processors: whose is whose?
  EXPECT_THAT(found_in(tree)[0].first, -1);
}

TEST(CpuTemperature, WhatIsNoTemperature) {
  TempTree tree;
  add_packages(tree, {0});
  add_chip(tree, "hwmon0", "k10temp", "0000:00:18.3");
  add_input(tree, "hwmon0", 1, "", "20500");  // a processor before Zen
  EXPECT_THAT(found_in(tree), IsEmpty());
  TempTree empty;
  EXPECT_THAT(found_in(empty), IsEmpty());
  tree.write("t", "255000\n");
  EXPECT_EQ(read_celsius(tree / "t").error().code, Errc::kCorrupt);
  tree.write("t", "-273000\n");
  EXPECT_EQ(read_celsius(tree / "t").error().code, Errc::kCorrupt);
  tree.write("t", "\n");
  EXPECT_FALSE(read_celsius(tree / "t"));
  tree.write("t", "-5000\n");
  EXPECT_DOUBLE_EQ(read_celsius(tree / "t").value(), -5);
}

TEST(CpuTemperature, ThermalZonesWhereThereIsNoChip) {
  TempTree tree;
  add_packages(tree, {0, 0});
  tree.write("sys/class/thermal/thermal_zone0/type", "acpitz\n");
  tree.write("sys/class/thermal/thermal_zone0/temp", "27800\n");
  tree.write("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n");
  tree.write("sys/class/thermal/thermal_zone1/temp", "44000\n");
  EXPECT_THAT(found_in(tree), ElementsAre(std::pair(0, 44.0)));
  tree.write("sys/class/thermal/thermal_zone2/type", "x86_pkg_temp\n");
  tree.write("sys/class/thermal/thermal_zone2/temp", "45000\n");
  EXPECT_THAT(found_in(tree), ElementsAre(std::pair(-1, 44.0), std::pair(-1, 45.0)));
}

// Two packages and the cores of one, with an energy counter each.
class Inner : public Meter {
 public:
  explicit Inner(model::Provenance provenance = model::Provenance::kMeasured) {
    const auto add = [&](model::DomainKind kind, const char* device) {
      model::Domain domain;
      domain.id = model::DomainId{static_cast<std::uint32_t>(domains_.size())};
      domain.kind = kind;
      domain.device = device;
      if (kind == model::DomainKind::kCpuCores) domain.parent = model::DomainId{0};
      model::Sensor sensor;
      sensor.id = model::SensorId{static_cast<std::uint32_t>(sensors_.size())};
      sensor.domain = domain.id;
      sensor.kind = model::SensorKind::kEnergyCounter;
      sensor.provenance = provenance;
      domains_.push_back(domain);
      sensors_.push_back(sensor);
    };
    add(model::DomainKind::kCpu, "package-0");
    add(model::DomainKind::kCpuCores, "package-0");
    add(model::DomainKind::kCpu, "package-10");
    probes_.push_back({"counters", 100ms});
  }
  std::string name() const override { return "inner"; }
  HostTime read(std::size_t, model::Readings& out) override {
    out.counters.push_back({model::SensorId{0}, {}, {}, Energy::joules(1)});
    return HostTime{7s};
  }
  void set_demand(const Demand& demand) override { probes_[0].period = demand.poll_period; }
};

TEST(CpuTemperature, IsAGaugeOfThePackageThatAnotherMeterMeasures) {
  TempTree tree;
  add_chip(tree, "hwmon0", "coretemp");
  add_input(tree, "hwmon0", 1, "Package id 1", "61000");
  add_chip(tree, "hwmon1", "coretemp");
  add_input(tree, "hwmon1", 1, "Package id 10", "52000");
  const auto meter = with_cpu_temperatures(std::make_unique<Inner>(), {tree.root(), {}});
  EXPECT_EQ(meter->name(), "inner");
  ASSERT_THAT(meter->sensors(), SizeIs(4));
  const auto& gauge = meter->sensors()[3];
  EXPECT_EQ(gauge.kind, model::SensorKind::kGauge);
  EXPECT_EQ(gauge.name, model::gauge::kTemperature);
  EXPECT_EQ(gauge.domain, meter->domains()[2].id);  // package 1 is not measured
  ASSERT_THAT(meter->probes(), SizeIs(2));
  EXPECT_THAT(meter->probes()[0].sensors, SizeIs(3));
  EXPECT_THAT(meter->probes()[1].sensors, ElementsAre(gauge.id));

  model::Readings out;
  EXPECT_EQ(meter->read(0, out), HostTime{7s});
  EXPECT_THAT(out.counters, SizeIs(1));
  EXPECT_THAT(out.gauges, IsEmpty());
  meter->read(1, out);
  ASSERT_THAT(out.gauges, SizeIs(1));
  EXPECT_EQ(out.gauges[0].sensor, gauge.id);
  EXPECT_DOUBLE_EQ(out.gauges[0].value, 52);

  // A file that is gone or full of nonsense is a failure of this gauge, and no value.
  add_input(tree, "hwmon1", 1, "Package id 10", "nonsense");
  meter->read(1, out);
  EXPECT_THAT(out.gauges, SizeIs(1));
  ASSERT_THAT(out.failures, SizeIs(1));
  EXPECT_EQ(out.failures[0].sensor, gauge.id);

  meter->set_demand({.poll_period = 33ms, .state_period = 250ms});
  EXPECT_EQ(meter->probes()[0].period, 33ms);
  EXPECT_EQ(meter->probes()[1].period, 250ms);
}

TEST(CpuTemperature, AnEstimateOfAllPackagesHasTheHottest) {
  TempTree tree;
  for (int i = 0; i < 2; ++i) {
    tree.write("sys/class/thermal/thermal_zone" + std::to_string(i) + "/type", "x86_pkg_temp\n");
    tree.write("sys/class/thermal/thermal_zone" + std::to_string(i) + "/temp",
               i == 0 ? "71000\n" : "42000\n");
  }
  const auto meter = with_cpu_temperatures(std::make_unique<Inner>(model::Provenance::kEstimated),
                                           {tree.root(), {}});
  model::Readings out;
  meter->read(meter->probes().size() - 1, out);
  ASSERT_THAT(out.gauges, SizeIs(2));
  EXPECT_DOUBLE_EQ(out.gauges[0].value, 71);

  // Measured packages: nothing states which one a zone is of.
  const auto plain = with_cpu_temperatures(std::make_unique<Inner>(), {tree.root(), {}});
  EXPECT_THAT(plain->sensors(), SizeIs(3));
}

}  // namespace
}  // namespace jouleprof::meters
