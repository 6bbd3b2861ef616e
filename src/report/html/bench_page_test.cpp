#include <gtest/gtest.h>

#include "report/example_bench_test.h"
#include "report/results/pages.h"

namespace jouleprof::report {
namespace {

std::string page_of(const BenchResult& result, bool redact = false) {
  PageOptions options;
  options.redact = redact;
  const auto page = bench_to_html({}, {result}, options);
  return page ? *page : page.error().message;
}

bool has(const std::string& page, std::string_view text) {
  return page.find(text) != std::string::npos;
}

TEST(BenchPage, HasTheLevelsThatAreKnown) {
  const auto page = page_of(bench_result());
  for (const char* level : {"rest", "held", "active"}) {
    EXPECT_TRUE(has(page, ">" + std::string(level) + "</th>")) << level;
  }
}

TEST(BenchPage, HasAWarningInsteadOfColumnsThatNoRowHas) {
  auto result = bench_result();
  auto& profile = result.energy->profile;
  for (auto& domain : profile.domains) domain.levels = {};
  profile.warnings = {"idle power is unknown; see /home/user/log"};
  const auto page = page_of(result);
  EXPECT_FALSE(has(page, ">held</th>"));
  EXPECT_TRUE(has(page, ">total</th>"));
  EXPECT_TRUE(has(page, "warning: idle power is unknown; see /home/user/log"));
  EXPECT_FALSE(has(page_of(result, true), "/home/user"));
}

}  // namespace
}  // namespace jouleprof::report
