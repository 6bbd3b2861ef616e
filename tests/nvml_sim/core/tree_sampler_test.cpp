#include "nvml_sim/core/tree_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::nvml_sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string stat(int pid, int parent, char state = 'S') {
  return std::to_string(pid) + " (a) b) " + state + " " + std::to_string(parent) + " 1 1 0";
}

TEST(ProcessTree, FindsDescendantsByEnvironment) {
  const TempTree proc({{"1/stat", stat(1, 0)},
                       {"1/environ", ""},
                       {"20/stat", stat(20, 1)},
                       {"20/environ", std::string("A=1\0LOAD=yes\0", 13)},
                       {"21/stat", stat(21, 20)},
                       {"21/environ", std::string("A=1\0", 4)},
                       {"22/stat", stat(22, 21)},
                       {"22/environ", ""},
                       {"23/stat", stat(23, 20, 'Z')},
                       {"30/stat", stat(30, 1)},
                       {"30/environ", std::string("LOADED=yes\0", 11)},
                       {"self/stat", stat(1, 0)}});
  EXPECT_THAT(tree_members("LOAD=yes", proc.root()), ElementsAre(20, 21, 22));
  EXPECT_THAT(tree_members("LOAD=no", proc.root()), IsEmpty());
}

TEST(TreeSampler, LooksFromItsBeginAndStops) {
  TreeSampler sampler("JOULEPROF_NO_SUCH=1", 0.001, RealClock::now().time_since_epoch().count());
  EXPECT_THAT(sampler.members(), IsEmpty());
}

}  // namespace
}  // namespace jouleprof::nvml_sim
