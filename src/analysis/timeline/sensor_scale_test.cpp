// Boards whose sensors read low, high, or with an offset: where the truth lies.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/timeline/simulated_timeline_test.h"
#include "model/device/sensor_table.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

// What a sensor shows of each watt: truth = gain x shown + offset.
struct Board {
  const char* name;
  double gain;
  double offset;
};

Truth shown_of(const Board& board, double (*watts)(double), double length) {
  return course([&](double t) { return (watts(t) - board.offset) / board.gain; }, length, 0.01);
}

double steps(double t) { return t < 4 ? 90 : t < 10 ? 260 : 90; }
double squares(double t) { return std::fmod(t, 0.8) < 0.4 ? 80 : 320; }

EnergyTimeline of_samples(const Board& board, const Truth& shown) {
  GpuSensors gpu;
  gpu.jitter = false;
  model::Sensor ring = gpu.ring();
  ring.traits.scale = model::scale_of_gpu(board.name);
  EnergyTimeline timeline({std::nullopt, ring});
  for (const auto& r : gpu.samples(shown, 0, shown.end())) timeline.append(r);
  return timeline;
}

TEST(SensorScale, HoldsTheTruthOfBoardsOfKnownFamilies) {
  const Board boards[] = {{"NVIDIA A100-SXM4-40GB", 1.046, 2.2},
                          {"NVIDIA A100 80GB PCIe", 1.03, 1},
                          {"NVIDIA GeForce RTX 3090", 1.0515, 0.4},
                          {"NVIDIA RTX A5000", 1.0625, 2.0},
                          {"NVIDIA GeForce RTX 4090", 0.955, 20.3},
                          {"Tesla K40m", 0.971, 0},
                          {"NVIDIA H100 80GB HBM3", 0.97, 0},
                          // Unknown ones.
                          {"", 1.06, 3},
                          {"", 0.98, 0},
                          {"a board", 1.03, 5}};
  for (const Board& board : boards) {
    for (const auto watts : {steps, squares}) {
      const double length = 14;
      auto timeline = of_samples(board, shown_of(board, watts, length));
      const Truth truth = course(watts, length, 0.01);
      const auto m = timeline.energy(at(1), at(13));
      ASSERT_TRUE(m) << board.name;
      const Energy real = Energy::joules(truth.joules(1, 13));
      EXPECT_LE(m->low(), real) << board.name;
      EXPECT_GE(m->high(), real) << board.name;
      const double half = m->error.joules() / real.joules();
      EXPECT_LE(half, board.name[0] == 'N' || board.name[0] == 'T' ? 0.065 : 0.09) << board.name;
    }
  }
}

// Sums, shares and means keep where the interval's middle lies.
TEST(SensorScale, OfAWholeIsThatOfItsParts) {
  const Board board{"NVIDIA RTX A5000", 1.0625, 2.0};
  auto timeline = of_samples(board, shown_of(board, steps, 14));
  const auto whole = timeline.energy(at(1), at(13));
  model::WindowSum sum;
  for (int i = 1; i < 13; ++i) sum.add(*timeline.energy(at(i), at(i + 1)));
  const auto parts = sum.sum();
  ASSERT_TRUE(whole && parts);
  EXPECT_EQ(parts->energy, whole->energy);
  EXPECT_NEAR(parts->shift, whole->shift, 1e-4);
  EXPECT_EQ(parts->offset, whole->offset);
  EXPECT_GT(whole->shift, 0.03);
  EXPECT_GT(whole->above(), whole->below());
  const auto mean = model::mean_of(*parts, 12);
  EXPECT_EQ(mean.shift, parts->shift);
}

TEST(SensorScale, CorrectsACalibratedBoard) {
  const Truth truth = course(steps, 14, 0.01);
  GpuSensors gpu;
  model::Sensor ring = gpu.ring();
  model::Sensor counter = gpu.counter();
  for (auto* s : {&ring, &counter}) {
    s->traits.correction = 1.25;
    s->traits.scale = model::ScaleError::symmetric(0.01);
  }
  EnergyTimeline timeline({counter, ring});
  for (const auto& r : gpu.samples(truth, 0, 14)) timeline.append(r);
  for (const auto& r : gpu.reads(truth, 0.1, 14)) timeline.append(r);
  const auto m = timeline.energy(at(1), at(13));
  ASSERT_TRUE(m);
  EXPECT_NEAR(m->energy.joules(), 1.25 * truth.joules(1, 13), 0.01 * m->energy.joules());
  EXPECT_EQ(timeline.unit().state, UnitVerdict::State::kAgrees);
  EXPECT_NEAR(timeline.curve(at(6), at(7), std::chrono::seconds{1})[0].power.watts(), 325, 4);
}

TEST(SensorTable, HasARowOfEachInterfaceAndTheWidestLast) {
  EXPECT_NE(model::row_of("nvmlDeviceGetSamples (module)"), model::row_of("nvmlDeviceGetSamples"));
  EXPECT_EQ(model::row_of("of no interface"), nullptr);
  for (const char* name :
       {"gpu_metrics:v1.4/energy_accumulator", "gpu_metrics:v3.0/average_socket_power",
        "hwmon:amdgpu/power1_average", "hwmon:xe/energy1_input", "hwmon:xe/energy2_input",
        "hwmon:i915/energy1_input", "hwmon:nouveau/power1_input",
        "hwmon:power_meter/power1_average", "hwmon:ina3221/in1_input*curr1_input",
        "hwmon:ina238/power1_input", "hwmon:amd_hsmp_hwmon/power1_input",
        "hwmon:amd_energy/energy1_input", "powercap:arm-scmi:0/power_uw", "amdsmi_get_energy_count",
        "zesPowerGetEnergyCounter", "wall:redfish:https://bmc", "guest-file",
        "tegrastats (INA3221)"}) {
    const auto* row = model::row_of(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_NE(row, model::row_of("hwmon:of_no_driver/power1_input")) << name;
    EXPECT_NE(row, model::row_of("powercap:intel-rapl:0/energy_uj")) << name;
  }
  EXPECT_TRUE(model::board_scales().back().boards.empty());
  const auto unknown = model::scale_of_gpu("NVIDIA A10");  // no A100
  EXPECT_EQ(unknown, model::scale_of_gpu(""));
  // Their sensor may be the chip's, and the board draws more.
  EXPECT_GT(model::scale_of_gpu("AMD GPU at 0000:0c:00.0").gain_high, 0.19);
  EXPECT_EQ(model::scale_of_gpu("AMD Instinct MI300X").gain_high, unknown.gain_high);
  for (const auto& row : model::board_scales()) EXPECT_FALSE(row.source.empty());
}

}  // namespace
}  // namespace jouleprof::analysis
