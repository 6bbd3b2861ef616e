#include "spans/procs/identity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "tests/support/temp_tree.h"

namespace jouleprof::spans {
namespace {

model::Rank rank_in(const std::map<std::string, std::string>& environment) {
  return rank_of([&](const char* name) {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second.c_str() : nullptr;
  });
}

TEST(Identity, EachLauncherSetsItsOwnVariables) {
  EXPECT_EQ(rank_in({{"RANK", "5"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "8"}}),
            (model::Rank{5, 1, 8, "torchrun", "", ""}));
  EXPECT_EQ(rank_in({{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "2"}}),
            (model::Rank{0, 0, 2, "openmpi", "", ""}));
  EXPECT_EQ(rank_in({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}),
            (model::Rank{3, std::nullopt, 4, "pmi", "", ""}));
  EXPECT_EQ(rank_in({{"SLURM_PROCID", "7"},
                     {"SLURM_LOCALID", "3"},
                     {"SLURM_NTASKS", "16"},
                     {"SLURM_JOB_ID", "4711"},
                     {"SLURM_STEP_ID", "0"}}),
            (model::Rank{7, 3, 16, "slurm", "4711", "0"}));
}

TEST(Identity, UsersHaveTheirNameOrTheirNumber) {
  const TempTree tree;
  const std::string number = std::to_string(::geteuid());
  tree.write("passwd", "other:x:" + number + "1:0::/:/bin/sh\nada:x:" + number + ":0::/:/bin/sh\n");
  EXPECT_EQ(user_here(tree.root() / "passwd"), "ada");
  const char* named = std::getenv("USER");
  EXPECT_EQ(user_here(tree.root() / "absent"), named != nullptr && *named != 0 ? named : number);
}

TEST(Identity, NodesAreThoseOfTheJob) {
  const auto nodes_in = [](const std::map<std::string, std::string>& environment) {
    return node_list_of([&](const char* name) {
      const auto found = environment.find(name);
      return found != environment.end() ? found->second.c_str() : nullptr;
    });
  };
  EXPECT_EQ(nodes_in({{"SLURM_JOB_NODELIST", "n[1-4]"}, {"SLURM_NODELIST", "n1"}}), "n[1-4]");
  EXPECT_EQ(nodes_in({{"SLURM_NODELIST", "n1"}}), "n1");
  EXPECT_EQ(nodes_in({}), "");
}

// srun starts one torchrun on each host, which starts one process for each GPU.
TEST(Identity, TheInnerLauncherNumbersTheProcesses) {
  EXPECT_EQ(rank_in({{"SLURM_PROCID", "1"},
                     {"SLURM_LOCALID", "0"},
                     {"SLURM_JOB_ID", "4711"},
                     {"RANK", "9"},
                     {"LOCAL_RANK", "1"}}),
            (model::Rank{9, 1, std::nullopt, "torchrun", "4711", ""}));
}

TEST(Identity, WhatIsNoNumberIsAbsent) {
  EXPECT_EQ(rank_in({}), model::Rank{});
  for (const char* value : {"", "x", "-1", "3x", " 3", "4294967296", "1.5"}) {
    EXPECT_EQ(rank_in({{"RANK", value}, {"LOCAL_RANK", "1"}}), model::Rank{}) << value;
    EXPECT_EQ(rank_in({{"RANK", "1"}, {"LOCAL_RANK", value}}).local, std::nullopt) << value;
  }
}

TEST(Identity, TheBootIdIsTheKernels) {
  const TempTree tree;
  EXPECT_EQ(boot_id(tree.root()), "");
  tree.write("sys/kernel/random/boot_id", "0f1e2d3c-0000-4000-8000-123456789abc\n");
  EXPECT_EQ(boot_id(tree.root()), "0f1e2d3c-0000-4000-8000-123456789abc");
  EXPECT_EQ(boot_id().size(), 36U);
}

}  // namespace
}  // namespace jouleprof::spans
