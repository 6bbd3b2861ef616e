#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

TEST(KeptFile, SaysWhatTheFileHoldsNow) {
  const TempTree tree{{"stat", "cpu 1 2 3\n"}};
  KeptFile file(tree / "stat");
  EXPECT_EQ(file.read().value(), "cpu 1 2 3\n");
  tree.write("stat", "cpu 4\n");
  EXPECT_EQ(file.read().value(), "cpu 4\n");
  tree.write("stat", "");
  EXPECT_EQ(file.read().value(), "");
}

TEST(KeptFile, ReadsAllOfALongOneOrItsBeginning) {
  const std::string text(20000, 'x');
  const TempTree tree{{"long", text + "y"}};
  KeptFile file(tree / "long");
  EXPECT_EQ(file.read(5).value(), "xxxxx");
  EXPECT_EQ(file.read().value(), text + "y");
  EXPECT_EQ(file.read(20000).value(), text);
}

TEST(KeptFile, OneThatIsNotThereMayComeLater) {
  const TempTree tree;
  KeptFile file(tree / "later");
  EXPECT_EQ(file.read().error().code, Errc::kNotFound);
  tree.write("later", "here");
  EXPECT_EQ(file.read().value(), "here");
}

TEST(KeptFile, AFolderIsAnError) {
  const TempTree tree;
  KeptFile file(tree.root());
  EXPECT_EQ(file.read().error().code, Errc::kInvalidArgument);
}

TEST(KeptFile, ReadsTheKernels) {
  KeptFile file("/proc/self/stat");
  const auto first = file.read();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->back(), '\n');
  EXPECT_TRUE(file.read());
}

}  // namespace
}  // namespace jouleprof
