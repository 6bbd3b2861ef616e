#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "importers/import.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

using namespace std::chrono_literals;
using model::WallLog;
using testing::ElementsAre;
using testing::HasSubstr;

RealTime at(double seconds) { return RealTime{duration_of(seconds)}; }

WallLog read(const std::string& text, const std::string& column = "") {
  auto log = read_wall_log(text, "wall.log", column);
  EXPECT_TRUE(log) << log.error().message;
  return log.value_or(WallLog{});
}

std::string error(const std::string& text, const std::string& column = "") {
  const auto log = read_wall_log(text, "wall.log", column);
  EXPECT_FALSE(log);
  return log ? "" : log.error().message;
}

TEST(WallTime, HasSecondsMillisecondsAndZones) {
  const RealTime expected{1671527189s + 314471465ns};
  EXPECT_EQ(parse_utc_time("1671527189.314471465"), expected);
  EXPECT_EQ(parse_utc_time("1671527189314"), RealTime{1671527189314ms});
  EXPECT_EQ(parse_utc_time("2022-12-20T09:06:29.314471465Z"), expected);
  EXPECT_EQ(parse_utc_time("2022-12-20 09:06:29.314471465"), expected);
  EXPECT_EQ(parse_utc_time("2022-12-20T10:06:29.314471465+01:00"), expected);
  EXPECT_EQ(parse_utc_time("2022-12-20T03:36:29.314471465-0530"), expected);
  EXPECT_EQ(parse_utc_time("yesterday"), std::nullopt);
  EXPECT_EQ(parse_utc_time("1671527189314471"), RealTime{1671527189314471us});
  EXPECT_EQ(parse_utc_time("1671527189314471465"), RealTime{1671527189314471465ns});
  EXPECT_EQ(parse_utc_time("1671527189314.5"), RealTime{1671527189314500us});
  EXPECT_EQ(parse_utc_time("2022-12-20T10:06:29+1"), std::nullopt);
  EXPECT_EQ(parse_utc_time("Tue Dec 20 09:06:29 2022"), RealTime{1671527189s});
  EXPECT_EQ(parse_utc_time("Tue Dec  6 09:06:29 2022"), RealTime{1670317589s});
  EXPECT_EQ(parse_utc_time("Tue Foo 20 09:06:29 2022"), std::nullopt);
}

constexpr const char* kWattmetre =
    "#timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#activepow1,#current2,#activepow2\n"
    "1671527189.294241015,false,,,,,,,\n"
    "1671527189.314471465,true,232.3,0.0,0.0,0.1,20.9,0.0,0.0\n"
    "1671527189.324185946,true,233.0,0.0,0.0,0.1,21.0,0.0,0.0\n"
    "1671527189.334488177,true,233.0,0.0,0.0,0.1,21.5,0.0,0.0\n";

TEST(WallLog, OfWattmetreReadHasTheSocketThatDrawsPower) {
  const auto log = read(kWattmetre);
  EXPECT_EQ(log.format, "wattmetre-read");
  EXPECT_EQ(log.column, "activepow1");
  ASSERT_EQ(log.readings.size(), 3u);
  EXPECT_EQ(log.readings[0], (WallLog::Reading{RealTime{1671527189s + 314471465ns}, 20.9}));
  EXPECT_EQ(log.readings[2].watts, 21.5);
  // What the program wrote before, and a line that was cut off.
  const auto more = read("tty opened\n" + std::string(kWattmetre) + "1671527189.344,tr");
  EXPECT_EQ(more.readings, log.readings);
  EXPECT_THAT(more.warnings, ElementsAre(HasSubstr("line 7")));
}

TEST(WallLog, AsksForTheSocketWhereSeveralDrawPower) {
  const std::string two =
      "#timestamp,#frame_is_ok,#activepow1,#activepow2\n1,true,20,30\n2,true,21,31\n";
  EXPECT_THAT(error(two), HasSubstr("--wall-column: #activepow1, #activepow2"));
  EXPECT_EQ(read(two, "activepow2").readings[1].watts, 31);
  EXPECT_EQ(read(two, "#activepow1").readings[1].watts, 21);
  EXPECT_THAT(error(two, "activepow7"), HasSubstr("no column of power 'activepow7'"));
}

TEST(WallLog, OfACsvFileHasItsColumns) {
  const auto log = read(
      "time,power_watts\n2022-12-20T09:06:29Z,100\n2022-12-20T09:06:30Z,\n"
      "2022-12-20T09:06:31Z,102.5\n");
  EXPECT_EQ(log.format, "csv");
  EXPECT_EQ(log.column, "power_watts");
  EXPECT_THAT(log.readings, ElementsAre(WallLog::Reading{RealTime{1671527189s}, 100},
                                        WallLog::Reading{RealTime{1671527191s}, 102.5}));
  EXPECT_THAT(error("time,power_watts\nnoon,1\n"), HasSubstr("line 2: 'noon' is no time"));
  EXPECT_THAT(error("time,power_watts\n1,-4\n"), HasSubstr("line 2: -4 W"));
  EXPECT_THAT(error("time,power_watts\n1,much\n"), HasSubstr("'much' is no power"));
  EXPECT_THAT(error("a,b\n1,2\n"), HasSubstr("not recognised"));
  EXPECT_THAT(error("time,power_watts\n1,2\n"), HasSubstr("fewer than two readings"));
}

TEST(WallLog, ARowThatCannotBeRightIsLeftOutAndCounted) {
  const std::string begin = "time,power_watts\n1671527189,100\n1671527190,101\n";
  for (const char* row :
       {"noon,1", "1671527191,-4", "1671527191,1e9", "1671527191,much", "\"1671527191,4", "-"}) {
    SCOPED_TRACE(row);
    const auto log = read(begin + row + "\n1671527192,102\n");
    EXPECT_EQ(log.readings.size(), 3u);
    EXPECT_THAT(log.warnings,
                ElementsAre(HasSubstr("1 row left out that cannot be right; the first is line 4")));
  }
  // Of another column.
  const auto log = read("time,a watts,b watts\n1671527189,100,7\n1671527190,101,oops\n", "a watts");
  EXPECT_EQ(log.readings.size(), 2u);
  EXPECT_TRUE(log.warnings.empty());
}

std::string ipmi(const std::string& before, int watts, const std::string& time) {
  return before + "\n    Instantaneous power reading:                   " + std::to_string(watts) +
         " Watts\n    Minimum during sampling period:                 18 Watts\n"
         "    Maximum during sampling period:                304 Watts\n"
         "    Average power reading over sample period:      219 Watts\n"
         "    IPMI timestamp:                           " +
         time +
         "\n    Sampling period:                          00000001 Seconds.\n"
         "    Power reading state is:                   activated\n\n";
}

TEST(WallLog, OfIpmiHasTheTimeBeforeEachReading) {
  const auto log = read(ipmi("1671527189.5", 220, "Tue Dec 20 10:00:00 2022") +
                        ipmi("1671527190.5", 230, "Tue Dec 20 10:00:01 2022"));
  EXPECT_EQ(log.format, "ipmi");
  EXPECT_THAT(log.readings, ElementsAre(WallLog::Reading{at(1671527189.5), 220},
                                        WallLog::Reading{at(1671527190.5), 230}));
  EXPECT_TRUE(log.warnings.empty());
}

TEST(WallLog, OfIpmiAloneHasTheBmcsTime) {
  const auto log =
      read(ipmi("", 220, "Tue Dec 20 09:06:29 2022") + ipmi("", 220, "Tue Dec 20 09:06:29 2022") +
           ipmi("", 230, "Tue Dec 20 09:06:30 2022"));
  EXPECT_THAT(log.readings, ElementsAre(WallLog::Reading{RealTime{1671527189s}, 220},
                                        WallLog::Reading{RealTime{1671527190s}, 230}));
  EXPECT_THAT(log.warnings, ElementsAre(HasSubstr("BMC's clock")));
  EXPECT_THAT(error(ipmi("", 220, "unknown")), HasSubstr("'unknown' is no time"));
  const auto broken = read(ipmi("", 220, "Tue Dec 20 09:06:29 2022") + ipmi("", 220, "unknown") +
                           ipmi("", 230, "Tue Dec 20 09:06:30 2022"));
  EXPECT_EQ(broken.readings.size(), 2u);
  EXPECT_THAT(broken.warnings, testing::Contains(HasSubstr("1 row left out")));
}

TEST(WallLog, OfRedfishHasPowerControlOrEnvironmentMetrics) {
  const auto log =
      read(R"({"time": 1671527189, "PowerControl": [{"Name": "x", "PowerConsumedWatts": 344}]})"
           "\n"
           R"({"time": "2022-12-20T09:06:30Z", "body": {"PowerWatts": {"Reading": 350.5}}})"
           "\n"
           R"({"time": 1671527191, "PowerControl": [{"PowerConsumedWatts": null}]})"
           "\n");
  EXPECT_EQ(log.format, "redfish");
  EXPECT_THAT(log.readings, ElementsAre(WallLog::Reading{RealTime{1671527189s}, 344},
                                        WallLog::Reading{RealTime{1671527190s}, 350.5}));
  EXPECT_THAT(error(R"({"PowerConsumedWatts": 3})"
                    "\n"),
              HasSubstr("no time"));
  EXPECT_THAT(error("{\n"), HasSubstr("line 1: no JSON"));
  const auto broken = read(
      "{\"time\": 1, \"PowerConsumedWatts\": 3}\n{]\n{\"PowerConsumedWatts\": 3}\n"
      "{\"time\": 2, \"PowerConsumedWatts\": 4}\n");
  EXPECT_EQ(broken.readings.size(), 2u);
  EXPECT_THAT(broken.warnings, ElementsAre(HasSubstr("2 rows left out")));
}

TEST(WallLog, TheUnitOfAColumnIsInItsName) {
  for (const auto& [name, cell] :
       std::map<std::string, std::string>{{"power [kW]", "0.6"},
                                          {"Power (kW)", "0.6"},
                                          {"power_kw", "0.6"},
                                          {"node_power_kilowatts", "0.6"},
                                          {"power_mw", "600000"},
                                          {"power (mW)", "600000"},
                                          {"power_MW", "0.0006"},
                                          {"power_watts", "600"},
                                          {"power_w", "600"},
                                          {"power [W]", "600"}}) {
    const auto log = read("time," + name + "\n100," + cell + "\n101," + cell + "\n");
    ASSERT_EQ(log.readings.size(), 2U) << name;
    EXPECT_DOUBLE_EQ(log.readings[1].watts, 600) << name;
    EXPECT_EQ(log.column, name);
    EXPECT_EQ(read("time," + name + "\n100," + cell + "\n101," + cell + "\n", name).readings,
              log.readings);
  }
  EXPECT_THAT(error("time,power [kJ]\n100,1\n101,1\n"), HasSubstr("no column of power"));
  EXPECT_THAT(error("time,power_kWh\n100,1\n101,1\n"), HasSubstr("no column of power"));
  EXPECT_THAT(error("time,power [kJ]\n100,1\n101,1\n", "power [kJ]"),
              HasSubstr("is of no power; name a column in W, kW or mW"));
}

}  // namespace
}  // namespace jouleprof::importers
