#include "report/activity/activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "report/cells.h"
#include "report/example_activity_test.h"
#include "report/json_keys_test.h"
#include "tests/support/golden.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string text(const ActivityOptions& options, const model::ActivityProfile& profile) {
  return activity_to_text({profile}, options);
}
std::string text(ActivityBy by) {
  ActivityOptions options;
  options.by = by;
  return text(options, activity_profile());
}
json document(const ActivityOptions& options) {
  return json::parse(activity_to_json({activity_profile()}, options));
}
std::vector<std::string> names(const ActivityOptions& options) {
  std::vector<std::string> names;
  const json rows = document(options)["devices"][0]["rows"];
  for (const auto& row : rows) names.push_back(row["name"]);
  return names;
}

TEST(ActivityText, Kernels) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/kernels.txt", text(ActivityBy::kKernel)));
}

TEST(ActivityText, Layers) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/layers.txt", text(ActivityBy::kLayer)));
}

TEST(ActivityText, Phases) {
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/phases.txt", text(ActivityBy::kPhase)));
}

// The first line of the figures, where much is not resolvable.
TEST(ActivityText, WhereLittleIsResolvableSumsComeFirst) {
  auto profile = activity_profile();
  ActivityOptions options;
  options.by = ActivityBy::kKernel;
  EXPECT_THAT(text(options, profile), Not(HasSubstr("resolved ")));
  profile.by_kernel[0].resolvable = false;
  EXPECT_THAT(text(options, profile),
              ::testing::StartsWith("resolved   25 % of the kernels' energy by kernel; sums of "
                                    "kernels that ran\n           together: 2.901 kJ"));
  EXPECT_THAT(text(options, profile),
              HasSubstr("To resolve the rest, run it\n           again with --replay\n"));
  options.imported = true;
  EXPECT_THAT(text(options, profile), HasSubstr("jouleprof run --kernels --replay"));
  profile.replay = profile.measured;
  EXPECT_THAT(text(options, profile),
              HasSubstr("warnings say why re-runs did\n           not resolve the rest\n"));
  options.by = ActivityBy::kLayer;
  EXPECT_THAT(text(options, profile), Not(HasSubstr("resolved ")));
  for (auto& row : profile.by_layer) row.resolvable = false;
  EXPECT_THAT(text(options, profile),
              ::testing::StartsWith("resolved   0 % of the kernels' energy by layer; warnings"));
}

TEST(ActivityText, NothingIsWiderThanTheTerminal) {
  for (const auto by : {ActivityBy::kKernel, ActivityBy::kLayer, ActivityBy::kPhase}) {
    const std::string all = text(by);
    for (const auto line : split(all, '\n')) EXPECT_LE(display_width(line), 80U) << line;
  }
}

TEST(ActivityText, AnEmptyListSaysSo) {
  EXPECT_THAT(text(ActivityBy::kRange), HasSubstr("no range was traced"));
  EXPECT_EQ(activity_to_text({}, {}), "");
}

TEST(ActivityText, WhereXlaNamesNoLayersItSaysHowToGetThem) {
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  auto profile = activity_profile();
  EXPECT_THAT(text(options, profile), Not(HasSubstr("XLA")));
  profile.by_range.resize(2);
  profile.by_range[0].name = "XlaModule jit_train";
  profile.by_range[1].parent = 0;
  profile.stacks.resize(2);
  for (auto& stack : profile.stacks) {
    stack.busy = std::chrono::seconds{1};
    stack.range = 1;
  }
  profile.stacks[0].layer = 0;
  profile.stacks[0].busy *= 2;
  EXPECT_THAT(text(options, profile), Not(HasSubstr("XLA")));  // most is of layers
  profile.stacks[0].layer = model::kNone;
  EXPECT_THAT(text(options, profile), HasSubstr("--xla_gpu_enable_command_buffer="));
}

TEST(ActivityText, ADeviceWithoutARowIsLeftOutWhereAnotherHasSome) {
  auto cpu = activity_profile();
  cpu.domain = domain(1, model::DomainKind::kCpu, "package-0", "CPU").domain;
  cpu.by_kernel.clear();
  const std::string all = activity_to_text({activity_profile(), cpu}, {});
  EXPECT_EQ(all, text({}, activity_profile()));
  cpu.launches = 795;
  EXPECT_THAT(text({}, cpu), HasSubstr("launches traced: 795; none has an energy of its own"));
  cpu.launches = 0;
  EXPECT_THAT(text({}, cpu), HasSubstr("no kernel was traced"));
}

TEST(ActivityText, PartsThatDoNotSumAreShouted) {
  auto profile = activity_profile();
  EXPECT_THAT(text({}, profile), HasSubstr("exactly"));
  profile.gaps += Energy::joules(3);
  EXPECT_THAT(text({}, profile),
              AllOf(HasSubstr("differs by -3.000 J"), Not(HasSubstr("exactly"))));
}

TEST(ActivityText, WhatIsNoMeasurementIsNamed) {
  auto profile = activity_profile();
  profile.measured.provenance = model::Provenance::kSimulated;
  EXPECT_THAT(text({}, profile), testing::StartsWith("SIMULATED"));
  profile.measured.provenance = model::Provenance::kEstimated;
  profile.method = "cpu time";
  profile.launches = 0;
  profile.rows = 0;
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  EXPECT_THAT(text(options, profile), AllOf(HasSubstr("ESTIMATED; by layer: cpu time"),
                                            HasSubstr("+ active"), Not(HasSubstr("fit"))));
}

// A CPU whose layers have their part of all energy, by time.
TEST(ActivityText, IdleThatIsUnknownIsNotZero) {
  auto cpu = activity_profile();
  cpu.domain = domain(1, model::DomainKind::kCpu, "package-0", "CPU").domain;
  cpu.idle_power.reset();
  cpu.idle_error.reset();
  cpu.levels = {};
  cpu.kernels += cpu.idle + cpu.gaps;
  cpu.idle = cpu.gaps = Energy{};
  cpu.launches = 0;
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  const std::string words = text(options, cpu);
  EXPECT_THAT(words, AllOf(HasSubstr("that at rest is unknown, and included"),
                           HasSubstr("unknown, and within the others"), HasSubstr("exactly"),
                           Not(HasSubstr(" 0.000000")), Not(HasSubstr("above what")),
                           Not(HasSubstr("idle between launches"))));
  const auto j = json::parse(activity_to_json({cpu}, options));
  EXPECT_TRUE(j["devices"][0]["idle_joules"].is_null());
  cpu.idle_power = Power::watts(10);
  EXPECT_THAT(text(options, cpu), HasSubstr("above what the device draws at rest\n"));
}

TEST(ActivityText, NamesCannotDriveTheTerminalAndAsciiIsAscii) {
  auto profile = activity_profile();
  const std::string evil = "\x1b[2J bad\xFF\r\nmeasured 0 J";
  for (auto* list : {&profile.by_kernel, &profile.by_layer}) {
    (*list)[1].name = (*list)[1].detail = (*list)[1].reason = evil;
  }
  profile.warnings = {evil};
  profile.method = evil;
  TextOptions ascii;
  ascii.ascii = true;
  for (const auto by : {ActivityBy::kKernel, ActivityBy::kLayer}) {
    ActivityOptions options;
    options.by = by;
    for (const std::string& made : {text(options, profile), activity_to_csv({profile}, options)}) {
      for (const char c : {'\x1b', '\r', '\xFF'}) EXPECT_EQ(made.find(c), std::string::npos);
    }
    const std::string plain = activity_to_text({profile}, options, ascii);
    EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](char c) { return c > 0; })) << plain;
  }
}

TEST(ActivityText, TheFirstFewForTheEndOfARun) {
  const std::string brief = activity_to_brief_text({activity_profile()}, 2);
  EXPECT_THAT(brief, AllOf(HasSubstr("nvjet"), HasSubstr("flash"), Not(HasSubstr("memset")),
                           Not(HasSubstr("balance")), HasSubstr("4 more")));
  EXPECT_EQ(activity_to_brief_text({model::ActivityProfile{}}, 5), "");
}

TEST(ActivityView, SortsByWhatIsAsked) {
  ActivityOptions options;
  options.top = 1;
  EXPECT_THAT(names(options), ElementsAre(HasSubstr("nvjet")));
  options.sort = ActivitySort::kTime;
  EXPECT_THAT(names(options), ElementsAre(HasSubstr("nvjet")));
  options.sort = ActivitySort::kCount;
  EXPECT_THAT(names(options), ElementsAre(HasSubstr("CUDAFunctor_mul")));
  options.sort = ActivitySort::kPower;
  EXPECT_THAT(names(options), ElementsAre(HasSubstr("triton")));
}

TEST(ActivityView, ATreeKeepsWhatHoldsItsRows) {
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  EXPECT_THAT(names(options), ElementsAre("VisionTransformer", "blocks.0", "blocks.0.attn.qkv",
                                          "blocks.0.mlp", "head"));
  options.depth = 2;
  EXPECT_THAT(names(options), ElementsAre("VisionTransformer", "blocks.0", "head"));
  options.depth.reset();
  options.top = 3;
  EXPECT_THAT(names(options), ElementsAre("VisionTransformer", "blocks.0", "blocks.0.attn.qkv"));
  EXPECT_EQ(document(options)["devices"][0]["rows_left_out"], 2);
  options.top = 5;
  options.sort = ActivitySort::kTime;
  EXPECT_THAT(names(options), ElementsAre("VisionTransformer", "head", "blocks.0",
                                          "blocks.0.attn.qkv", "blocks.0.mlp"));
}

TEST(ActivityView, AParentThatIsNotThereIsNone) {
  auto profile = activity_profile();
  profile.by_layer[0].parent = 4;
  profile.by_layer[3].parent = 3;
  profile.by_layer[4].parent = 99;
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  EXPECT_EQ(view_of(profile, options).lines.size(), 5U);
}

TEST(ActivityCsv, EveryColumnHasAPlaceAndAbsentIsEmpty) {
  auto profile = activity_profile();
  profile.by_kernel[4].energy.reset();
  profile.by_kernel[4].reason = "why, it \"broke\"";
  ActivityOptions options;
  const std::string csv = activity_to_csv({profile}, options);
  const auto lines = split(csv, '\n');
  ASSERT_EQ(lines.size(), 8U);
  const auto heading = *split_csv(lines[0]);
  for (std::size_t i = 1; i < 7; ++i) EXPECT_EQ(split_csv(lines[i])->size(), heading.size());
  const auto value = [&](std::size_t line, std::string_view column) {
    const auto at = std::find(heading.begin(), heading.end(), column);
    EXPECT_NE(at, heading.end()) << column;
    return split_csv(lines[line])->at(static_cast<std::size_t>(at - heading.begin()));
  };
  EXPECT_EQ(value(1, "energy_joules"), "12100.250000");
  EXPECT_EQ(value(1, "interval_low_joules"), "11918.750000");
  EXPECT_EQ(value(1, "energy_per_launch_joules"), "0.201670833");
  EXPECT_EQ(value(1, "mean_watts"), "396.729508");
  EXPECT_EQ(value(1, "repeatability_joules"), "90.750000");
  EXPECT_EQ(value(1, "remembered"), "false");
  EXPECT_EQ(value(1, "group"), "");
  EXPECT_EQ(value(2, "group_joules"), "2901.250000");
  EXPECT_EQ(value(4, "resolvable"), "false");
  EXPECT_EQ(value(6, "energy_joules"), "");
  EXPECT_EQ(value(6, "repeatability_joules"), "");
  EXPECT_EQ(value(6, "resolvable"), "");
  EXPECT_EQ(value(6, "provenance"), "unavailable");
  EXPECT_EQ(value(6, "reason"), "why, it \"broke\"");
  EXPECT_EQ(value(6, "launches"), "1126567");
  EXPECT_THAT(value(6, "name"), HasSubstr("array<char*, 3ul>"));
}

TEST(ActivityJson, HoldsTheBalanceExactly) {
  const std::string text = activity_to_json({activity_profile()}, {});
  EXPECT_THAT(text, AllOf(HasSubstr("\"measured_joules\": 24871.204518"),
                          HasSubstr("\"idle_joules\": 7260.500000"),
                          HasSubstr("\"kernels_joules\": 16243.750000"),
                          HasSubstr("\"idle_between_launches_joules\": -12.250000"),
                          HasSubstr("\"unattributed_joules\": 1379.204518")));
  const auto device = json::parse(text)["devices"][0];
  EXPECT_EQ(device["rows"].size(), 6U);
  EXPECT_EQ(device["rows"][0]["symbol"], "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT");
  EXPECT_EQ(device["rows"][0]["parent"], nullptr);
  EXPECT_EQ(device["rows"][1]["group"], 0);
  EXPECT_EQ(device["dropped"], 42);
  EXPECT_EQ(device["memsets_left_out"], 1234);
  EXPECT_FALSE(device["rows"][0].contains("macs"));
}

TEST(ActivityJson, EveryKeyIsDocumentedAndEveryDocumentedKeyIsThere) {
  std::set<std::string> keys;
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  add_keys(document(options), "", keys);
  EXPECT_EQ(keys, documented_keys("jouleprof.activity/3"));
}

TEST(ActivityJson, LayersHaveTheirModelsFigures) {
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  const auto rows = document(options)["devices"][0]["rows"];
  EXPECT_EQ(rows[2]["macs"], 22.3e9);
  EXPECT_EQ(rows[2]["parameters"], 1'771'776);
  EXPECT_EQ(rows[2]["parent"], 1);
  EXPECT_EQ(rows[1]["macs"], nullptr);
}

TEST(ActivityOptions, WordsReadBack) {
  for (const char* word : {"kernel", "layer", "range", "phase"}) {
    EXPECT_EQ(to_string(parse_activity_by(word).value()), word);
  }
  EXPECT_FALSE(parse_activity_by("module"));
  EXPECT_EQ(parse_activity_sort("count"), ActivitySort::kCount);
  EXPECT_FALSE(parse_activity_sort(""));
}

TEST(FoldLayers, NumbersBecomeStars) {
  EXPECT_EQ(folded_name("model.layers.11.mlp"), "model.layers.*.mlp");
  EXPECT_EQ(folded_name("0"), "*");
  EXPECT_EQ(folded_name("conv2d.layer1"), "conv2d.layer1");
  EXPECT_EQ(folded_name("(no layer)"), "(no layer)");
}

// Two blocks with an MLP each: 40 and 60 J, 10 and 20 J of them in the MLPs.
model::ActivityProfile two_blocks() {
  model::ActivityProfile p = activity_profile();
  p.by_layer = {
      layer("net", "Net", model::kNone, 1, 5, 105), layer("net.layers.0", "Block", 0, 1, 30, 40),
      layer("net.layers.0.mlp", "Mlp", 1, 1, 10, 10), layer("net.layers.1", "Block", 0, 2, 40, 60),
      layer("net.layers.1.mlp", "Mlp", 3, 2, 20, 20)};
  return p;
}

TEST(FoldLayers, EqualLayersAreSums) {
  const auto rows = fold_layers(two_blocks()).by_layer;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "net");
  EXPECT_EQ(rows[0].detail, "Net");
  EXPECT_EQ(rows[1].name, "net.layers.*");
  EXPECT_EQ(rows[1].inclusive->energy, Energy::joules(100));
  EXPECT_EQ(rows[1].energy->energy, Energy::joules(70));
  EXPECT_EQ(rows[1].inclusive->error, Energy::joules(4));  // linear
  EXPECT_EQ(rows[1].count, 200u);
  EXPECT_EQ(rows[1].busy, duration_of(3));
  EXPECT_EQ(rows[1].parent, 0u);
  EXPECT_THAT(rows[1].detail, StartsWith("2 layers, mean 50.00 J, deviation 28 %; Block"));
  EXPECT_FALSE(rows[0].folded);
  ASSERT_TRUE(rows[1].folded && rows[1].folded->joules);
  EXPECT_EQ(rows[1].folded->count, 2u);
  EXPECT_DOUBLE_EQ(rows[1].folded->joules->mean, 50);
  EXPECT_NEAR(rows[1].folded->joules->deviation, 14.142136, 1e-6);
  EXPECT_DOUBLE_EQ(rows[1].folded->joules->least, 40);
  EXPECT_DOUBLE_EQ(rows[1].folded->joules->greatest, 60);
  EXPECT_EQ(rows[2].name, "net.layers.*.mlp");
  EXPECT_EQ(rows[2].parent, 1u);
  EXPECT_EQ(rows[2].inclusive->energy, Energy::joules(30));
}

// The layers of a Sequential differ in numbers alone, and are not alike.
TEST(FoldLayers, LayersOfAnotherTypeOrShapeStayApart) {
  auto p = two_blocks();
  p.by_layer = {layer("net", "Net", model::kNone, 1, 5, 105),
                layer("net.0.mlp.0", "Linear [64, 256]", 0, 1, 7, 7),
                layer("net.0.mlp.1", "GELU [64, 1024]", 0, 1, 1, 1),
                layer("net.0.mlp.2", "Linear [64, 1024]", 0, 1, 9, 9),
                layer("net.0.mlp.3", "Linear [64, 256]", 0, 1, 3, 3),
                layer("net.1.mlp.0", "Linear [64, 256]", 0, 1, 8, 8),
                layer("net.1.mlp.1", "GELU [64, 1024]", 0, 1, 2, 2)};
  for (auto& row : p.by_layer) row.parameters = 100;
  p.by_layer[4].parameters = 7;  // a classifier: the same input, fewer outputs
  const auto rows = fold_layers(p).by_layer;
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.name);
  EXPECT_THAT(names, ::testing::ElementsAre("net", "net.*.mlp.0", "net.*.mlp.1", "net.0.mlp.2",
                                            "net.0.mlp.3"));
  EXPECT_EQ(rows[1].folded->count, 2u);
  EXPECT_EQ(rows[1].energy->energy, Energy::joules(15));
  EXPECT_FALSE(rows[3].folded);
}

TEST(FoldLayers, TheSpreadIsInJsonAndCsv) {
  const std::vector<model::ActivityProfile> folded{fold_layers(two_blocks())};
  ActivityOptions options;
  options.by = ActivityBy::kLayer;
  const auto rows_of = [&] {
    return nlohmann::json::parse(activity_to_json(folded, options))["devices"][0]["rows"];
  };
  EXPECT_FALSE(rows_of()[1].contains("folded_layers"));
  options.fold = true;
  const auto rows = rows_of();
  EXPECT_EQ(rows[1]["folded_layers"], 2);
  EXPECT_EQ(rows[1]["folded_mean_joules"], 50.0);
  EXPECT_EQ(rows[1]["folded_deviation_joules"], 14.142136);
  EXPECT_EQ(rows[1]["folded_greatest_joules"], 60.0);
  EXPECT_TRUE(rows[0]["folded_layers"].is_null());
  EXPECT_TRUE(rows[0]["folded_least_joules"].is_null());
  const std::string csv = activity_to_csv(folded, options);
  EXPECT_THAT(csv, HasSubstr(",folded_greatest_joules,"));
  EXPECT_THAT(csv, HasSubstr(",2,50.000000,14.142136,40.000000,60.000000,"));
}

TEST(FoldLayers, ASumIsNoBetterThanItsParts) {
  auto profile = two_blocks();
  profile.by_layer[4].resolvable = false;
  profile.by_layer[4].reason = "collinear";
  profile.by_layer[3].energy.reset();
  const auto rows = fold_layers(profile).by_layer;
  EXPECT_FALSE(rows[2].resolvable);
  EXPECT_EQ(rows[2].reason, "collinear");
  EXPECT_FALSE(rows[1].energy);
  EXPECT_TRUE(rows[1].inclusive);
}

TEST(FoldLayers, TheSameNameElsewhereIsAnotherRow) {
  auto profile = two_blocks();
  profile.by_layer[4].parent = 0;
  EXPECT_EQ(fold_layers(profile).by_layer.size(), 4u);
}

}  // namespace
}  // namespace jouleprof::report
