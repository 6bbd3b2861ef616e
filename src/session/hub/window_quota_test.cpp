#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/hub/window_names.h"

namespace jouleprof::session {
namespace {

TEST(WindowQuotaTest, WarnsOnceWhenItIsUsedUp) {
  WindowQuota quota(2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(quota.take());
    EXPECT_FALSE(quota.warning());
  }
  EXPECT_FALSE(quota.take());
  ASSERT_TRUE(quota.warning());
  EXPECT_THAT(*quota.warning(), testing::HasSubstr("the first 2 windows"));
  EXPECT_FALSE(quota.take());
  EXPECT_FALSE(quota.warning());
}

}  // namespace
}  // namespace jouleprof::session
