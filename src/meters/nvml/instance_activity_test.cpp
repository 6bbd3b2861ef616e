#include <gtest/gtest.h>

#include <chrono>

#include "meters/nvml/device_sensors.h"
#include "meters/nvml/nvml_meter_fixture.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;
using abi::Return;

// The driver's counters of each instance: seconds of work of its multiprocessors.
struct Counters {
  std::map<unsigned, double> worked;
  Return sample_code = Return::kSuccess;
  Return sm_code = Return::kSuccess;
  int buffers = 0;
};
Counters* counters = nullptr;

struct Buffer {
  double at = 0;
  double worked = 0;
};
Buffer& of(abi::GpmSample sample) { return *reinterpret_cast<Buffer*>(sample); }

class InstanceActivityTest : public NvmlMeterTest {
 protected:
  InstanceActivityTest() {
    counters = &counters_;
    api_.gpm_alloc = [](abi::GpmSample* out) {
      ++counters->buffers;
      return *out = reinterpret_cast<abi::GpmSample>(new Buffer), Return::kSuccess;
    };
    api_.gpm_free = [](abi::GpmSample sample) {
      --counters->buffers;
      return delete reinterpret_cast<Buffer*>(sample), Return::kSuccess;
    };
    api_.gpm_instance_sample = [](abi::Device, unsigned instance, abi::GpmSample sample) {
      const auto now = FakeNvml::current->clock.host.time_since_epoch();
      of(sample) = {jouleprof::seconds(now), counters->worked[instance]};
      return counters->sample_code;
    };
    api_.gpm_metrics = [](abi::GpmMetricsGet* m) {
      const double mean =
          (of(m->sample2).worked - of(m->sample1).worked) / (of(m->sample2).at - of(m->sample1).at);
      m->metrics[0].nvml_return = counters->sm_code;
      m->metrics[0].value = 100 * mean;
      m->metrics[1].nvml_return = Return::kSuccess;
      m->metrics[1].value = 99;
      return Return::kSuccess;
    };
    api_.gpu_instance_id = [](abi::Device d, unsigned* id) {
      return *id = static_cast<unsigned>(fake::of(d).power_usage_mw), Return::kSuccess;
    };
    auto& gpu = add_hopper();
    gpu.mig = true;
    for (const unsigned instance : {3u, 4u, 4u}) {  // two MIG devices in one GPU instance
      auto& mig = gpu.mig_devices.emplace_back();
      mig.uuid = "MIG-" + std::to_string(gpu.mig_devices.size());
      mig.power_usage_mw = instance;
    }
  }
  ~InstanceActivityTest() override {
    meter_.reset();
    EXPECT_EQ(counters_.buffers, 0);
  }
  // After a second in which the instances worked so long.
  std::map<std::string, double> read(double first, double second) {
    fake_.pass(1s);
    counters_.worked[3] += first;
    counters_.worked[4] += second;
    model::Readings out;
    (void)meter_->read_processes(out);
    std::map<std::string, double> means;
    for (const auto& g : out.gauges) {
      const auto& sensor = meter_->sensors()[static_cast<std::size_t>(g.sensor)];
      if (sensor.name != model::gauge::kSmActivity) continue;
      EXPECT_EQ(g.at, fake_.clock.host);
      means[meter_->domains()[static_cast<std::size_t>(sensor.domain)].device] = g.value;
    }
    return means;
  }

  Counters counters_;
};

using Means = std::map<std::string, double>;

TEST_F(InstanceActivityTest, EachReadHasTheMeanSinceTheOneBefore) {
  open();
  EXPECT_EQ(read(0.5, 0.5), Means{});  // since the meter was opened
  auto means = read(0.25, 1);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_NEAR(means["gpu0:mig0"], 0.25, 1e-9);
  EXPECT_NEAR(means["gpu0:mig1"], 1, 1e-9);
  EXPECT_NEAR(read(0, 0.5)["gpu0:mig1"], 0.5, 1e-9);
}

TEST_F(InstanceActivityTest, AFailedReadIsAbsentAndNoPartOfTheNext) {
  open();
  read(0, 0);
  counters_.sample_code = Return::kUnknown;
  EXPECT_EQ(read(1, 1), Means{});
  counters_.sample_code = Return::kSuccess;
  EXPECT_EQ(read(1, 1), Means{});
  EXPECT_NEAR(read(0.5, 0)["gpu0:mig0"], 0.5, 1e-9);
}

TEST_F(InstanceActivityTest, WhereMultiprocessorsAreNotCountedTheInstanceIs) {
  open();
  read(0, 0);
  counters_.sm_code = Return::kNotSupported;
  EXPECT_NEAR(read(0.5, 0)["gpu0:mig0"], 0.99, 1e-9);
}

TEST_F(InstanceActivityTest, AnImpossibleActivityIsUnknown) {
  open();
  read(0, 0);
  EXPECT_EQ(read(1.5, 0).count("gpu0:mig0"), 0u);
}

TEST_F(InstanceActivityTest, WithoutTheCountersNoSensorIsListed) {
  const auto lists = [&] { return open(), gauge(model::gauge::kSmActivity) != nullptr; };
  EXPECT_TRUE(lists());
  counters_.sample_code = Return::kNotSupported;  // before Hopper
  EXPECT_FALSE(lists());
  EXPECT_TRUE(misses("gpu0 activity of mig0"));
  counters_.sample_code = Return::kSuccess;
  api_.gpm_metrics = nullptr;  // an older driver
  EXPECT_FALSE(lists());
  EXPECT_EQ(read(1, 1), Means{});
}

}  // namespace
}  // namespace jouleprof::meters::nvml
