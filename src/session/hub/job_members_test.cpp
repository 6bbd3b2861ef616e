// Members of a job that leave.
#include "session/hub/job_members.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace jouleprof::session {
namespace {

std::vector<JobMembers::ClientId> ended(JobMembers& members) {
  std::vector<JobMembers::ClientId> ids;
  for (const auto& answer : members.take_answers()) {
    if (answer.end) ids.push_back(answer.client);
  }
  return ids;
}

// One that leaves after the look at its processes waits for a look of its own.
TEST(JobMembers, AreReleasedOnceTheyWereSeen) {
  JobMembers members;
  members.admit({});
  for (const JobMembers::ClientId id : {1u, 2u}) ASSERT_TRUE(members.ask(id, 100, {}));
  ASSERT_TRUE(ended(members).empty());
  EXPECT_FALSE(members.see_leaving());
  ASSERT_TRUE(members.leave(1));
  EXPECT_TRUE(members.see_leaving());
  EXPECT_FALSE(members.see_leaving());
  ASSERT_TRUE(members.leave(2));
  members.release_leaving();
  EXPECT_EQ(ended(members), std::vector<JobMembers::ClientId>{1});
  EXPECT_TRUE(members.see_leaving());
  members.release_leaving();
  members.remove(1);
  EXPECT_EQ(ended(members), std::vector<JobMembers::ClientId>{2});
}

}  // namespace
}  // namespace jouleprof::session
