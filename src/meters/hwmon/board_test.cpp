#include "meters/hwmon/board.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "meters/hwmon/hwmon_fixture.h"
#include "model/device/sensor.h"

namespace jouleprof::meters {
namespace {

using model::SensorKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

// A card as /sys/class/drm shows it, with the chip in its device's folder.
class Card {
 public:
  Card(const TempTree& tree, const std::string& card, const std::string& driver,
       const std::string& address)
      : tree_(tree),
        device_("sys/class/drm/" + card + "/device/"),
        chip_(device_ + "hwmon/hwmon3/") {
    tree.write(device_ + "uevent",
               "DRIVER=" + driver + "\nPCI_CLASS=30000\nPCI_SLOT_NAME=" + address + "\n");
    tree.write(chip_ + "name", driver + "\n");
  }
  Card& set(const std::string& attribute, const std::string& value) {
    tree_.write(chip_ + attribute, value + "\n");
    return *this;
  }
  Card& device(const std::string& attribute, const std::string& value) {
    tree_.write(device_ + attribute, value);
    return *this;
  }
  // A table of Instinct's: v1.6, its power in W and its energy in 2^-16 J.
  Card& metrics(unsigned watts, unsigned long long counts, char content = 6) {
    std::string table(322, '\xff');
    table.replace(0, 4, std::string("\x42\x01\x01", 3) + content);
    const auto put = [&](std::size_t at, unsigned long long value, std::size_t width) {
      for (std::size_t i = 0; i < width; ++i) table[at + i] = static_cast<char>(value >> 8 * i);
    };
    put(content == 6 ? 10 : 22, watts, 2);
    put(content == 6 ? 16 : 24, counts, 8);
    return device("gpu_metrics", table);
  }

 private:
  const TempTree& tree_;
  std::string device_;
  std::string chip_;
};

std::map<std::string, double> read_gauges(Meter& meter) {
  model::Readings out;
  for (std::size_t i = 0; i < meter.probes().size(); ++i) meter.read(i, out);
  EXPECT_THAT(out.failures, IsEmpty());
  std::map<std::string, double> found;
  for (const auto& g : out.gauges) {
    found[meter.sensors()[static_cast<std::size_t>(g.sensor)].name] = g.value;
  }
  return found;
}

const model::Sensor* find_sensor(const Meter& meter, SensorKind kind) {
  for (const auto& s : meter.sensors()) {
    if (s.kind == kind) return &s;
  }
  return nullptr;
}

TEST(Boards, InstinctCountsTheSocketInItsTable) {
  TempTree tree;
  Card(tree, "card1", "amdgpu", "0000:0c:00.0")
      .set("power1_input", "140000000")
      .metrics(141, 65536ULL * 1'234'567);
  Card(tree, "card9", "amdgpu", "0000:22:00.0").metrics(150, 65536ULL * 9);
  // A partition of the first board: a device of the driver's own.
  tree.write("sys/class/drm/card2/device/uevent", "DRIVER=amdgpu_xcp\n");
  tree.write("sys/class/drm/card1-DP-1/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0:0\n");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("gpu amdgpu-0", "gpu amdgpu-1"));
  EXPECT_THAT(meter->missing(), IsEmpty());
  for (const auto& domain : meter->domains()) EXPECT_THAT(domain.unavailable_reason, IsEmpty());
  ASSERT_THAT(meter->sensors(), SizeIs(4));
  EXPECT_EQ(meter->sensors()[1].name, "gpu_metrics:v1.6/energy_accumulator");
  EXPECT_EQ(meter->sensors()[1].traits.quantum, Energy::microjoules(16));
  // The table's power counts where hwmon has none.
  EXPECT_EQ(meter->sensors()[3].name, "gpu_metrics:v1.6/curr_socket_power");
  EXPECT_EQ(meter->sensors()[3].kind, SensorKind::kPowerInstant);
  model::Readings out;
  for (std::size_t i = 0; i < meter->probes().size(); ++i) meter->read(i, out);
  ASSERT_THAT(out.counters, SizeIs(2));
  EXPECT_EQ(out.counters[0].total, Energy::microjoules(1'234'567'000'000));
  EXPECT_EQ(out.counters[1].total, Energy::microjoules(9'000'000));
  ASSERT_THAT(out.powers, SizeIs(2));
  EXPECT_DOUBLE_EQ(out.powers[0].power.watts(), 140);
  EXPECT_DOUBLE_EQ(out.powers[1].power.watts(), 150);

  // As is one that changes its version, which may have another unit.
  Card(tree, "card9", "amdgpu", "0000:22:00.0").metrics(150, 65536ULL * 9, 3);
  out.clear();
  meter->read(2, out);
  ASSERT_THAT(out.failures, SizeIs(2));
  EXPECT_THAT(out.failures[0].error.message, HasSubstr("changed from v1.6 to v1.3"));
  EXPECT_THAT(out.counters, IsEmpty());

  // A table that is gone later is a failure of each of its sensors.
  std::filesystem::remove(tree / "sys/class/drm/card9/device/gpu_metrics");
  out.clear();
  meter->read(2, out);
  EXPECT_THAT(out.failures, SizeIs(2));
  EXPECT_THAT(out.counters, IsEmpty());
}

TEST(Boards, ACounterWithoutAUnitIsNoEnergy) {
  TempTree tree;
  Card(tree, "card0", "amdgpu", "0000:03:00.0")
      .set("power1_average", "36000000")
      .metrics(36, 17'000'000, 3);
  Card(tree, "card1", "amdgpu", "0000:04:00.0").set("power1_average", "49000000").metrics(49, 0, 3);
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_EQ(find_sensor(*meter, SensorKind::kEnergyCounter), nullptr);
  ASSERT_THAT(meter->missing(), SizeIs(2));
  EXPECT_THAT(meter->missing()[0].what, HasSubstr("v1.3/energy_accumulator of amdgpu-0"));
  EXPECT_THAT(meter->missing()[0].error.message, HasSubstr("17000000 counts of a unit"));
  EXPECT_THAT(meter->missing()[1].error.message, HasSubstr("stands at 0"));
  model::Readings out;
  meter->read(0, out);
  meter->read(1, out);
  ASSERT_THAT(out.powers, SizeIs(2));
  EXPECT_DOUBLE_EQ(out.powers[0].power.watts(), 36);
}

TEST(Boards, TheSecondDieOfAPackageIsAbsent) {
  TempTree tree;
  Card(tree, "card0", "amdgpu", "0000:c1:00.0").set("power1_average", "90000000");
  Card(tree, "card1", "amdgpu", "0000:c6:00.0").set("power1_average", "0").metrics(0, 0);
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(meter->sensors(), SizeIs(1));
  EXPECT_THAT(meter->domains()[1].unavailable_reason, HasSubstr("two dies"));

  // MI250: the first die's counter is the package's, by the unit of AMD's library.
  TempTree mi250;
  Card(mi250, "card0", "amdgpu", "0000:c1:00.0")
      .device("device", "0x740c\n")
      .set("power1_average", "90000000")
      .metrics(90, 65536ULL * 55, 3);
  Card(mi250, "card1", "amdgpu", "0000:c6:00.0")
      .device("device", "0x740c\n")
      .set("power1_average", "0")
      .metrics(0, 0, 3);
  const auto package = open_meter(mi250);
  ASSERT_TRUE(package);
  ASSERT_THAT(package->sensors(), SizeIs(2));
  EXPECT_EQ(package->sensors()[1].name, "gpu_metrics:v1.3/energy_accumulator");
  EXPECT_EQ(package->sensors()[1].domain, package->domains()[0].id);
  EXPECT_THAT(package->domains()[1].unavailable_reason, HasSubstr("two dies"));
  model::Readings out;
  package->read(1, out);
  ASSERT_THAT(out.counters, SizeIs(1));
  EXPECT_EQ(out.counters[0].total, Energy::joules(55));
}

TEST(Boards, AnApuIsAModuleWhateverShowsIt) {
  TempTree tree;
  Card(tree, "card0", "amdgpu", "0000:04:00.0")
      .set("in1_label", "vddnb")
      .set("power1_label", "slowPPT")
      .set("power1_average", "3218000")
      .set("power2_label", "fastPPT")
      .set("power2_average", "3040000");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("module amdgpu-0"));
  EXPECT_THAT(meter->sensors(), SizeIs(1));
  EXPECT_THAT(meter->missing(), IsEmpty());

  // MI300A has the table of a board, and 24 CPU cores.
  TempTree instinct;
  Card(instinct, "card1", "amdgpu", "0000:01:00.0")
      .device("device", "0x74a0\n")
      .metrics(300, 65536);
  const auto socket = open_meter(instinct);
  ASSERT_TRUE(socket);
  EXPECT_THAT(describe_domains(*socket), ElementsAre("module amdgpu-0"));
}

TEST(Boards, ACardCounterAtZeroLeavesThePackage) {
  TempTree tree;
  Card(tree, "card1", "xe", "0000:0b:00.0")
      .set("energy1_label", "card")
      .set("energy1_input", "0")
      .set("energy2_label", "pkg")
      .set("energy2_input", "29523753173");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("gpu xe-0", "gpu xe-0-package"));
  EXPECT_THAT(meter->domains()[0].unavailable_reason, HasSubstr("stands at 0"));
  EXPECT_THAT(meter->domains()[1].name, HasSubstr("a lower bound of the card"));
  EXPECT_THAT(meter->domains()[1].unavailable_reason, IsEmpty());
  EXPECT_FALSE(meter->domains()[1].parent);
  model::Readings out;
  meter->read(0, out);
  ASSERT_THAT(out.counters, SizeIs(1));
  EXPECT_EQ(out.counters[0].total, Energy::microjoules(29523753173));
}

TEST(Boards, WithoutASensorThereIsAReason) {
  TempTree tree;
  Card(tree, "card0", "i915", "0000:00:02.0");
  Card(tree, "card1", "amdgpu", "0000:01:00.0").set("temp1_input", "33000");
  Card(tree, "card2", "ast", "0000:02:00.0");
  const auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_THAT(describe_domains(*meter), ElementsAre("gpu amdgpu-0"));
  EXPECT_THAT(meter->domains()[0].unavailable_reason, HasSubstr("neither its power nor"));
  // No total lacks the integrated one.
  ASSERT_THAT(meter->missing(), SizeIs(1));
  EXPECT_EQ(meter->missing()[0].what, "Intel GPU at 0000:00:02.0");
  EXPECT_THAT(meter->missing()[0].error.message, HasSubstr("whose package contains"));
}

TEST(Boards, StateIsInGauges) {
  namespace g = model::gauge;
  TempTree tree;
  Card(tree, "card0", "amdgpu", "0000:03:00.0")
      .set("power1_average", "36000000")
      .set("power1_cap", "289000000")
      .set("freq1_label", "sclk")
      .set("freq1_input", "2105000000")
      .set("freq2_label", "mclk")
      .set("freq2_input", "1000000000")
      .set("temp1_label", "edge")
      .set("temp1_input", "56000")
      .set("temp2_label", "junction")
      .set("temp2_input", "59000")
      .set("temp3_label", "mem")
      .set("temp3_input", "54000")
      .set("pwm1", "51")
      .device("gpu_busy_percent", "93\n")
      .device("mem_info_vram_used", "668274688\n");
  auto meter = open_meter(tree);
  ASSERT_TRUE(meter);
  EXPECT_EQ(meter->probes().back().period, 900ms);
  const auto gauges = read_gauges(*meter);
  const auto of = [&](std::string_view name) { return gauges.at(std::string(name)); };
  EXPECT_EQ(of(g::kSmClock), 2.105e9);
  EXPECT_EQ(of(g::kMemoryClock), 1e9);
  EXPECT_DOUBLE_EQ(of(g::kTemperature), 56);
  EXPECT_DOUBLE_EQ(of(g::kMemoryTemperature), 54);
  EXPECT_DOUBLE_EQ(of(g::kGpuUtilisation), 0.93);
  EXPECT_EQ(of(g::kMemoryUsed), 668274688);
  EXPECT_DOUBLE_EQ(of(g::kPowerLimit), 289);
  EXPECT_DOUBLE_EQ(of(g::kFanSpeed), 0.2);

  TempTree intel;
  Card(intel, "card0", "xe", "0000:08:00.0")
      .set("energy2_input", "59540970520")
      .set("power1_max", "0")
      .set("power2_max", "55000000")
      .set("temp2_label", "pkg")
      .set("temp2_input", "56000")
      .device("tile0/gt0/freq0/act_freq", "2450\n");
  meter = open_meter(intel);
  ASSERT_TRUE(meter);
  const auto other = read_gauges(*meter);
  EXPECT_DOUBLE_EQ(other.at(std::string(g::kPowerLimit)), 55);  // 0: no limit
  EXPECT_EQ(other.at(std::string(g::kSmClock)), 2.45e9);
  EXPECT_EQ(other.at(std::string(g::kTemperature)), 56);
}

// Trees of real boards, where they are at hand: a folder for each with cardN/device/...
TEST(Boards, EveryCapturedBoardHasAFigureOrAReason) {
  const std::string captures = JOULEPROF_SOURCE_DIR "/../shared/data/sysfs";
  if (!std::filesystem::is_directory(captures)) GTEST_SKIP() << "there is no " << captures;
  int boards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(captures)) {
    if (!entry.is_directory()) continue;
    ++boards;
    TempTree tree;
    std::filesystem::create_directories(tree / "sys/class");
    std::filesystem::create_directory_symlink(entry.path(), tree / "sys/class/drm");
    const auto meter = open_meter(tree);
    ASSERT_TRUE(meter) << entry.path();
    ASSERT_FALSE(meter->domains().empty() && meter->missing().empty()) << entry.path();
    model::Readings out;
    for (std::size_t i = 0; i < meter->probes().size(); ++i) meter->read(i, out);
    EXPECT_THAT(out.failures, IsEmpty()) << entry.path();
    for (const auto& p : out.powers) EXPECT_GT(p.power, Power{}) << entry.path();
    for (const auto& c : out.counters) EXPECT_GT(c.total, Energy{}) << entry.path();
    for (const auto& domain : meter->domains()) {
      const bool is_read = std::any_of(
          meter->sensors().begin(), meter->sensors().end(),
          [&](const auto& s) { return s.domain == domain.id && s.kind != SensorKind::kGauge; });
      EXPECT_EQ(is_read, domain.unavailable_reason.empty()) << entry.path() << domain.device;
      std::string line = entry.path().filename().string() + ": " + domain.device + " ";
      for (const auto& p : out.powers) {
        const auto& s = meter->sensors()[static_cast<std::size_t>(p.sensor)];
        if (s.domain == domain.id) line += std::to_string(p.power.watts()) + " W ";
      }
      for (const auto& c : out.counters) {
        const auto& s = meter->sensors()[static_cast<std::size_t>(c.sensor)];
        if (s.domain == domain.id) line += std::to_string(c.total.joules()) + " J ";
      }
      std::puts((line + domain.unavailable_reason).c_str());
    }
  }
  EXPECT_GT(boards, 0);
}

}  // namespace
}  // namespace jouleprof::meters
