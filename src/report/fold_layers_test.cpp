#include "report/fold_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(rows[2].name, "net.layers.*.mlp");
  EXPECT_EQ(rows[2].parent, 1u);
  EXPECT_EQ(rows[2].inclusive->energy, Energy::joules(30));
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
