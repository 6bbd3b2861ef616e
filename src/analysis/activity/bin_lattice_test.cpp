#include "analysis/activity/bin_lattice.h"

#include <gtest/gtest.h>

#include <vector>

namespace jouleprof::analysis {
namespace {

constexpr std::uint32_t kPart = BinLattice::kPartOfOthers;

std::vector<BinLattice::Bin> all_of(BinLattice& lattice) {
  std::vector<BinLattice::Bin> bins;
  lattice.take([&](const BinLattice::Bin& bin) { bins.push_back(bin); });
  return bins;
}

TEST(BinLattice, SumsEachNumberOfABinInOrder) {
  BinLattice lattice(2);
  lattice.add(4, 2, 7, 0.5);
  lattice.add(4, 1, 70, 0.25);
  lattice.add(0, 2, 3, 1);
  lattice.add(5, 1, 7, 0.25);
  lattice.add(4, 2, kPart + 1, 0.125);
  const auto bins = all_of(lattice);
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(bins[0].begin, 0);
  EXPECT_EQ(bins[1].begin, 4);
  EXPECT_EQ(bins[1].busy, 1);  // without the part of others
  ASSERT_EQ(bins[1].classes.size(), 3U);
  EXPECT_EQ(bins[1].classes[0].kernel_class, 7U);
  EXPECT_EQ(bins[1].classes[0].seconds, 0.75);
  EXPECT_EQ(bins[1].classes[1].kernel_class, 70U);
  EXPECT_EQ(bins[1].classes[2].kernel_class, kPart + 1);
  EXPECT_TRUE(all_of(lattice).empty());
}

TEST(BinLattice, DividesAnIntervalAmongItsBinsAndScalesWhatExceedsOne) {
  BinLattice lattice(1);
  lattice.add(0.5, 1, 0, 1);
  lattice.add(0.5, 1, 1, 1);
  lattice.add(1, 1, 2, 1);
  const auto bins = all_of(lattice);
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(bins[0].busy, 1);
  EXPECT_EQ(bins[1].busy, 1);
  EXPECT_EQ(bins[1].classes[0].seconds, 0.25);
  EXPECT_EQ(bins[1].classes[2].seconds, 0.5);
}

TEST(BinLattice, GivesTheSameBinsWhereTheyAreTakenAsTimeGoes) {
  BinLattice at_once(1);
  BinLattice in_steps(1);
  std::vector<BinLattice::Bin> bins;
  int taken_early = 0;
  for (int i = 0; i < 10'000; ++i) {
    in_steps.take_before(i, [&](const BinLattice::Bin& bin) {
      bins.push_back(bin);
      EXPECT_LE(bin.begin + 1, i);
      ++taken_early;
    });
    for (auto* lattice : {&at_once, &in_steps}) {
      lattice->add(i + 0.25, 2, static_cast<std::uint32_t>(i % 5), 0.5);
      lattice->add(i, 3.5, 9, 0.125);
    }
  }
  in_steps.take([&](const BinLattice::Bin& bin) { bins.push_back(bin); });
  EXPECT_GT(taken_early, 8000);
  const auto expected = all_of(at_once);
  ASSERT_EQ(bins.size(), expected.size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_EQ(bins[i].begin, expected[i].begin);
    EXPECT_EQ(bins[i].busy, expected[i].busy);
    ASSERT_EQ(bins[i].classes.size(), expected[i].classes.size());
    for (std::size_t k = 0; k < bins[i].classes.size(); ++k) {
      EXPECT_EQ(bins[i].classes[k].seconds, expected[i].classes[k].seconds);
    }
  }
}

}  // namespace
}  // namespace jouleprof::analysis
