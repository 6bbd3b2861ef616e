#include "nvml_sim/core/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(error_of(R"({"devices": [{"generation": "fermi"}]})"), HasSubstr("none of: pascal"));
  EXPECT_THAT(power(R"("shape": "square")"),
              HasSubstr("s.json: devices[0].power[1].low_watts: is missing"));
  EXPECT_THAT(power(R"("shape": "constant", "watts": 2, "wats": 3)"),
              HasSubstr("devices[0].power[1].wats: is not a key here; those are:"));
  EXPECT_THAT(power(R"("shape": "constant", "watts": -2)"),
              HasSubstr("devices[0].power[1].watts: -2 is out of range"));
  EXPECT_THAT(power(R"("shape": "constant", "watts": "2")"), HasSubstr("must be a number"));
  EXPECT_THAT(error_of(with_device(R"("power_limit": {"default_watts": 900})")),
              HasSubstr("power_limit.default_watts: must lie between"));
  EXPECT_THAT(error_of(with_device(R"("uuid": "X")")), HasSubstr("uuid"));
  EXPECT_THAT(error_of(with_device(R"("processes": {"sm_utilisation_ratio": 1})")),
              HasSubstr("needs either pid or tree"));
  EXPECT_THAT(
      error_of(with_device(R"("processes": {"pid": 1, "from_seconds": 3, "to_seconds": 3})")),
      HasSubstr("processes.to_seconds: must be more than from_seconds"));
  EXPECT_THAT(error_of(with_device(R"("idle_watts": 80, "held_watts": 79)")),
              HasSubstr("held_watts: is less than idle_watts"));
  EXPECT_THAT(error_of(with_device(R"("after_context": {"watts": 90})")),
              HasSubstr("after_context.watts: needs held_watts"));
  EXPECT_THAT(error_of(with_device(R"("held_watts": 127, "after_context": {"watts": 9})")),
              HasSubstr("after_context.watts: is less than idle_watts"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "hopper"}, "faults": {"kind": "fire"}})"),
              HasSubstr("faults.kind: 'fire' is none of: gpu_lost"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "hopper"},
                           "faults": {"kind": "gpu_lost", "device": 1}})"),
              HasSubstr("faults.device: 1 is out of range, 0 to 0"));
  EXPECT_THAT(error_of(R"({"devices": {"generation": "hopper"}, "call_costs_us": {"read": 1}})"),
              HasSubstr("call_costs_us.read"));
  EXPECT_THAT(error_of(R"({"devices": [{"generation": "hopper", "uuid": "GPU-1234"},
                                       {"generation": "hopper", "uuid": "GPU-1234"}]})"),
              HasSubstr("GPU-1234 is another device's"));
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
