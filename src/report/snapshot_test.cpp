#include "report/snapshot.h"

#include <gtest/gtest.h>

namespace jouleprof::report {
namespace {

using std::chrono::seconds;

TEST(BusyRatio, IsBusyTimeOverAllTime) {
  const model::MachineReading from{HostTime{seconds{1}}, seconds{10}, seconds{100}, 0};
  EXPECT_EQ(busy_ratio(from, {HostTime{seconds{2}}, seconds{11}, seconds{104}, 0}), 0.25);
  EXPECT_EQ(busy_ratio(from, {HostTime{seconds{2}}, seconds{10}, seconds{104}, 0}), 0);
  EXPECT_EQ(busy_ratio(from, {HostTime{seconds{2}}, seconds{14}, seconds{104}, 0}), 1);
}

TEST(BusyRatio, WhatCannotBeIsAbsent) {
  const model::MachineReading from{HostTime{seconds{1}}, seconds{10}, seconds{100}, 0};
  EXPECT_FALSE(busy_ratio(from, from));  // no tick passed
  EXPECT_FALSE(busy_ratio(from, {HostTime{seconds{2}}, seconds{9}, seconds{104}, 0}));
  EXPECT_FALSE(busy_ratio(from, {HostTime{seconds{2}}, seconds{16}, seconds{104}, 0}));
}

}  // namespace
}  // namespace jouleprof::report
