#include "spans/procs/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spans {
namespace {

using testing::UnorderedElementsAre;

constexpr const char* kMounts =
    "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "31 24 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";

TEST(Cgroup, IsMadeBelowTheOwnOne) {
  const TempTree tree{{"proc/self/cgroup", "4:cpu:/x\n0::/user/me\n"},
                      {"proc/self/mountinfo", kMounts},
                      {"sys/fs/cgroup/unified/user/me/cgroup.procs", ""}};
  auto group = Cgroup::create("mine", tree.root());
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_EQ(group->path(), tree / "sys/fs/cgroup/unified/user/me/mine");

  tree.write("sys/fs/cgroup/unified/user/me/mine/cgroup.procs", "12\n13\n");
  tree.write("sys/fs/cgroup/unified/user/me/mine/below/deep/cgroup.procs", "14\n");
  std::vector<pid_t> pids;
  group->list(pids);
  EXPECT_THAT(pids, UnorderedElementsAre(12, 13, 14));
  ASSERT_TRUE(group->add(99));
  EXPECT_THAT(*read_file(group->path() / "cgroup.procs"), testing::StartsWith("99\n"));
}

TEST(Cgroup, EmptyOnesOfToolsThatWereKilledAreRemoved) {
  const TempTree tree{{"proc/self/cgroup", "0::/me\n"},
                      {"proc/self/mountinfo", kMounts},
                      {"sys/fs/cgroup/unified/me/tool-2000000002/used", ""}};
  const auto own = tree / "sys/fs/cgroup/unified/me";
  const std::string alive = "tool-" + std::to_string(getppid());
  // The kernel gives out no pid above 2^22.
  for (const std::string& name :
       {std::string("tool-2000000001"), std::string("tool-2000000001x"), std::string("tool--5"),
        std::string("other-2000000001"), std::string("2000000001"), alive}) {
    std::filesystem::create_directory(own / name);
  }
  const auto group = Cgroup::create("tool-" + std::to_string(getpid()), tree.root());
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_THAT(names_in(own),
              UnorderedElementsAre("tool-" + std::to_string(getpid()), alive, "tool-2000000001x",
                                   "tool-2000000002", "tool--5", "other-2000000001", "2000000001"));
}

TEST(Cgroup, UndelegatedGroupsOfSystemdAreLeftAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root could write there anyway";
  const TempTree tree{{"proc/self/cgroup", "0::/user/me\n"},
                      {"proc/self/mountinfo", kMounts},
                      {"run/systemd/system/x", ""},
                      {"sys/fs/cgroup/unified/user/me/cgroup.procs", ""}};
  const auto group = Cgroup::create("mine", tree.root());
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, Errc::kUnsupported);
}

TEST(Cgroup, ProgramsStayWhereTheyReadTheirLimits) {
  const auto is_made = [](const char* file, const char* text) {
    const TempTree tree{{"proc/self/cgroup", "0::/user/me\n"},
                        {"proc/self/mountinfo", kMounts},
                        {std::string("sys/fs/cgroup/unified/user/me/") + file, text}};
    return Cgroup::create("mine", tree.root()).has_value();
  };
  EXPECT_FALSE(is_made("cpu.max", "200000 100000\n"));
  EXPECT_FALSE(is_made("memory.max", "4294967296\n"));
  EXPECT_TRUE(is_made("cpu.max", "max 100000\n"));
  EXPECT_TRUE(is_made("memory.max", "max\n"));
}

TEST(Cgroup, WithoutAHierarchyItIsUnsupported) {
  const TempTree old{{"proc/self/cgroup", "4:cpu:/x\n"}, {"proc/self/mountinfo", kMounts}};
  EXPECT_EQ(Cgroup::create("mine", old.root()).error().code, Errc::kUnsupported);
  const TempTree outside{{"proc/self/cgroup", "0::/../../elsewhere\n"},
                         {"proc/self/mountinfo", kMounts}};
  EXPECT_EQ(Cgroup::create("mine", outside.root()).error().code, Errc::kUnsupported);
  EXPECT_EQ(Cgroup::create("mine", outside / "none").error().code, Errc::kUnsupported);
}

}  // namespace
}  // namespace jouleprof::spans
