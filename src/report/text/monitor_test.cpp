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
#include "report/csv/readings_csv.h"
#include "report/json/live_json.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// 2026-08-16 09:22:34.125 UTC.
constexpr RealTime kTime{std::chrono::nanoseconds{1786872154125000000}};

model::Measurement measured(double joules) {
  return {Energy::joules(joules),       Energy::joules(1), Energy::joules(0.1),
          model::Provenance::kMeasured, "sensor",          "method"};
}

model::DomainSnapshot h100(unsigned index = 0) {
  model::DomainSnapshot d;
  d.domain.kind = model::DomainKind::kGpu;
  d.domain.device = "gpu" + std::to_string(index);
  d.domain.name = "NVIDIA H100 80GB HBM3";
  d.provenance = model::Provenance::kMeasured;
  d.energy = measured(1234.5);
  d.power = Power::watts(630.6);
  d.age = std::chrono::milliseconds(125);
  d.gauges = {{"temperature_celsius", 63},      {"memory_temperature_celsius", 57},
              {"gpu_utilisation_ratio", 1.0},   {"memory_utilisation_ratio", 0.1},
              {"encoder_utilisation_ratio", 0}, {"decoder_utilisation_ratio", 0},
              {"jpeg_utilisation_ratio", 0},    {"ofa_utilisation_ratio", 0},
              {"memory_clock_hertz", 2619e6},   {"sm_clock_hertz", 1980e6}};
  return d;
}

model::DomainSnapshot package() {
  model::DomainSnapshot d;
  d.domain.kind = model::DomainKind::kCpu;
  d.domain.device = "cpu";
  d.provenance = model::Provenance::kEstimated;
  d.power = Power::watts(35.04);
  return d;
}

model::Snapshot snapshot(unsigned gpus = 1) {
  model::Snapshot s;
  s.time = kTime;
  s.elapsed = std::chrono::seconds(83);
  for (unsigned i = 0; i < gpus; ++i) s.domains.push_back(h100(i));
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
  d.gauges["memory_used_bytes"] = 81559.0 * 1048576;
  d.gauges["clock_event_reasons"] = 0x40;
  EXPECT_EQ(dmon.row(kTime, d),
            " 20260816    09:22:34       0    631     63     57    100     10      0      0      0"
            "      0   2619   1980      -      1  81559      -      -      -      -      -      -"
            "      - \n");
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
  model::DomainSnapshot d;
  d.domain.kind = model::DomainKind::kGpu;
  d.domain.device = "gpu11";
  d.gauges["temperature_celsius"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(table({.select = "p"}).row(kTime, d), "   11      -      -      - \n");
}

TEST(Dmon, HeaderComesAgainAndOnlyGpusHaveRows) {
  auto dmon = table({.select = "p"});
  auto s = snapshot();
  s.domains.push_back(package());
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
  s.domains[0].domain.name = "a, \"b\"";
  s.domains[0].gauges.erase("memory_temperature_celsius");
  s.domains[0].gauges["clock_event_reasons"] = 0x24;
  const auto header = split_csv(trim(snapshot_csv_header()));
  const auto row = split_csv(trim(snapshot_csv_rows(s)));
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
  EXPECT_EQ(field("thermal_violation"), "1");
  EXPECT_EQ(field("clock_limits"), "power_limit software_thermal");
  EXPECT_EQ(field("age_seconds"), "0.125000000");
}

TEST(MonitorJson, OneObjectALineWithNullForAbsent) {
  auto s = snapshot(2);
  s.domains[1].power.reset();
  s.domains[1].domain.name = "bad\xFF\n";
  const std::string line = snapshot_json_line(s);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const json j = json::parse(line);
  EXPECT_EQ(j["devices"][0]["power_watts"], 630.6);
  EXPECT_TRUE(j["devices"][1]["power_watts"].is_null());
  EXPECT_EQ(j["devices"][0]["provenance"], "measured");
  EXPECT_EQ(j["devices"][0]["energy_joules"], 1234.5);
  EXPECT_EQ(j["devices"][0]["interval_joules"], (json{1233.5, 1235.5}));
  EXPECT_TRUE(j["devices"][0]["clock_limits"].is_null());
  EXPECT_EQ(json::parse(snapshot_json_line({}))["devices"], json::array());
}

TEST(MonitorTable, ForPeople) {
  use_utc();
  auto s = snapshot();
  s.domains.push_back(package());
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
  s.domains[1].energy.reset();
  EXPECT_THAT(live_line(s, 80), Not(HasSubstr("kJ")));
  s.domains[1].power.reset();
  EXPECT_EQ(live_line(s, 80), "83 s  gpu0 630.6 W  gpu1 -  at least 1.234 kJ");
}

TEST(LiveLine, KeepsTheEnergyOfALostDevice) {
  auto s = snapshot(2);
  s.domains[1].power.reset();
  EXPECT_EQ(live_line(s, 80), "83 s  gpu0 630.6 W  gpu1 -  at least 2.469 kJ");
}

TEST(LiveLine, ShowsWhatTheCommandSeesAndAddsNothingTwice) {
  auto s = snapshot(3);
  s.domains[1].domain.visible = false;
  s.domains[2].domain.kind = model::DomainKind::kModule;  // contains the first
  auto cores = package();
  cores.domain.parent = model::DomainId{0};
  s.domains.push_back(cores);
  EXPECT_EQ(live_line(s, 80), "83 s  gpu0 630.6 W  gpu2 630.6 W  1.234 kJ");
}

TEST(SnapshotRows, AreDevicesWithASensor) {
  auto s = snapshot(2);
  s.domains[1].domain.unavailable_reason = "cannot be read";
  auto memory = h100();
  memory.domain.parent = model::DomainId{0};
  s.domains.push_back(memory);
  s.domains.emplace_back();  // no sensor
  EXPECT_EQ(rows_of(s).size(), 1u);
  EXPECT_EQ(json::parse(snapshot_json(s))["devices"].size(), 4u);
}

TEST(LiveLine, SaysWhatIsNotMeasured) {
  auto s = snapshot(12);
  s.domains[11].provenance = model::Provenance::kSimulated;
  EXPECT_THAT(live_line(s, 40), HasSubstr("SIMULATED"));
  s = snapshot(1);
  s.domains[0].provenance = model::Provenance::kEstimated;
  EXPECT_EQ(live_line(s, 80), "83 s  gpu0 630.6 W ESTIMATED  1.234 kJ");
  s.domains[0].domain.device = "\x1b[2J\n";
  EXPECT_EQ(live_line(s, 80).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace jouleprof::report
