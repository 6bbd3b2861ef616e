#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "report/example_windows_test.h"
#include "report/format/format.h"
#include "report/json/live_json.h"
#include "report/json_keys_test.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json parsed(const model::Profile& profile) {
  json j = json::parse(to_json(profile), nullptr, false);
  EXPECT_FALSE(j.is_discarded());
  return j;
}

// Exact: a double holds every whole number of microjoules up to nine gigajoules.
std::int64_t microjoules(const json& value) { return std::llround(value.get<double>() * 1e6); }

TEST(ProfileJson, EveryKeyIsDocumentedAndEveryDocumentedKeyIsThere) {
  std::set<std::string> keys;
  add_keys(parsed(gpu_profile()), "", keys);
  add_keys(parsed(lost_profile()), "", keys);
  add_keys(parsed(sweep_profile(1)), "", keys);
  EXPECT_EQ(keys, documented_keys("jouleprof.profile/3"));
}

TEST(ProfileJson, EveryKeyOfAUnitIsDocumented) {
  const model::Profile profile = gpu_profile();
  const PerUnit per = per_unit(profile, {100, "image"});
  const json j = json::parse(to_json(profile, nullptr, nullptr, &per))["per_unit"];
  std::set<std::string> keys;
  for (const auto& [key, value] : j.items()) keys.insert("per_unit." + key);
  EXPECT_EQ(keys, documented_keys("the object `per_unit`"));
  EXPECT_EQ(j["count"], 100);
}

TEST(SnapshotJson, EveryKeyIsDocumentedAndEveryDocumentedKeyIsThere) {
  model::Snapshot snapshot;
  snapshot.domains.resize(1);
  std::set<std::string> keys;
  add_keys(json::parse(snapshot_json(snapshot)), "", keys);
  EXPECT_EQ(keys, documented_keys("jouleprof.snapshot/2"));
}

TEST(ProfileJson, SaysWhatWasRun) {
  const json j = parsed(gpu_profile());
  EXPECT_EQ(j["schema"], "jouleprof.profile/3");
  EXPECT_EQ(j["command"], json({"python", "train.py", "--epochs", "3", "--name", "run 7"}));
  EXPECT_EQ(j["exit_status"], 0);
  EXPECT_EQ(j["start_time"], "2026-11-20T14:03:11.250000000Z");
  EXPECT_EQ(j["duration_seconds"], 83.42);
  EXPECT_EQ(j["offset_seconds"], 0.0);
  EXPECT_EQ(j["complete"], true);
  EXPECT_EQ(j["being_written"], false);
  const json& gpu = j["domains"][0];
  EXPECT_EQ(gpu["domain"], "gpu");
  EXPECT_EQ(gpu["device"], "gpu0");
  EXPECT_EQ(gpu["provenance"], "measured");
  EXPECT_EQ(gpu["energy_joules"], 24871.204518);
  EXPECT_EQ(gpu["interval_joules"], json({23627.104518, 26115.304518}));
  EXPECT_EQ(gpu["peak_window_seconds"], 0.025);
  EXPECT_EQ(j["domains"][2]["parent"], j["domains"][1]["id"]);
}

TEST(ProfileJson, PartsSumExactlyInTheDocument) {
  for (const auto& profile : {gpu_profile(), vm_profile(), lost_profile()}) {
    const json j = parsed(profile);
    int checked = 0;
    for (const json& d : j["domains"]) {
      if (d["balance"]["parts_joules"].is_null()) continue;
      std::int64_t sum = microjoules(d["rest_joules"]);
      for (const json& p : j["processes"]) {
        for (const json& share : p["energy"]) {
          if (share["id"] == d["id"]) sum += microjoules(share["energy_joules"]);
        }
      }
      sum += microjoules(d["balance"]["others_joules"]);
      const auto& unowned = d["balance"]["held_unowned_joules"];
      EXPECT_EQ(unowned.is_null(), d["held_joules"].is_null());
      if (!unowned.is_null()) sum += microjoules(unowned);
      sum += microjoules(d["balance"]["unattributed_joules"]);
      EXPECT_EQ(sum, microjoules(d["energy_joules"])) << d;
      EXPECT_EQ(microjoules(d["rest_joules"]) + microjoules(d["dynamic_joules"]),
                microjoules(d["energy_joules"]));
      const auto held = d["held_joules"].is_null() ? 0 : microjoules(d["held_joules"]);
      EXPECT_EQ(held + microjoules(d["active_joules"]), microjoules(d["dynamic_joules"]));
      ++checked;
    }
    EXPECT_GT(checked, 0);
  }
}

TEST(ProfileJson, TheTotalIsTheSumOfWhatDoesNotOverlap) {
  const json j = parsed(gpu_profile());
  EXPECT_EQ(j["total"]["of"], json({0, 1, 3}));  // not the cores
  EXPECT_EQ(microjoules(j["total"]["energy_joules"]),
            24'871'204'518 + 11'203'500'000 + 1'412'250'000);
  EXPECT_EQ(j["balance"]["energy_joules"], j["total"]["energy_joules"]);
  EXPECT_EQ(j["balance"]["parts_joules"], j["total"]["energy_joules"]);
  EXPECT_TRUE(j["balance"]["integral_joules"].is_null());  // only the GPU has samples

  const json lost = parsed(lost_profile());
  EXPECT_EQ(lost["total"]["of"], json({0, 8}));
  model::Profile partial = lost_profile();
  partial.domains[1].least.emplace().energy = Energy::joules(5);
  const json total = parsed(partial)["total"];
  EXPECT_EQ(microjoules(total["energy_joules"]),
            microjoules(lost["total"]["energy_joules"]) + 5'000'000);
  EXPECT_EQ(total["of"], json({0, 1, 8}));
  EXPECT_TRUE(total["rest_joules"].is_null());  // not known for a part of the sum
  EXPECT_TRUE(total["is_partial"]);
  EXPECT_TRUE(total["interval_joules"][0].is_number());
  EXPECT_TRUE(total["interval_joules"][1].is_null());
  EXPECT_EQ(lost["total"]["without"][0]["reason"], "unavailable");
  EXPECT_EQ(lost["total"]["without"][1]["reason"], "not visible to the command");
  EXPECT_TRUE(lost["balance"]["parts_joules"].is_null());
}

TEST(ProfileJson, APackageWithinThePlatformCountsAndThePlatformDoesNot) {
  model::Profile profile = gpu_profile();
  auto psys = domain(9, model::DomainKind::kPlatform, "psys");
  psys.energy = profile.domains[1].energy;
  profile.domains[1].domain.parent = psys.domain.id;
  profile.domains.push_back(psys);
  const json j = parsed(profile);
  EXPECT_EQ(j["total"]["of"], json({0, 1, 3}));
  EXPECT_EQ(j["total"]["without"][0]["reason"], "contains other domains");
}

TEST(ProfileJson, WhatIsUnavailableIsNull) {
  const json gpu1 = parsed(lost_profile())["domains"][1];
  EXPECT_EQ(gpu1["provenance"], "unavailable");
  EXPECT_THAT(gpu1["reason"].get<std::string>(), HasSubstr("GPU is lost"));
  for (const auto* key : {"energy_joules", "interval_joules", "repeatability_joules", "rest_joules",
                          "held_joules", "active_joules", "dynamic_joules", "rest_power",
                          "mean_watts", "peak_watts", "sensor", "method", "uuid"}) {
    EXPECT_TRUE(gpu1[key].is_null()) << key;
  }
  const json empty = parsed(model::Profile{});
  for (const auto* key : {"tool_version", "exit_status", "start_time", "pid", "overhead"}) {
    EXPECT_TRUE(empty[key].is_null()) << key;
  }
  EXPECT_TRUE(empty["total"]["energy_joules"].is_null());
  EXPECT_EQ(empty["domains"], json::array());
  EXPECT_EQ(empty["complete"], false);
}

TEST(ProfileJson, AnInfinityIsNull) {
  auto profile = gpu_profile();
  profile.domains[0].mean_power = Power::watts(std::numeric_limits<double>::infinity());
  profile.domains[0].peak_power = Power::watts(std::nan(""));
  const json gpu = parsed(profile)["domains"][0];
  EXPECT_TRUE(gpu["mean_watts"].is_null());
  EXPECT_TRUE(gpu["peak_watts"].is_null());
}

TEST(ProfileJson, EveryDigitOfAnEnergyIsWritten) {
  auto profile = gpu_profile();
  profile.domains[0].energy->energy = Energy::microjoules(9'007'199'254'740'993);  // 2^53 + 1
  profile.domains[0].energy->error = Energy{};
  EXPECT_THAT(to_json(profile), HasSubstr("\"energy_joules\": 9007199254.740993,"));
}

TEST(ProfileJson, AnyBytesInNamesAreEscapedOrReplaced) {
  auto profile = gpu_profile();
  profile.run.command = {"a\"b\\c", "x\x01y\x1b[2J\n", std::string("z\0w", 3)};
  profile.processes[0].process.name = "caf\xE9";
  const std::string text = to_json(profile);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  const json j = json::parse(text);
  EXPECT_EQ(j["command"][0], "a\"b\\c");
  EXPECT_EQ(j["command"][1], "x\x01y\x1b[2J\n");
  EXPECT_EQ(j["command"][2], std::string("z\0w", 3));
  EXPECT_EQ(j["processes"][0]["name"], "caf\xEF\xBF\xBD");
}

}  // namespace
}  // namespace jouleprof::report
