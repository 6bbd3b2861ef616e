#include "session/hub/hub_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using model::DomainId;

constexpr uid_t kAlice = 1000;
constexpr uid_t kBob = 1001;

std::optional<uid_t> owner(pid_t pid) {
  if (pid < 100) return std::nullopt;  // ended, or not visible
  return pid < 200 ? kAlice : kBob;
}

TEST(ShareUses, OthersAreOneWithoutAPid) {
  const HostTime t{Duration{5}};
  const meters::GpuUses uses{{110, DomainId{0}, t, 0.5, 100},
                             {210, DomainId{0}, t, 0.2, 10},
                             {211, DomainId{0}, t, 0.1, 1},
                             {212, DomainId{1}, t, 0.4, 7},
                             {50, DomainId{1}, t, std::nullopt, 3}};
  const auto seen = uses_seen_by(kAlice, uses, owner);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], uses[0]);
  EXPECT_EQ(seen[1].pid, 0);
  EXPECT_EQ(seen[1].domain, DomainId{0});
  EXPECT_DOUBLE_EQ(*seen[1].compute_utilisation, 0.3);
  EXPECT_EQ(seen[1].memory_bytes, 11u);
  EXPECT_EQ(seen[2].pid, 0);
  EXPECT_EQ(seen[2].domain, DomainId{1});
  EXPECT_FALSE(seen[2].compute_utilisation);  // unknown, so the sum is
  EXPECT_EQ(seen[2].memory_bytes, 10u);
}

TEST(ShareUses, RootSeesAll) {
  const meters::GpuUses uses{{110, DomainId{0}, HostTime{}, 0.5, 100},
                             {210, DomainId{0}, HostTime{}, 0.2, 10}};
  EXPECT_EQ(uses_seen_by(0, uses, owner), uses);
}

TEST(ShareUses, ReadsTheEffectiveUser) {
  const TempTree tree{{"proc/7/status", "Name:\tx\nUid:\t1000\t1001\t1002\t1003\nGid:\t1\n"},
                      {"proc/8/status", "Name:\tx\n"}};
  EXPECT_EQ(user_of(7, tree.root()), kBob);
  EXPECT_FALSE(user_of(8, tree.root()));
  EXPECT_FALSE(user_of(9, tree.root()));
  EXPECT_EQ(user_of(::getpid(), "/"), ::geteuid());
}

}  // namespace
}  // namespace jouleprof::session
