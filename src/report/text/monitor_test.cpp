// What the monitor prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "report/cells.h"
#include "report/foreign/dmon.h"
#include "report/text/live_line.h"
#include "report/text/monitor_table.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// 2026-08-16 09:22:34.125 UTC.
constexpr RealTime kTime{std::chrono::nanoseconds{1786872154125000000}};

DeviceSnapshot h100() {
  DeviceSnapshot d;
  d.kind = model::DomainKind::kGpu;
  d.device = "gpu0";
  d.index = 0;
  d.name = "NVIDIA H100 80GB HBM3";
  d.energy = Energy::joules(1234.5);
  d.power_watts = 630.6;
  d.temperature_celsius = 63;
  d.memory_temperature_celsius = 57;
  d.utilisation_ratio = 1.0;
  d.memory_utilisation_ratio = 0.1;
  d.encoder_utilisation_ratio = 0;
  d.decoder_utilisation_ratio = 0;
  d.jpeg_utilisation_ratio = 0;
  d.ofa_utilisation_ratio = 0;
  d.memory_clock_hertz = 2619e6;
  d.sm_clock_hertz = 1980e6;
  return d;
}

Snapshot snapshot(unsigned gpus = 1) {
  Snapshot s;
  s.time = kTime;
  s.elapsed = std::chrono::seconds(83);
  for (unsigned i = 0; i < gpus; ++i) {
    s.devices.push_back(h100());
    s.devices.back().device = "gpu" + std::to_string(i);
    s.devices.back().index = i;
  }
  return s;
}

DmonTable table(DmonOptions options = {}) {
  auto made = DmonTable::create(options);
  EXPECT_TRUE(made.has_value());
  return *made;
}

void use_utc() {
  setenv("TZ", "UTC", 1);
  tzset();
}

constexpr const char* kHeader =
    "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk \n"
    "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz \n";

TEST(Dmon, LooksAsTheOriginalDoes) {
  EXPECT_EQ(
      table().rows(snapshot()),
      std::string(kHeader) +
          "    0    631     63     57    100     10      0      0      0      0   2619   1980 \n");
}

TEST(Dmon, HeaderIsThatOfARealCapture) {
  const std::filesystem::path capture = JOULEPROF_SOURCE_DIR
      "/../shared/data/peers/nvidia_smi_captures/"
      "linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt";
  const auto text = read_file(capture);
  if (!text) GTEST_SKIP() << "no capture of the original here (" << capture << ")";
  EXPECT_THAT(*text, HasSubstr(table().header()));
}

TEST(Dmon, AllGroupsWithDateAndTime) {
  use_utc();
  auto dmon = table({.select = "pucvmet", .time = "DT"});
  EXPECT_EQ(dmon.header(),
            "#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg"
            "    ofa   mclk   pclk  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci"
            "  txpci \n"
            "#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %      %      %      %"
            "      %    MHz    MHz      %   bool     MB     MB     MB   errs   errs   errs   MB/s"
            "   MB/s \n");
  auto d = h100();
  d.memory_used_bytes = 81559.0 * 1048576;
  d.pcie_transmit_bytes_per_second = 12.4e6;
  EXPECT_EQ(dmon.row(kTime, d),
            " 20260816    09:22:34       0    631     63     57    100     10      0      0      0"
            "      0   2619   1980      -      -  81559      -      -      -      -      -      -"
            "     12 \n");
}

TEST(Dmon, ColumnsComeInTheOrderOfTheLetters) {
  EXPECT_EQ(table({.select = "cp"}).header(),
            "# gpu   mclk   pclk    pwr  gtemp  mtemp \n"
            "# Idx    MHz    MHz      W      C      C \n");
}

TEST(Dmon, FinerIntervalsHaveFinerStamps) {
  use_utc();
  const auto d = h100();
  const auto fine = table({.select = "p", .time = "T", .interval = std::chrono::milliseconds(20)});
  EXPECT_EQ(fine.header(),
            "#Time          gpu    pwr  gtemp  mtemp \n"
            "#HH:MM:SS.mmm  Idx      W      C      C \n");
  EXPECT_EQ(fine.row(kTime, d), " 09:22:34.125    0    631     63     57 \n");
  const auto date = table({.select = "p", .time = "D"});
  EXPECT_EQ(date.row(kTime, d), " 20260816      0    631     63     57 \n");
}

TEST(Dmon, AbsentIsADash) {
  DeviceSnapshot d;
  d.kind = model::DomainKind::kGpu;
  d.index = 11;
  d.temperature_celsius = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(table({.select = "p"}).row(kTime, d), "   11      -      -      - \n");
}

TEST(Dmon, HeaderComesAgainAndOnlyGpusHaveRows) {
  auto dmon = table({.select = "p"});
  auto s = snapshot();
  s.devices.push_back({});
  s.devices.back().kind = model::DomainKind::kCpu;
  std::string text;
  for (int i = 0; i < 89; ++i) text += dmon.rows(s);
  std::vector<std::size_t> headers;
  const auto lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("# gpu")) headers.push_back(i + 1);
  }
  EXPECT_EQ(headers, (std::vector<std::size_t>{1, 47, 93}));  // as in logs of the original
  EXPECT_EQ(lines.size(), 89u + 6 + 1);
}

TEST(Dmon, UnknownLettersAreErrors) {
  for (const char* select : {"px", "pp", ""}) {
    const auto made = DmonTable::create({.select = select});
    ASSERT_FALSE(made.has_value()) << select;
    EXPECT_EQ(made.error().code, Errc::kInvalidArgument);
  }
  EXPECT_FALSE(DmonTable::create({.time = "X"}).has_value());
}

TEST(MonitorCsv, RowsHaveTheHeadersFields) {
  auto s = snapshot();
  s.devices[0].name = "a, \"b\"";
  s.devices[0].memory_temperature_celsius.reset();
  const auto header = split_csv(trim(monitor_csv_header()));
  const auto row = split_csv(trim(monitor_csv_rows(s)));
  ASSERT_TRUE(header && row);
  ASSERT_EQ(header->size(), row->size());
  const auto field = [&](std::string_view name) {
    const auto it = std::find(header->begin(), header->end(), name);
    return it == header->end() ? "no such column"
                               : (*row)[static_cast<std::size_t>(it - header->begin())];
  };
  EXPECT_EQ(field("time"), "2026-08-16T09:22:34.125000000Z");
  EXPECT_EQ(field("name"), "a, \"b\"");
  EXPECT_EQ(field("energy_joules"), "1234.500000");
  EXPECT_EQ(field("power_watts"), "630.6");
  EXPECT_EQ(field("memory_temperature_celsius"), "");
  EXPECT_EQ(field("encoder_utilisation_ratio"), "0");
}

TEST(MonitorJson, OneObjectALineWithNullForAbsent) {
  auto s = snapshot(2);
  s.devices[1].power_watts.reset();
  s.devices[1].name = "bad\xFF\n";
  const std::string line = monitor_json_line(s);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const json j = json::parse(line);
  EXPECT_EQ(j["devices"][0]["power_watts"], 630.6);
  EXPECT_TRUE(j["devices"][1]["power_watts"].is_null());
  EXPECT_EQ(j["devices"][0]["provenance"], "measured");
  EXPECT_EQ(json::parse(monitor_json_line({}))["devices"], json::array());
}

TEST(MonitorTable, ForPeople) {
  use_utc();
  auto s = snapshot();
  s.devices.push_back({});
  s.devices[1].kind = model::DomainKind::kCpu;
  s.devices[1].device = "cpu";
  s.devices[1].provenance = model::Provenance::kEstimated;
  s.devices[1].power_watts = 35.04;
  EXPECT_EQ(
      monitor_table_header() + monitor_table_rows(s),
      "time         device        power W    energy use %    memory deg C    MHz\n"
      "09:22:34.125 gpu0            630.6  1.234 kJ   100         -    63   1980  measured\n"
      "09:22:34.125 cpu              35.0         -     -         -     -      -  ESTIMATED\n");
}

TEST(LiveLine, ShowsWhatFits) {
  EXPECT_EQ(live_line(snapshot(2), 80), "83 s  gpu0 630.6 W  gpu1 630.6 W  2.469 kJ");
  EXPECT_EQ(live_line(snapshot(12), 54), "83 s  gpu0 630.6 W  gpu1 630.6 W  +10 more  14.81 kJ");
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(display_width(live_line(snapshot(12), width)), static_cast<std::size_t>(width));
  }
}

TEST(LiveLine, EnergyOnlyWhenAllOfItIsKnown) {
  auto s = snapshot(2);
  s.devices[1].energy.reset();
  EXPECT_THAT(live_line(s, 80), Not(HasSubstr("kJ")));
  s.devices[1].power_watts.reset();
  EXPECT_EQ(live_line(s, 80), "83 s  gpu0 630.6 W  gpu1 -  1.234 kJ");
}

TEST(LiveLine, SaysWhatIsNotMeasured) {
  auto s = snapshot(12);
  s.devices[11].provenance = model::Provenance::kSimulated;
  EXPECT_THAT(live_line(s, 40), HasSubstr("SIMULATED"));
  s = snapshot(1);
  s.devices[0].provenance = model::Provenance::kEstimated;
  EXPECT_EQ(live_line(s, 80), "83 s  gpu0 630.6 W ESTIMATED  1.234 kJ");
  s.devices[0].device = "\x1b[2J\n";
  EXPECT_EQ(live_line(s, 80).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace jouleprof::report
