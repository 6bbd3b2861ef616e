#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/cells.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KernelNames, LoseTheReturnTypeAndTheParameters) {
  EXPECT_THAT(shortened_names({"void f<float>(float*, int (*)(int))", "sgemm_128x64",
                               "(anonymous namespace)::g(int)", "memcpy (host to device)", "()", "",
                               "h() const"},
                              60),
              ElementsAre("f<float>", "sgemm_128x64", "(anonymous namespace)::g",
                          "memcpy (host to device)", "()", "", "h"));
}

TEST(KernelNames, KeepTheirDifferences) {
  const std::string head = "void at::native::vectorized_elementwise_kernel<4, at::native::Functor_";
  const std::string tail =
      "<float>, std::array<char*, 3ul>, a very long rest of arguments > >(int)";
  const std::vector<std::string> names{head + "add" + tail, head + "mul" + tail,
                                       head + "sub" + tail};
  for (std::size_t width : {30U, 40U, 60U, 80U}) {
    const auto shortened = shortened_names(names, width);
    for (const auto& name : shortened) EXPECT_LE(display_width(name), width);
    EXPECT_EQ(std::set<std::string>(shortened.begin(), shortened.end()).size(), 3U) << shortened[0];
  }
  EXPECT_THAT(shortened_names(names, 60)[1], HasSubstr("mul"));
}

TEST(KernelNames, AnyTextFitsAnyWidth) {
  const std::vector<std::string> names{std::string(500, '('), std::string(500, ')'),
                                       "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4"
                                       "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4"};
  for (std::size_t width = 0; width < 30; ++width) {
    for (const auto& name : shortened_names(names, width)) {
      EXPECT_LE(display_width(name), width) << name;
      EXPECT_EQ(printable(name), name);
    }
  }
}

}  // namespace
}  // namespace jouleprof::report
