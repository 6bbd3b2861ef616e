// What the meter reads, and what it says when it can't.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "meters/nvml/device_sensors.h"
#include "meters/nvml/nvml_meter_fixture.h"
#include "model/device/sensor.h"

namespace jouleprof::meters {
namespace {

using abi::Architecture;
using abi::Return;
using nvml::FakeGpu;
using testing::HasSubstr;
using namespace std::chrono_literals;

using NvmlReadingTest = NvmlMeterTest;

TEST_F(NvmlReadingTest, GpuLostInTheMiddleIsReportedOnceOfEachSensorAndTriedRarely) {
  FakeGpu& gpu = add_hopper();
  gpu.energy_mj = [](HostTime t) {
    return 1000 + static_cast<unsigned long long>(t.time_since_epoch() / 1ms);
  };
  open();
  model::Readings out;
  for (std::size_t i = 0; i < meter_->probes().size(); ++i) meter_->read(i, out);
  EXPECT_TRUE(out.failures.empty());
  std::set<model::SensorId> had_values;
  for (const auto& x : out.counters) had_values.insert(x.sensor);
  for (const auto& x : out.powers) had_values.insert(x.sensor);
  for (const auto& x : out.gauges) had_values.insert(x.sensor);
  gpu.all = Return::kGpuIsLost;
  std::vector<model::SensorId> failed;
  for (std::size_t i = 0; i < meter_->probes().size(); ++i) {
    out.clear();
    EXPECT_GE(meter_->read(i, out), fake_.clock.host + 9s) << meter_->probes()[i].name;
    for (const auto& failure : out.failures) {
      EXPECT_THAT(failure.error.message, HasSubstr("GPU is lost"));
      failed.push_back(failure.sensor);
    }
    const auto reported = out.failures.size();
    fake_.pass(10s);
    meter_->read(i, out);
    EXPECT_EQ(out.failures.size(), reported);
    EXPECT_TRUE(out.powers.empty() && out.counters.empty() && out.gauges.empty());
  }
  EXPECT_THAT(failed, testing::IsSupersetOf(had_values));
  gpu.all = Return::kSuccess;
  fake_.pass(10s);
  out.clear();
  for (std::size_t i = 0; i < meter_->probes().size(); ++i) meter_->read(i, out);
  EXPECT_EQ(out.counters.size(), 1u);
  EXPECT_FALSE(out.gauges.empty());
}

TEST_F(NvmlReadingTest, GaugesAreInSiUnits) {
  add_hopper();
  open();
  model::Readings out;
  EXPECT_EQ(meter_->read(*probe("gpu0 state"), out), fake_.clock.host + 900ms);
  const auto value = [&](std::string_view name) -> std::optional<double> {
    for (const auto& r : out.gauges) {
      if (gauge(name) && r.sensor == gauge(name)->id) return r.value;
    }
    return std::nullopt;
  };
  EXPECT_EQ(value(model::gauge::kSmClock), 1980e6);
  EXPECT_EQ(value(model::gauge::kMemoryClock), 2619e6);
  EXPECT_EQ(value(model::gauge::kTemperature), 41);
  EXPECT_EQ(value(model::gauge::kGpuUtilisation), 0.87);
  EXPECT_EQ(value(model::gauge::kMemoryUtilisation), 0.35);
  EXPECT_EQ(value(model::gauge::kPowerLimit), 700);
  EXPECT_EQ(value(model::gauge::kClockEventReasons), 4);
  EXPECT_FALSE(gauge(model::gauge::kEncoderUtilisation));
  EXPECT_FALSE(gauge(model::gauge::kFanSpeed));
  EXPECT_EQ(out.powers.size(), 2u);  // instant and average
  meter_->read(*probe("gpu0 memory power"), out);
  EXPECT_EQ(out.powers.size(), 3u);
}

TEST_F(NvmlReadingTest, BoardsWithAFanHaveItsSpeed) {
  add_hopper().fan_percent = 35;
  open();
  model::Readings out;
  meter_->read(*probe("gpu0 state"), out);
  ASSERT_TRUE(gauge(model::gauge::kFanSpeed));
  const auto fan = std::find_if(out.gauges.begin(), out.gauges.end(), [&](const auto& r) {
    return r.sensor == gauge(model::gauge::kFanSpeed)->id;
  });
  ASSERT_NE(fan, out.gauges.end());
  EXPECT_EQ(fan->value, 0.35);
}

TEST(NvmlClockReasons, AreTranslatedAndUnknownBitsLeftOut) {
  using enum model::ClockReason;
  EXPECT_EQ(nvml::clock_reasons(0).gauge(), 0);
  EXPECT_EQ(nvml::clock_reasons(abi::kReasonHwThermalSlowdown | abi::kReasonGpuIdle).gauge(),
            (model::ClockReasons{kHardwareThermal, kIdle}).gauge());
  EXPECT_EQ(nvml::clock_reasons(0xFFFF'0000'0000'0000 | abi::kReasonHwPowerBrakeSlowdown).gauge(),
            model::ClockReasons{kPowerBrake}.gauge());
}

TEST_F(NvmlReadingTest, GaugeFailuresAndRemoval) {
  FakeGpu& gpu = add_hopper();
  options_.demand.shortest_window = std::chrono::seconds(1);
  open();
  const std::size_t state = *probe("gpu0 state");
  model::Readings out;
  gpu.temperature = 0xFFFFFFFF;  // no value now
  meter_->read(state, out);
  meter_->read(state, out);
  ASSERT_EQ(out.failures.size(), 1u);
  EXPECT_EQ(out.failures[0].sensor, gauge(model::gauge::kTemperature)->id);
  out.clear();
  gpu.temperature = 50;
  gpu.temperature_code = Return::kNotSupported;
  meter_->read(state, out);
  gpu.temperature_code = Return::kSuccess;
  meter_->read(state, out);
  EXPECT_TRUE(out.failures.empty());
  EXPECT_TRUE(std::none_of(out.gauges.begin(), out.gauges.end(), [&](const auto& r) {
    return r.sensor == gauge(model::gauge::kTemperature)->id;
  }));
}

TEST_F(NvmlReadingTest, AListOfProcessesIsAGaugeAlsoWhenItIsEmpty) {
  FakeGpu& gpu = add_hopper();
  FakeGpu& other = add_hopper();
  other.compute = {{7, 500, 0, 0}};
  open();
  const auto counts = [&] {
    model::Readings out;
    EXPECT_TRUE(meter_->read_processes(out));
    std::map<std::string, double> by_device;
    for (const auto& r : out.gauges) {
      const auto& sensor = meter_->sensors()[static_cast<std::size_t>(r.sensor)];
      const auto& domain = meter_->domains()[static_cast<std::size_t>(sensor.domain)];
      EXPECT_EQ(sensor.name, model::gauge::kProcessCount);
      EXPECT_EQ(domain.kind, model::DomainKind::kGpu);
      EXPECT_EQ(r.at, fake_.clock.host);
      by_device[domain.device] = r.value;
    }
    return by_device;
  };
  using Counts = std::map<std::string, double>;
  EXPECT_EQ(counts(), (Counts{{"gpu0", 0}, {"gpu1", 1}}));
  fake_.pass(1s);
  gpu.compute = {{10, 500, 0, 0}, {11, 500, 0, 0}};
  gpu.graphics = {{11, 500, 0, 0}, {12, 500, 0, 0}};
  EXPECT_EQ(counts(), (Counts{{"gpu0", 3}, {"gpu1", 1}}));
  gpu.processes_code = Return::kUnknown;  // then the number is not known
  EXPECT_EQ(counts(), (Counts{{"gpu1", 1}}));
}

TEST_F(NvmlReadingTest, ADeviceThatDoesNotListProcessesHasNoCount) {
  add_hopper().processes_code = Return::kNotSupported;
  open();
  EXPECT_FALSE(gauge(model::gauge::kProcessCount));
}

TEST_F(NvmlReadingTest, MemoryTemperatureComesWithTheFields) {
  FakeGpu& gpu = add_hopper();
  gpu.set_power(abi::kFieldMemoryTemperature, 0, 62);
  open();
  ASSERT_TRUE(gauge(model::gauge::kMemoryTemperature));
  const auto sensor = gauge(model::gauge::kMemoryTemperature)->id;
  const auto readings = [&] {
    model::Readings out;
    meter_->read(*probe("gpu0 state"), out);
    EXPECT_TRUE(out.failures.empty());
    EXPECT_EQ(out.powers.size(), 2u);
    std::erase_if(out.gauges, [&](const auto& r) { return r.sensor != sensor; });
    return out.gauges;
  };
  ASSERT_EQ(readings().size(), 1u);
  EXPECT_EQ(readings()[0].value, 62);
  gpu.fields.erase({abi::kFieldMemoryTemperature, 0});
  EXPECT_TRUE(readings().empty());
  EXPECT_TRUE(readings().empty());
}

TEST_F(NvmlReadingTest, PowerSentinelIsAFailureAndEachValueTypeIsRead) {
  FakeGpu& gpu = add_old(Architecture::kHopper, 9, 0);
  gpu.set_power(abi::kFieldPowerInstant, abi::kScopeGpu, 100'000);
  open();
  const std::size_t power = *probe("gpu0 power");
  auto& field = gpu.fields[{abi::kFieldPowerInstant, abi::kScopeGpu}];
  model::Readings out;
  field = {Return::kSuccess, abi::ValueType::kDouble, {.d = 123'500}};
  meter_->read(power, out);
  field = {Return::kSuccess, abi::ValueType::kUnsignedLongLong, {.ull = 124'500}};
  meter_->read(power, out);
  ASSERT_EQ(out.powers.size(), 2u);
  EXPECT_DOUBLE_EQ(out.powers[0].power.watts(), 123.5);
  EXPECT_DOUBLE_EQ(out.powers[1].power.watts(), 124.5);
  out.clear();
  field = {Return::kSuccess, abi::ValueType::kUnsignedInt, {.ui = 0xFFFFFFFF}};
  meter_->read(power, out);
  field = {Return::kSuccess, abi::ValueType::kUnsignedLongLong, {.ull = 4294967295000}};
  meter_->read(power, out);
  field = {Return::kSuccess, abi::ValueType::kSignedInt, {.i = -5}};
  meter_->read(power, out);
  EXPECT_TRUE(out.powers.empty());
  ASSERT_EQ(out.failures.size(), 2u);  // no value (reported once), then an absurd one
  EXPECT_EQ(out.failures[0].error.code, Errc::kUnavailable);
  EXPECT_EQ(out.failures[1].error.code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::meters
