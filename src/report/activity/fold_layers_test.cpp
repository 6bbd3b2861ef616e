#include "report/activity/fold_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/activity/activity.h"
#include "report/example_activity_test.h"

namespace jouleprof::report {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
