#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "apps/lib/c_interface.h"

namespace jouleprof::lib {
namespace {

// An exception that leaves an extern "C" function ends the program that called it.
TEST(CheckedCall, MakesExceptionsErrors) {
  std::array<char, 64> error{};
  EXPECT_EQ(checked(error.data(), error.size(),
                    []() -> jouleprof_status { throw std::runtime_error("no room"); }),
            JOULEPROF_INTERNAL);
  EXPECT_STREQ(error.data(), "no room");
  EXPECT_EQ(
      checked(error.data(), error.size(), []() -> jouleprof_status { throw std::bad_alloc(); }),
      JOULEPROF_INTERNAL);
  EXPECT_STREQ(error.data(), "out of memory");
  EXPECT_EQ(checked(error.data(), error.size(),
                    []() -> jouleprof_status {
                      throw std::system_error(EAGAIN, std::generic_category());
                    }),
            JOULEPROF_UNAVAILABLE);
  EXPECT_STREQ(error.data(), "no thread can be started; raise the limit (ulimit -u, -v)");
  EXPECT_EQ(checked(nullptr, 0, []() -> jouleprof_status { throw 7; }), JOULEPROF_INTERNAL);
  EXPECT_EQ(checked(nullptr, 0, [] { return JOULEPROF_TIMEOUT; }), JOULEPROF_TIMEOUT);
  EXPECT_EQ(without_exceptions(5, []() -> int { throw std::bad_alloc(); }), 5);
}

TEST(CheckedCall, CutsAMessageToFit) {
  std::array<char, 4> error{};
  EXPECT_EQ(refuse("too long", error.data(), error.size()), JOULEPROF_INVALID_ARGUMENT);
  EXPECT_STREQ(error.data(), "too");
}

}  // namespace
}  // namespace jouleprof::lib
