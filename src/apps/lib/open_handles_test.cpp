#include <gtest/gtest.h>

#include "apps/lib/c_interface.h"

namespace jouleprof::lib {
namespace {

TEST(OpenHandles, AHandleIsClosedOnce) {
  OpenHandles<int> open;
  int object = 0;
  EXPECT_FALSE(open.remove(&object));
  open.add(&object);
  EXPECT_TRUE(open.remove(&object));
  EXPECT_FALSE(open.remove(&object));
  EXPECT_FALSE(open.remove(nullptr));
  EXPECT_EQ(&open_handles<int>(), &open_handles<int>());
}

}  // namespace
}  // namespace jouleprof::lib
