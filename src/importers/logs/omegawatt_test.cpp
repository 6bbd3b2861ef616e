#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/testing.h"

namespace jouleprof::importers {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const std::string kLog =
    "opening /dev/ttyUSB0\n"
    "#timestamp,#frame_is_ok,#U1,#current1,#activepow1,#current2,#activepow2\n"
    "1671527189.29,false,,,,,\n"
    "1671527189.30,true,232.3,0.1,20.0,0,0\n"
    "1671527189.40,true,232.3,0.1,30.0,0,0\n"
    "1671527189.50,true,232.3,0.1,20.0,0,0\n";

TEST(OmegaWatt, ReadsUsedSockets) {
  const auto recording = import_text(kLog);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:omegawatt");
  ASSERT_EQ(recording->domains.size(), 1u);
  EXPECT_EQ(recording->domains[0].kind, model::DomainKind::kPlatform);  // in no total
  EXPECT_NEAR(trapezoid(powers_of(*recording, "socket1")), 5, 1e-6);
  EXPECT_EQ(recording->clock_points.front().real,
            RealTime{std::chrono::seconds{1671527189} + milliseconds{300}});
  EXPECT_TRUE(has_warning(
      *recording, "1 line left out that is no row of wattmetre-read, or that it marks as bad"));
  EXPECT_TRUE(has_warning(*recording, "1 of 2 sockets left out"));
}

TEST(OmegaWatt, BadLogs) {
  EXPECT_TRUE(has_warning(*import_text(kLog + "1671527189.60,true,1\n"),
                          "line 7: 3 fields under a header of 7"));
  EXPECT_TRUE(has_warning(*import_text(kLog + "now,true,1,1,1,1,1\n"), "'now' is no time"));
  EXPECT_THAT(import_error("#timestamp,#frame_is_ok,#U1\n1,true,2\n"), HasSubstr("#activepow1"));
}

}  // namespace
}  // namespace jouleprof::importers
