#include <gtest/gtest.h>

#include "spans/procs/scheduler_names.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spans {
namespace {

TEST(JobMapping, ReadsOneFileForEachGpu) {
  const TempTree tree{{"0", "4711\n"},
                      {"1.7", "4712\r\n4712\n\n  4713_2 \n"},
                      {"GPU-abc", "job@cluster\n"},
                      {"10", "4711"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.all(), (std::vector<GpuJobs>{{"0", {}, {"4711"}},
                                                 {"1", 7, {"4712", "4713_2"}},
                                                 {"10", {}, {"4711"}},
                                                 {"GPU-abc", {}, {"job@cluster"}}}));
  EXPECT_EQ(mapping.only_job(0, "GPU-x"), "4711");
  EXPECT_EQ(mapping.only_job(10, ""), "4711");
  EXPECT_EQ(mapping.only_job(3, "GPU-abc"), "job@cluster");  // the UUID decides
  EXPECT_EQ(mapping.only_job(1, ""), std::nullopt);          // two jobs share it
  EXPECT_EQ(mapping.only_job(2, ""), std::nullopt);
  EXPECT_EQ(mapping.only_job(std::nullopt, ""), std::nullopt);
}

TEST(JobMapping, OneJobOnSeveralInstancesOfAGpuIsItsOnlyJob) {
  const TempTree tree{{"0.1", "9\n"}, {"0.2", "9\n"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.only_job(0, ""), "9");
}

TEST(JobMapping, IgnoresWhatIsNoMapping) {
  const TempTree tree{{"README", "4711\n"}, {".0", "4711\n"},
                      {"0.x", "4711\n"},    {"-1", "4711\n"},
                      {"9999999", "1\n"},   {"1", ""},
                      {"2", "two words\n"}, {"3", "\x01\n"},
                      {"4/inside", "1\n"},  {"5", std::string(129, 'j')},
                      {"0.", "1\n"},        {"6", std::string(70000, '\n')}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.all(), std::vector<GpuJobs>{});
}

TEST(JobMapping, ForgetsAJobThatEnded) {
  const TempTree tree{{"0", "1\n"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  std::filesystem::remove(tree / "0");
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_TRUE(mapping.all().empty());
  EXPECT_EQ(mapping.only_job(0, ""), std::nullopt);
}

TEST(JobMapping, WithoutTheFolderItIsEmptyAndAnError) {
  const TempTree tree{{"0", "1\n"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.read(tree / "none").error().code, Errc::kNotFound);
  EXPECT_TRUE(mapping.all().empty());
}

}  // namespace
}  // namespace jouleprof::spans
