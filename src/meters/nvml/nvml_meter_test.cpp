// What the meter finds and how it sets itself up.
#include <gmock/gmock.h>

#include "meters/nvml/nvml_meter_fixture.h"

namespace jouleprof::meters {
namespace {

using abi::Architecture;
using abi::Return;
using model::DomainKind;
using model::SensorKind;
using nvml::FakeGpu;
using testing::HasSubstr;
using namespace std::chrono_literals;

TEST_F(NvmlMeterTest, HopperHasCounterRingAndMemory) {
  add_hopper();
  open();
  ASSERT_EQ(meter_->domains().size(), 2u);
  EXPECT_EQ(meter_->domains()[0].device, "gpu0");
  EXPECT_EQ(meter_->domains()[0].name, "Fake H100");
  EXPECT_EQ(meter_->domains()[0].uuid, "GPU-00000000");
  EXPECT_EQ(meter_->domains()[1].kind, DomainKind::kGpuMemory);
  EXPECT_EQ(meter_->domains()[1].parent, meter_->domains()[0].id);
  ASSERT_TRUE(find(SensorKind::kEnergyCounter));
  EXPECT_EQ(find(SensorKind::kEnergyCounter)->traits.refresh, 100ms);
  EXPECT_EQ(find(SensorKind::kEnergyCounter)->traits.read_cost, 5us);
  EXPECT_EQ(find(SensorKind::kEnergyCounter)->provenance, model::Provenance::kMeasured);
  ASSERT_TRUE(find(SensorKind::kPowerRing));
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.refresh, 20ms);
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.window, 3ms);
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.rise, 14ms);
  EXPECT_EQ(find(SensorKind::kEnergyCounter)->traits.rise, 14ms);
  EXPECT_TRUE(find(SensorKind::kPowerAverage, DomainKind::kGpuMemory));
  EXPECT_FALSE(probe("gpu0 power"));  // the ring makes fast polling needless
  EXPECT_TRUE(meter_->missing().empty());
}

TEST_F(NvmlMeterTest, SimulatorSaysSo) {
  add_hopper();
  api_.simulated = true;
  open();
  for (const auto& s : meter_->sensors()) EXPECT_EQ(s.provenance, model::Provenance::kSimulated);
}

TEST_F(NvmlMeterTest, CounterWithoutRingPollsInstantPower) {
  add_hopper().rings.clear();
  open();
  EXPECT_TRUE(find(SensorKind::kEnergyCounter));
  EXPECT_FALSE(find(SensorKind::kPowerRing));
  EXPECT_TRUE(misses("gpu0 power sample ring"));
  ASSERT_TRUE(probe("gpu0 power"));
  EXPECT_EQ(meter_->probes()[*probe("gpu0 power")].period, 100ms);

  model::Readings out;
  const HostTime next = meter_->read(*probe("gpu0 power"), out);
  EXPECT_EQ(next, fake_.clock.host + 100ms);
  ASSERT_EQ(out.powers.size(), 1u);
  EXPECT_DOUBLE_EQ(out.powers[0].power.watts(), 251);
  EXPECT_EQ(out.powers[0].sensor, find(SensorKind::kPowerInstant)->id);
}

TEST_F(NvmlMeterTest, PascalHasNeitherAndPollsPowerUsage) {
  add_old(Architecture::kPascal, 6, 0);
  open();
  EXPECT_TRUE(misses("gpu0 energy counter"));
  ASSERT_TRUE(find(SensorKind::kPowerInstant));
  EXPECT_EQ(find(SensorKind::kPowerInstant)->name, "nvmlDeviceGetPowerUsage");
  EXPECT_EQ(find(SensorKind::kPowerInstant)->traits.window, 10ms);
  EXPECT_EQ(meter_->probes()[*probe("gpu0 power")].period, 20ms);

  model::Readings out;  // a value that repeats is given each time
  for (int i = 0; i < 3; ++i) meter_->read(*probe("gpu0 power"), out);
  ASSERT_EQ(out.powers.size(), 3u);
  EXPECT_DOUBLE_EQ(out.powers[2].power.watts(), 250);
}

TEST_F(NvmlMeterTest, PowerUsageIsAnAverageSinceAmpereButOnGa100) {
  add_old(Architecture::kAmpere, 8, 6);
  open();
  EXPECT_FALSE(find(SensorKind::kPowerInstant));
  ASSERT_TRUE(find(SensorKind::kPowerAverage));
  EXPECT_EQ(find(SensorKind::kPowerAverage)->traits.window, 1s);
  EXPECT_TRUE(probe("gpu0 power"));
  fake_.gpus[0].minor = 0;
  open();
  EXPECT_TRUE(find(SensorKind::kPowerInstant));
  EXPECT_FALSE(find(SensorKind::kPowerAverage));
}

TEST_F(NvmlMeterTest, PollPeriodIsDemandedAndBounded) {
  add_old(Architecture::kPascal, 6, 0);
  options_.demand.poll_period = 50ms;
  EXPECT_EQ(open().probes()[*probe("gpu0 power")].period, 50ms);
  options_.demand.poll_period = 1ms;
  EXPECT_EQ(open().probes()[*probe("gpu0 power")].period, 10ms);
}

TEST_F(NvmlMeterTest, MissingSymbolsOnlyTakeTheirSensor) {
  add_hopper();
  const nvml::NvmlApi all = api_;
  api_ = {};
  api_.init = all.init;
  api_.shutdown = all.shutdown;
  api_.device_count = all.device_count;
  api_.device_by_index = all.device_by_index;
  open();
  EXPECT_TRUE(meter_->sensors().empty());
  EXPECT_TRUE(meter_->probes().empty());
  ASSERT_EQ(meter_->domains().size(), 1u);
  EXPECT_NE(meter_->domains()[0].unavailable_reason, "");
  ASSERT_TRUE(misses("gpu0 energy counter"));
  EXPECT_THAT(meter_->missing()[0].fix, HasSubstr("newer NVIDIA driver"));
  model::Readings none;
  EXPECT_FALSE(meter_->read_processes(none));
  EXPECT_TRUE(none.empty());

  api_.total_energy = all.total_energy;
  open();
  ASSERT_EQ(meter_->sensors().size(), 1u);
  EXPECT_EQ(meter_->sensors()[0].kind, SensorKind::kEnergyCounter);
  EXPECT_EQ(meter_->domains()[0].unavailable_reason, "");
}

TEST_F(NvmlMeterTest, SentinelsAndZerosAreNoSensors) {
  FakeGpu& gpu = add_hopper();
  gpu.energy_mj = [](HostTime) { return 0ULL; };
  gpu.set_power(abi::kFieldPowerInstant, abi::kScopeGpu, 0xFFFFFFFF);
  gpu.set_power(abi::kFieldPowerAverage, abi::kScopeMemory, 0);
  open();
  EXPECT_FALSE(find(SensorKind::kEnergyCounter));
  EXPECT_FALSE(find(SensorKind::kPowerInstant));
  EXPECT_TRUE(misses("gpu0 energy counter"));
  EXPECT_EQ(meter_->domains().size(), 1u);
  for (const auto bad : {~0ULL, 4294967295000ULL}) {
    gpu.energy_mj = [bad](HostTime) { return bad; };
    EXPECT_FALSE((open(), find(SensorKind::kEnergyCounter)));
  }
}

TEST_F(NvmlMeterTest, DriverThatIgnoresScopesHasNoMemoryOrModulePower) {
  FakeGpu& gpu = add_hopper();
  gpu.set_power(abi::kFieldPowerAverage, abi::kScopeMemory, 250'000);
  gpu.set_power(abi::kFieldPowerAverage, abi::kScopeModule, 250'000);
  open();
  ASSERT_EQ(meter_->domains().size(), 1u);
  EXPECT_EQ(meter_->domains()[0].kind, DomainKind::kGpu);
  EXPECT_TRUE(misses("gpu0 memory power"));
}

TEST_F(NvmlMeterTest, ModuleScopeAlone) {
  FakeGpu& gpu = fake_.gpus.emplace_back();
  gpu.set_power(abi::kFieldPowerInstant, abi::kScopeModule, 600'000);
  gpu.push_sample(fake_.clock.real, 600'000, abi::SamplingType::kModulePower);
  open();
  ASSERT_EQ(meter_->domains().size(), 1u);
  EXPECT_EQ(meter_->domains()[0].kind, DomainKind::kModule);
  EXPECT_TRUE(find(SensorKind::kEnergyCounter, DomainKind::kModule));
  EXPECT_TRUE(find(SensorKind::kPowerRing, DomainKind::kModule));
  EXPECT_EQ(find(SensorKind::kPowerInstant, DomainKind::kModule)->traits.window, 20ms);
}

TEST_F(NvmlMeterTest, GpuWithinItsModule) {
  FakeGpu& gpu = add_hopper();
  gpu.set_power(abi::kFieldPowerInstant, abi::kScopeModule, 600'000);
  open();
  EXPECT_TRUE(find(SensorKind::kEnergyCounter, DomainKind::kModule));
  EXPECT_FALSE(find(SensorKind::kEnergyCounter, DomainKind::kGpu));
  EXPECT_TRUE(find(SensorKind::kPowerRing, DomainKind::kGpu));
  EXPECT_EQ(meter_->domains()[1].kind, DomainKind::kGpu);
  EXPECT_EQ(meter_->domains()[1].parent, meter_->domains()[0].id);
}

TEST_F(NvmlMeterTest, SamplesOfTheModuleAreNotTheGpus) {
  FakeGpu& gpu = add_hopper();
  gpu.set_power(abi::kFieldPowerInstant, abi::kScopeModule, 600'000);
  gpu.rings.clear();
  gpu.push_sample(fake_.clock.real, 601'000);
  open();
  EXPECT_FALSE(find(SensorKind::kPowerRing, DomainKind::kGpu));
  EXPECT_TRUE(find(SensorKind::kPowerInstant, DomainKind::kGpu));
}

TEST_F(NvmlMeterTest, MigInstancesAreDomainsWithoutEnergy) {
  FakeGpu& gpu = add_hopper();
  gpu.mig = true;
  gpu.mig_devices.emplace_back().uuid = "MIG-1234";
  open();
  ASSERT_EQ(meter_->domains().size(), 3u);
  const auto& mig = meter_->domains()[2];
  EXPECT_EQ(mig.device, "gpu0:mig0");
  EXPECT_EQ(mig.uuid, "MIG-1234");
  EXPECT_EQ(mig.parent, meter_->domains()[0].id);
  EXPECT_THAT(mig.unavailable_reason, HasSubstr("MIG"));
  EXPECT_TRUE(find(SensorKind::kEnergyCounter));  // the whole board's stays
}

TEST_F(NvmlMeterTest, SelectsByIndexUuidPrefixAndMigInstance) {
  for (int i = 0; i < 12; ++i) add_hopper();
  fake_.gpus[3].mig = true;
  fake_.gpus[3].mig_devices.emplace_back().uuid = "MIG-abcd";
  options_.devices = {"11", "GPU-5555", "MIG-ab"};
  open();
  ASSERT_EQ(meter_->gpus().size(), 3u);
  EXPECT_EQ(meter_->gpus()[0].index, 3u);
  EXPECT_EQ(meter_->gpus()[1].index, 5u);
  EXPECT_EQ(meter_->gpus()[2].device(), "gpu11");
  EXPECT_TRUE(probe("gpu11 energy counter"));
  EXPECT_FALSE(probe("gpu0 energy counter"));
  options_.devices = {"12"};
  EXPECT_THAT(open_error(), HasSubstr("'12' matches no GPU: give an index from 0 to 11"));
  options_.devices = {"GPU-"};
  EXPECT_THAT(open_error(), HasSubstr("several GPUs"));
}

TEST_F(NvmlMeterTest, InitFailuresSayWhatToDo) {
  const std::vector<std::pair<Return, const char*>> cases{
      {Return::kDriverNotLoaded, "modprobe nvidia"},
      {Return::kLibRmVersionMismatch, "reboot"},
      {Return::kNoPermission, "/dev/nvidia"},
      {Return::kGpuIsLost, "Xid"}};
  for (const auto& [code, fix] : cases) {
    fake_.init_code = code;
    EXPECT_THAT(open_error(), HasSubstr(fix));
  }
  fake_.init_code = Return::kSuccess;
  EXPECT_THAT(open_error(), HasSubstr("lists no GPU"));
  EXPECT_EQ(fake_.shutdowns, 1);  // only what was initialised is shut down
}

TEST_F(NvmlMeterTest, LibraryThatIsNoneIsAnError) {
  options_.library = "/nonexistent/libnvidia-ml.so";
  auto meter = NvmlMeter::open(options_);
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, Errc::kNotFound);
  EXPECT_THAT(meter.error().message, HasSubstr("/nonexistent/libnvidia-ml.so"));
  options_.library = "libm.so.6";
  meter = NvmlMeter::open(options_);
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().code, Errc::kUnsupported);
}

TEST_F(NvmlMeterTest, GpuLostAtTheStartIsAnUnavailableDomain) {
  add_hopper();
  add_hopper().handle = Return::kGpuIsLost;
  open();
  const auto& lost = meter_->domains().back();
  EXPECT_EQ(lost.device, "gpu1");
  EXPECT_THAT(lost.unavailable_reason, HasSubstr("GPU is lost"));
  EXPECT_TRUE(misses("gpu1"));
  EXPECT_TRUE(probe("gpu0 energy counter"));
}

TEST_F(NvmlMeterTest, PeriodsFollowTheDemand) {
  add_hopper();
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 energy counter")].period, 10s);
  EXPECT_EQ(meter_->probes()[*probe("gpu0 power samples")].period, 900ms);
  options_.demand.shortest_window = 3s;
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 energy counter")].period, 5s);
  options_.demand.shortest_window = 100ms;
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 energy counter")].period, 100ms);
  EXPECT_EQ(meter_->probes()[*probe("gpu0 power samples")].period, 100ms);
  options_.demand.counter_period = 700ms;
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 energy counter")].period, 700ms);
  EXPECT_EQ(meter_->probes()[*probe("gpu0 power samples")].period, 100ms);
  options_.demand.counter_period = 50ms;  // sooner than it steps
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 energy counter")].period, 100ms);
  options_.demand.counter_period = {};
  options_.demand.shortest_window = 5s;
  fake_.gpus[0].ring_capacity = 20;  // 400 ms
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 power samples")].period, Duration(400ms) * 5 / 6);
  fake_.gpus[0].rings.clear();  // nothing shows the course between two reads of the counter
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 energy counter")].period, 5s);
}

TEST_F(NvmlMeterTest, ClocksAreReadAsOftenAsTheDemandSays) {
  add_hopper();
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 state")].period, 900ms);
  options_.demand.state_period = 250ms;
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 state")].period, 250ms);
  options_.demand.state_period = 1ms;
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 state")].period, 100ms);
  // The memory's power is a mean over one second, whose energy has no gaps.
  EXPECT_EQ(meter_->probes()[*probe("gpu0 memory power")].period, 100ms);
  options_.demand.state_period = 10s;
  open();
  EXPECT_EQ(meter_->probes()[*probe("gpu0 state")].period, 10s);
  EXPECT_EQ(meter_->probes()[*probe("gpu0 memory power")].period, 1s);
}

TEST_F(NvmlMeterTest, ProbesNameTheSensorsOfTheirDevice) {
  add_hopper();
  add_hopper();
  open();
  for (const auto& p : meter_->probes()) {
    ASSERT_FALSE(p.sensors.empty());
    for (const auto id : p.sensors) {
      const auto& sensor = meter_->sensors()[std::size_t(id)];
      EXPECT_TRUE(p.name.starts_with(meter_->domains()[std::size_t(sensor.domain)].device));
    }
  }
}

TEST_F(NvmlMeterTest, CalibrationOverridesDefaultTraits) {
  add_hopper();
  nvml::GpuTraits calibrated;
  calibrated.ring.window = 24ms;
  calibrated.ring.refresh = 19ms;
  options_.calibrations["GPU-00000000"] = calibrated;
  open();
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.window, 24ms);
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.refresh, 19ms);
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.rise, std::nullopt);  // of one fit with the window
  EXPECT_EQ(find(SensorKind::kPowerRing)->traits.lag, 2700us);
  EXPECT_EQ(find(SensorKind::kEnergyCounter)->traits.refresh, 100ms);
}

TEST_F(NvmlMeterTest, KnownLevelsAreThoseOfTheBoard) {
  add_hopper();
  auto& in_mig_mode = add_hopper();
  in_mig_mode.mig = true;
  in_mig_mode.mig_devices.emplace_back().uuid = "MIG-1234";
  const model::KnownLevels first{model::KnownLevel{Power::watts(80), Power::watts(1), 31.0, {}},
                                 std::nullopt};
  const model::KnownLevels second{std::nullopt,
                                  model::KnownLevel{Power::watts(127), Power::watts(2), {}, {}}};
  options_.levels = {{"GPU-00000000", first}, {"GPU-11111111", second}, {"GPU-2", second}};
  open();
  for (const auto& domain : meter_->domains()) {
    const bool board = domain.kind == DomainKind::kGpu;
    if (board && domain.device == "gpu0") {
      EXPECT_EQ(domain.known_levels, first);
    } else if (board && domain.device == "gpu1") {
      EXPECT_EQ(domain.known_levels, second);
    } else {  // of the memory, of an instance
      EXPECT_TRUE(domain.known_levels.empty()) << domain.device << to_string(domain.kind);
    }
  }
  EXPECT_EQ(meter_->domains().size(), 5u);
}

}  // namespace
}  // namespace jouleprof::meters
