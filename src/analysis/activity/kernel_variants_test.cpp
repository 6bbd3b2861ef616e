#include "analysis/activity/kernel_variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jouleprof::analysis {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr double kMicro = 1e-6;

// Signature 5 takes 10 and 10.5 us in scopes 0 and 1, 40 us in scope 2; signature 7 always 20 us.
KernelVariants two_sizes() {
  KernelVariants variants;
  variants.add(5, 0, 0, 100, 100 * 10 * kMicro);
  variants.add(5, 0, 1, 100, 100 * 10.5 * kMicro);
  variants.add(5, 0, 2, 50, 50 * 40 * kMicro);
  variants.add(7, 0, 0, 100, 100 * 20 * kMicro);
  variants.add(7, 0, 2, 100, 100 * 20.2 * kMicro);
  variants.find();
  return variants;
}

TEST(KernelVariants, ASignatureIsSplitWhereItsTimesDiffer) {
  const auto variants = two_sizes();
  ASSERT_EQ(variants.all().size(), 2u);
  EXPECT_THAT(variants.of_class(5), Pair(0, 2));
  EXPECT_THAT(variants.of_class(7), Pair(0, 0));
  EXPECT_EQ(variants.of(5, 0, 0), 0u);
  EXPECT_EQ(variants.of(5, 0, 1), 0u);
  EXPECT_EQ(variants.of(5, 0, 2), 1u);
  EXPECT_EQ(variants.of(7, 0, 0), model::kNone);
  EXPECT_EQ(variants.of(5, 0, 9), model::kNone);
  EXPECT_NEAR(variants.all()[0].launch, 10.25 * kMicro, 1e-12);
  EXPECT_NEAR(variants.all()[1].busy, 50 * 40 * kMicro, 1e-12);
}

TEST(KernelVariants, AContinuousRangeOfTimesIsNotSplit) {
  KernelVariants variants;
  for (std::uint32_t scope = 0; scope < 20; ++scope) {
    variants.add(0, 0, scope, 10, 10 * (10 + 0.5 * scope) * kMicro);
  }
  variants.find();
  EXPECT_THAT(variants.all(), IsEmpty());
}

TEST(KernelVariants, AFewOddLaunchesMakeNoVariant) {
  KernelVariants variants;
  variants.add(0, 0, 0, 1'000'000, 1'000'000 * 10 * kMicro);
  variants.add(0, 0, 1, 1, 90 * kMicro);  // the first launch, cold
  variants.find();
  EXPECT_THAT(variants.all(), IsEmpty());
}

TEST(KernelVariants, TheBusiestSignaturesAreSplitFirst) {
  KernelVariants variants;
  for (std::uint32_t k = 0; k < 40; ++k) {
    variants.add(k, 0, 0, 10 + k, (10 + k) * 10 * kMicro);
    variants.add(k, 0, 1, 10 + k, (10 + k) * 20 * kMicro);
  }
  variants.find();
  EXPECT_EQ(variants.all().size(), 64u);
  EXPECT_THAT(variants.of_class(39), Pair(0, 2));
  EXPECT_THAT(variants.of_class(0), Pair(0, 0));
}

TEST(KernelVariants, NearestIsByRatio) {
  const auto variants = two_sizes();
  EXPECT_EQ(variants.nearest(5, 19 * kMicro, 0), 0u);
  EXPECT_EQ(variants.nearest(5, 21 * kMicro, 0), 1u);
  EXPECT_EQ(variants.nearest(7, 20 * kMicro, 0), model::kNone);
}

// XLA tries a kernel three times; the loop stands for all that the program launched afterwards, and
// runs at a higher clock.
TEST(KernelVariants, ALoopIsNotOfAVariantThatHardlyRan) {
  KernelVariants variants;
  variants.add(0, 0, 0, 3, 3 * 185 * kMicro);
  variants.add(0, 0, 1, 4000, 4000 * 200 * kMicro);
  variants.find();
  ASSERT_EQ(variants.all().size(), 2u);
  EXPECT_EQ(variants.nearest(0, 186 * kMicro, 4003), 1u);
  EXPECT_EQ(variants.nearest(0, 186 * kMicro, 3), 0u);
}

TEST(VariantMix, IsThatOfTheSecondElseOfAll) {
  const auto variants = two_sizes();
  VariantMix mix(variants);
  mix.add(3.2, 0, 0.3);
  mix.add(3.9, 1, 0.1);
  EXPECT_THAT(mix.parts(5, 3.5), ElementsAre(DoubleNear(0.75, 1e-9), DoubleNear(0.25, 1e-9)));
  const double all = 100 * 20.5 + 50 * 40;
  EXPECT_THAT(mix.parts(5, 8),
              ElementsAre(DoubleNear(2050 / all, 1e-9), DoubleNear(2000 / all, 1e-9)));
  EXPECT_THAT(mix.parts(7, 3.5), IsEmpty());
}

TEST(VariantMix, WhatIsSetForATimeCounts) {
  const auto variants = two_sizes();
  VariantMix mix(variants);
  mix.add(3.2, 0, 0.3);
  mix.set(3.4, 3.6, {{1, 2.0}});
  EXPECT_THAT(mix.parts(5, 3.5), ElementsAre(0, 1));
  EXPECT_THAT(mix.parts(5, 3.39), ElementsAre(1, 0));
  EXPECT_THAT(mix.parts(5, 3.6), ElementsAre(1, 0));
}

}  // namespace
}  // namespace jouleprof::analysis
