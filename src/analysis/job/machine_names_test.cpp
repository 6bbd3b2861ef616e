#include <gtest/gtest.h>

#include "analysis/job/job_sums.h"

namespace jouleprof::analysis {
namespace {

using Names = std::map<std::string, std::string>;

TEST(MachineNames, OnlySharedOnesGetDigitsOfTheirBoot) {
  EXPECT_EQ(distinct_names({{"a", "11111111-2"}, {"b", "22222222-2"}}), Names{});
  EXPECT_EQ(distinct_names({{"a", "11111111-2"}, {"a", "11111111-2"}}), Names{});
  EXPECT_EQ(distinct_names({{"a", "11111111-2"}, {"b", "33333333-2"}, {"a", "22222222-2"}}),
            (Names{{"11111111-2", "a (11111111)"}, {"22222222-2", "a (22222222)"}}));
}

TEST(MachineNames, AsManyDigitsAsDistinguishThem) {
  EXPECT_EQ(distinct_names({{"a", "11111111-2"}, {"a", "11111111-3"}, {"a", ""}}),
            (Names{{"", "a (no boot id)"},
                   {"11111111-2", "a (11111111-2)"},
                   {"11111111-3", "a (11111111-3)"}}));
}

}  // namespace
}  // namespace jouleprof::analysis
