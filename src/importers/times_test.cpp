#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

TEST(Stamps, CalendarTimes) {
  const Duration whole = std::chrono::seconds{1795230839};
  EXPECT_EQ(parse_calendar_time("2026-11-21 03:13:59"), whole);
  EXPECT_EQ(parse_calendar_time("2026-11-21T03:13:59.5"), whole + std::chrono::milliseconds{500});
  EXPECT_EQ(parse_calendar_time("2026-11-21 03:13:59.000000001"), whole + Duration{1});
  EXPECT_EQ(parse_calendar_time("2026-11-21 03:13:59.00000000199999999999"), whole + Duration{1});
  for (const char* bad :
       {"", "2026-11-21", "2026-13-21 03:13:59", "2026-02-30 03:13:59", "2026-11-21 24:13:59",
        "2026-11-21 03:13:59.", "2026-11-21 03:13:59.x", "2026-11-21 03:13:59Z",
        "1969-11-21 03:13:59", "2200-01-01 00:00:00", "+026-11-21 03:13:59"}) {
    EXPECT_EQ(parse_calendar_time(bad), std::nullopt) << bad;
  }
}

TEST(Stamps, AHalfDayWithoutAnHourIsNone) {
  for (const char* bad : {":30:00 PM 12", ":30:00 AM", "11/23/2026 :30:00 PM", "PM pm: pm 12:00"}) {
    EXPECT_FALSE(parse_log_time(bad)) << bad;
  }
}

TEST(Stamps, CompactDates) {
  EXPECT_EQ(parse_compact_date("19700102"), std::chrono::hours{24});
  EXPECT_EQ(parse_compact_date("19700230"), std::nullopt);
  EXPECT_EQ(parse_compact_date("1970-102"), std::nullopt);
}

TEST(Stamps, SecondsKeepTheirDigits) {
  EXPECT_EQ(parse_seconds("1795230839.123456789"), Duration{1795230839123456789});
  EXPECT_EQ(parse_seconds("0.25"), std::chrono::milliseconds{250});
  EXPECT_EQ(parse_seconds("9.5e-07"), Duration{950});
  EXPECT_EQ(parse_seconds("1e3"), std::chrono::seconds{1000});
  for (const char* bad : {"", "-1", "x", "1.x", "nan", "1e300", "9999999999", "."}) {
    EXPECT_EQ(parse_seconds(bad), std::nullopt) << bad;
  }
}

TEST(Stamps, LocalTimeFollowsTheZone) {
  const ScopedZone zone("UTC-2");  // two hours ahead of UTC
  const auto [first, last, any] = instants_of(std::chrono::seconds{1795230839} + Duration{7});
  EXPECT_TRUE(any);
  EXPECT_EQ(first, std::chrono::seconds{1795230839 - 7200} + Duration{7});
  EXPECT_EQ(last, first);
  EXPECT_EQ(utc_to_real(Duration{7}), RealTime{Duration{7}});
}

TEST(Stamps, AnHourOfALocalClockIsRepeatedAndOneIsSkipped) {
  const ScopedZone zone(kBerlin);
  const auto autumn = instants_of(parse_calendar_time("2026-10-25 02:30:00").value());
  EXPECT_EQ(autumn.first, parse_calendar_time("2026-10-25 00:30:00"));
  EXPECT_EQ(autumn.last, parse_calendar_time("2026-10-25 01:30:00"));
  EXPECT_FALSE(instants_of(parse_calendar_time("2026-03-29 02:30:00").value()).any);
}

}  // namespace
}  // namespace jouleprof::importers
