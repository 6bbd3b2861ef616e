#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_tree.h"

namespace jouleprof {
namespace {

TEST(File, ReadsAttributesAndIntegers) {
  const TempTree tree(
      {{"energy_uj", "  123456789 \n"}, {"name", "package-0\n"}, {"bad", "12 W\n"}});
  EXPECT_EQ(read_attribute(tree / "name"), "package-0");
  EXPECT_EQ(read_integer(tree / "energy_uj"), 123456789);
  EXPECT_EQ(read_integer(tree / "bad").error().code, Errc::kCorrupt);
}

TEST(File, ErrorsNameThePath) {
  const TempTree tree({});
  const auto missing = read_file(tree / "nowhere");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_THAT(missing.error().message, testing::HasSubstr((tree / "nowhere").string()));
}

TEST(File, RefusesMoreThanTheLimit) {
  const TempTree tree({{"long", std::string(100, 'x')}});
  EXPECT_EQ(read_file(tree / "long", 99).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(read_file(tree / "long", 100).value().size(), 100U);
}

TEST(File, ListsSorted) {
  const TempTree tree({{"b", ""}, {"a/x", ""}, {"c", ""}});
  EXPECT_THAT(list_folder(tree.root()).value(), testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(list_folder(tree / "none").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace jouleprof
