#include "nvml_sim/core/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::nvml_sim {
namespace {

using testing::HasSubstr;

std::string with_device(const std::string& keys) {
  return R"({"devices": [{"generation": "hopper")" + (keys.empty() ? "" : ", " + keys) + "}]}";
}

std::string error_of(const std::string& text) {
  const auto scenario = parse_scenario(text, "s.json");
  if (scenario) return "no error";
  EXPECT_EQ(scenario.error().code, Errc::kInvalidArgument);
  return scenario.error().message;
}

TEST(Scenario, ErrorsNameTheKeysPath) {
  const auto power = [](const std::string& keys) {
    return error_of(with_device(R"("power": [{"shape": "constant", "watts": 1}, {)" + keys + "}]"));
  };
  EXPECT_THAT(error_of("{"), HasSubstr("s.json is not JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("devices: is missing"));
  EXPECT_THAT(error_of(R"({"device": []})"), HasSubstr("s.json: devices: is missing"));
  EXPECT_THAT(error_of(R"({"devices": [], "colour": 1})"), HasSubstr("colour: is not a key here"));
  EXPECT_THAT(error_of(R"({"devices": [{}]})"), HasSubstr("devices[0].generation: is missing"));
  EXPECT_THAT(error_of(R"({"devices": [{"generation": "fermi"}]})"), HasSubstr("none of: kepler"));
  EXPECT_THAT(power(R"("shape": "square")"),
              HasSubstr("s.json: devices[0].power[1].low_watts: is missing"));
  EXPECT_THAT(power(R"("shape": "constant", "watts": 2, "wats": 3)"),
              HasSubstr("devices[0].power[1].wats: is not a key here; those are:"));
  EXPECT_THAT(power(R"("shape": "constant", "watts": -2)"),
              HasSubstr("devices[0].power[1].watts: -2 is out of range"));
  EXPECT_THAT(power(R"("shape": "constant", "watts": "2")"), HasSubstr("must be a number"));
  EXPECT_THAT(power(R"("shape": "sine", "mean_watts": 1, "amplitude_watts": 2,
                       "period_seconds": 1)"),
              HasSubstr("amplitude_watts: is more than mean_watts"));
  EXPECT_THAT(power(R"("shape": "follow", "tree": "everybody")"), HasSubstr("power[1].tree"));
  EXPECT_THAT(power(R"("shape": "follow", "tree": {"pid": 1, "environment": "A"})"),
              HasSubstr("give either pid or environment"));
  EXPECT_THAT(error_of(with_device(R"("sensors": {"ring": {"jitter_ms": 10}})")),
              HasSubstr("devices[0].sensors.ring.jitter_ms: must be less than half"));
  EXPECT_THAT(error_of(with_device(R"("sensors": {"energy_counter": {"delay_max_ms": 100}})")),
              HasSubstr("energy_counter.delay_max_ms"));
  EXPECT_THAT(error_of(with_device(R"("power_limit": {"default_watts": 900})")),
              HasSubstr("power_limit.default_watts: must lie between"));
  EXPECT_THAT(error_of(with_device(R"("memory_used_mib": 1e8)")), HasSubstr("memory_used_mib"));
  EXPECT_THAT(error_of(with_device(R"("uuid": "X")")), HasSubstr("uuid"));
  EXPECT_THAT(error_of(with_device(R"("processes": {"sm_utilisation_ratio": 1})")),
              HasSubstr("needs either pid or tree"));
  EXPECT_THAT(
      error_of(with_device(R"("processes": {"pid": 1, "from_seconds": 3, "to_seconds": 3})")),
      HasSubstr("processes.to_seconds: must be more than from_seconds"));
  EXPECT_THAT(error_of(with_device(R"("idle_watts": 80, "held_watts": 79)")),
              HasSubstr("held_watts: is less than idle_watts"));
  EXPECT_THAT(error_of(with_device(R"("held_watts": 700)")),
              HasSubstr("must be more than idle_watts and held_watts"));
  EXPECT_THAT(error_of(with_device(R"("after_context": {"watts": 90})")),
              HasSubstr("after_context.watts: needs held_watts"));
  EXPECT_THAT(error_of(with_device(R"("held_watts": 127, "after_context": {"watts": 9})")),
              HasSubstr("after_context.watts: is less than idle_watts"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "ada"}, "faults": {"kind": "fire"}})"),
              HasSubstr("faults.kind: 'fire' is none of: gpu_lost"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "ada"},
                           "faults": {"kind": "fail", "call": "nvmlInit", "code": "OOPS"}})"),
              HasSubstr("faults.code: 'OOPS' is not an NVML error"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "ada"},
                           "faults": {"kind": "gpu_lost", "device": 1}})"),
              HasSubstr("faults.device: 1 is out of range, 0 to 0"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "ada"}, "call_costs_us": {"read": 1}})"),
              HasSubstr("call_costs_us.read"));
  EXPECT_THAT(error_of(R"({"devices": [{"generation": "ada", "uuid": "GPU-1234"},
                                       {"generation": "ada", "uuid": "GPU-1234"}]})"),
              HasSubstr("have the same uuid GPU-1234"));
}

TEST(Scenario, KeysChangeAPresetAndNullRemovesASensor) {
  const auto scenario = parse_scenario(
      with_device(R"("sensors": {"ring": {"lag_ms": 5}, "instant": null, "average": null})"),
      "s.json");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto& sensors = scenario->devices.front().sensors;
  EXPECT_DOUBLE_EQ(sensors.ring->lag, 0.005);
  EXPECT_DOUBLE_EQ(sensors.ring->window, 0.003);
  EXPECT_FALSE(sensors.instant);
  EXPECT_FALSE(sensors.average);
  EXPECT_TRUE(sensors.counter);
}

TEST(Scenario, ACustomDeviceHasOnlyTheSensorsListed) {
  const auto scenario = parse_scenario(
      R"({"devices": {"generation": "custom", "sensors": {"instant": {"refresh_ms": 7}}}})", "s");
  ASSERT_TRUE(scenario);
  const auto& sensors = scenario->devices.front().sensors;
  EXPECT_DOUBLE_EQ(sensors.instant->refresh, 0.007);
  EXPECT_FALSE(sensors.ring || sensors.counter || sensors.average);
}

TEST(Scenario, GenerationsDifferInTheirSensors) {
  const auto sensors = [](const std::string& generation) {
    const auto scenario =
        parse_scenario(R"({"devices": {"generation": ")" + generation + R"("}})", "s");
    EXPECT_TRUE(scenario);
    return scenario->devices.front().sensors;
  };
  EXPECT_FALSE(sensors("kepler").ring || sensors("kepler").counter);
  EXPECT_TRUE(sensors("pascal").ring && !sensors("pascal").counter);
  EXPECT_TRUE(sensors("ada").counter && !sensors("ada").ring);
  EXPECT_TRUE(sensors("grace_hopper").covers_module);
}

TEST(Scenario, ReadsATraceFromItsFolder) {
  const TempTree tree({{"s.json", with_device(R"("power": {"shape": "trace", "file": "t.csv"})")},
                       {"t.csv", "t_seconds,power_watts\r\n0,100\r\n1,100\r\n1,400\r\n"},
                       {"bad.json", with_device(R"("power": {"shape": "trace", "file": "b.csv"})")},
                       {"b.csv", "0,100\n1,-3\n"}});
  const auto scenario = load_scenario(tree / "s.json");
  ASSERT_TRUE(scenario) << scenario.error().message;
  Samplers samplers(0);
  const Curve trace = scenario->devices.front().power.front().make_curve(samplers);
  EXPECT_EQ(trace.watts(0), 100);
  EXPECT_EQ(trace.watts(0.999), 100);
  EXPECT_EQ(trace.watts(1), 400);
  EXPECT_EQ(trace.next_break(0), 1);
  EXPECT_EQ(trace.joules(0, 3), 100 + 2 * 400);
  EXPECT_THAT(load_scenario(tree / "bad.json").error().message,
              testing::AllOf(HasSubstr("devices[0].power.file"), HasSubstr("b.csv:2: '1,-3'")));
  EXPECT_EQ(load_scenario(tree / "none.json").error().code, Errc::kNotFound);
}

TEST(Scenario, ReadsTheExamples) {
  const std::filesystem::path folder =
      std::filesystem::path(JOULEPROF_SOURCE_DIR) / "tests/nvml_sim/scenarios";
  const auto names = list_folder(folder);
  ASSERT_TRUE(names);
  EXPECT_GE(names->size(), 11U);
  for (const auto& name : *names) {
    const auto scenario = load_scenario(folder / name);
    EXPECT_TRUE(scenario) << scenario.error().message;
  }
}

TEST(Scenario, MigDevicesHaveDistinctIdentities) {
  const auto scenario = parse_scenario(
      with_device(R"("mig": [{"profile": "1g.10gb"}, {"profile": "1g.10gb"}])"), "s");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto& mig = scenario->devices.front().mig;
  EXPECT_EQ(mig[0].uuid, "MIG-51a10000-0000-4000-8000-0000000000a0");
  EXPECT_NE(mig[0].gpu_instance_id, mig[1].gpu_instance_id);
}

}  // namespace
}  // namespace jouleprof::nvml_sim
