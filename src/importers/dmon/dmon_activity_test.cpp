#include "importers/dmon/dmon_activity.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace jouleprof::importers {
namespace {

struct Look {
  std::optional<double> sm;
  std::optional<double> clock;
  std::int64_t gpu = 0;
};

DmonActivity find(std::initializer_list<std::vector<Look>> looks) {
  std::vector<DmonRow> rows;
  std::vector<std::size_t> ticks;
  for (const auto& tick : looks) {
    ticks.push_back(rows.size());
    for (const Look& look : tick) {
      DmonRow row;
      row.gpu = look.gpu;
      row.values[static_cast<std::size_t>(DmonField::kSm)] = look.sm;
      row.values[static_cast<std::size_t>(DmonField::kSmClock)] = look.clock;
      rows.push_back(row);
    }
  }
  return find_activity(rows, ticks);
}

TEST(DmonActivity, WorkIsTrimmedByOneTickOnEachSide) {
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
  EXPECT_EQ(found.idle_ticks, 2u);
  EXPECT_EQ(found.work, (TickRange{4, 6}));
}

TEST(DmonActivity, ShortWorkIsNotTrimmed) {
  EXPECT_EQ(find({{{0, 210}}, {{80, 900}}, {{80, 900}}}).work, (TickRange{1, 2}));
  EXPECT_EQ(find({{{80, 900}}, {{80, 900}}, {{80, 900}}}).work, (TickRange{1, 1}));
}

TEST(DmonActivity, ALogThatIsIdleThroughoutHasNoWork) {
  const auto found = find({{{0, 210}}, {{0, 210}}});
  EXPECT_EQ(found.idle_ticks, 2u);
  EXPECT_EQ(found.work, std::nullopt);
}

TEST(DmonActivity, ClocksThatNeverFellAreNotIdle) {
  EXPECT_EQ(find({{{0, 800}}, {{0, 800}}, {{80, 900}}}).idle_ticks, 0u);
}

TEST(DmonActivity, AllGpusHaveToBeIdleAndAnyMakesItActive) {
  const auto found = find({{{0, 210, 0}, {0, 345, 1}},
                           {{0, 210, 0}, {0, 1980, 1}},
                           {{0, 210, 0}, {90, 1980, 1}},
                           {{0, 210, 0}, {90, 1980, 1}},
                           {{50, 900, 0}, {0, 345, 1}}});
  EXPECT_EQ(found.idle_ticks, 1u);
  EXPECT_EQ(found.work, (TickRange{3, 3}));
}

TEST(DmonActivity, WithoutUtilisationNothingIsKnown) {
  const auto found = find({{{std::nullopt, 210}}, {{std::nullopt, 900}}});
  EXPECT_EQ(found.idle_ticks, 0u);
  EXPECT_EQ(found.work, std::nullopt);
  EXPECT_EQ(find({{{0, std::nullopt}}}).idle_ticks, 0u);
}

}  // namespace
}  // namespace jouleprof::importers
