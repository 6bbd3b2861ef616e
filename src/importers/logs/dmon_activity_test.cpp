#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "importers/logs/dmon_lines.h"

namespace jouleprof::importers {
namespace {

// sm in percent, clock, GPU.
struct Seen {
  std::optional<double> sm;
  std::optional<double> clock;
  std::size_t gpu = 0;
};

DmonActivity find(std::initializer_list<std::vector<Seen>> seen) {
  std::vector<Look> looks;
  for (const auto& look : seen) {
    looks.emplace_back();
    for (const Seen& gpu : look) {
      looks.back().push_back(
          {gpu.gpu, gpu.sm ? std::optional(*gpu.sm / 100) : std::nullopt, gpu.clock});
    }
  }
  return find_activity(looks);
}

TEST(DmonActivity, WorkIsTrimmedByOneLookOnEachSide) {
  const auto found = find({{{0, 210}},
                           {{0, 210}},
                           {{0, 900}},
                           {{30, 900}},
                           {{80, 900}},
                           {{10, 900}},
                           {{80, 900}},
                           {{31, 900}},
                           {{29, 900}},
                           {{0, 210}}});
  EXPECT_EQ(found.idle_looks, 2u);
  EXPECT_EQ(found.work, (LookRange{4, 6}));
}

TEST(DmonActivity, ShortWorkIsNotTrimmed) {
  EXPECT_EQ(find({{{0, 210}}, {{80, 900}}, {{80, 900}}}).work, (LookRange{1, 2}));
  EXPECT_EQ(find({{{80, 900}}, {{80, 900}}, {{80, 900}}}).work, (LookRange{1, 1}));
}

TEST(DmonActivity, ALogThatIsIdleThroughoutHasNoWork) {
  const auto found = find({{{0, 210}}, {{0, 210}}});
  EXPECT_EQ(found.idle_looks, 2u);
  EXPECT_EQ(found.work, std::nullopt);
}

TEST(DmonActivity, ClocksThatNeverFellAreNotIdle) {
  EXPECT_EQ(find({{{0, 800}}, {{0, 800}}, {{80, 900}}}).idle_looks, 0u);
}

TEST(DmonActivity, AllGpusHaveToBeIdleAndAnyMakesItActive) {
  const auto found = find({{{0, 210, 0}, {0, 345, 1}},
                           {{0, 210, 0}, {0, 1980, 1}},
                           {{0, 210, 0}, {90, 1980, 1}},
                           {{0, 210, 0}, {90, 1980, 1}},
                           {{50, 900, 0}, {0, 345, 1}}});
  EXPECT_EQ(found.idle_looks, 1u);
  EXPECT_EQ(found.work, (LookRange{3, 3}));
}

TEST(DmonActivity, WithoutUtilisationNothingIsKnown) {
  const auto found = find({{{std::nullopt, 210}}, {{std::nullopt, 900}}});
  EXPECT_EQ(found.idle_looks, 0u);
  EXPECT_EQ(found.work, std::nullopt);
  EXPECT_EQ(find({{{0, std::nullopt}}}).idle_looks, 0u);
}

}  // namespace
}  // namespace jouleprof::importers
