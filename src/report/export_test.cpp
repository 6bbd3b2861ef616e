// CSV and JSON Lines: of a profile, of a recording's samples, in AIPowerMeter's form.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <locale>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "report/csv/readings_csv.h"
#include "report/example_profiles_test.h"
#include "report/foreign/aipowermeter.h"
#include "report/format/format.h"
#include "report/json/live_json.h"
#include "report/snapshot.h"

namespace jouleprof::report {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  for (const auto line : split(csv, '\n')) {
    if (line.empty()) continue;
    const auto fields = split_csv(line);
    EXPECT_TRUE(fields.has_value()) << line;
    if (fields) rows.push_back(*fields);
  }
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  return rows;
}

std::size_t column(const std::vector<std::string>& header, std::string_view name) {
  const auto it = std::find(header.begin(), header.end(), name);
  EXPECT_NE(it, header.end()) << name;
  return static_cast<std::size_t>(it - header.begin());
}

// A second of 100 W, then a second of 300 W, on GPU 0, and 50 W on a package; one process.
model::Recording recording() {
  model::Recording r;
  r.run = run_info({"train"}, 2);
  r.clock_points = {{at(100), kStart, {}}};
  r.domains = {domain(0, model::DomainKind::kGpu, "gpu0").domain,
               domain(1, model::DomainKind::kCpu, "package-0").domain};
  model::Sensor ring{model::SensorId{0},
                     model::DomainId{0},
                     model::SensorKind::kPowerRing,
                     "ring, \"20 ms\"",
                     model::Provenance::kSimulated,
                     {}};
  model::Sensor counter{
      model::SensorId{1}, model::DomainId{1},           model::SensorKind::kEnergyCounter,
      "powercap",         model::Provenance::kMeasured, {}};
  model::Sensor gauge{model::SensorId{2},           model::DomainId{0},
                      model::SensorKind::kGauge,    "temperature_celsius",
                      model::Provenance::kMeasured, {}};
  r.sensors = {ring, counter, gauge};
  r.readings.powers = {{model::SensorId{0}, at(101), Power::watts(100.5)},
                       {model::SensorId{0}, at(99.5), Power::watts(60)},
                       {model::SensorId{0}, at(102), Power::watts(std::nan(""))}};
  r.readings.counters = {{model::SensorId{1}, at(100), at(100.0025), Energy::microjoules(1)}};
  r.readings.gauges = {{model::SensorId{2}, at(101), 41}};
  model::Process p;
  p.id = model::ProcessId{7};
  p.pid = 4711;
  p.in_tree = true;
  model::Process other = p;
  other.id = model::ProcessId{8};
  other.pid = 5000;
  other.in_tree = false;
  r.processes = {p, other};
  for (int i = 0; i <= 2; ++i) {
    model::ProcessReading use;
    use.process = p.id;
    use.at = at(100 + i);
    use.cpu_time = duration_of(0.5 * i);
    use.pss_bytes = 1000;
    r.process_readings.processes.push_back(use);
    use.process = other.id;
    r.process_readings.processes.push_back(use);
    r.process_readings.machine.push_back(
        {at(100 + i), duration_of(2 * i), duration_of(8 * i), 4000});
    r.process_readings.gpu_processes.push_back({p.id, model::DomainId{0}, at(100 + i), 0.6, 500});
    r.process_readings.gpu_processes.push_back(
        {other.id, model::DomainId{0}, at(100 + i), 0.2, 70});
  }
  return r;
}

std::vector<PowerCurve> curves() {
  return {{model::DomainId{0},
           {{at(100), at(101), Power::watts(100)}, {at(101), at(102), Power::watts(300)}}},
          {model::DomainId{1}, {{at(99), at(103), Power::watts(50)}}}};
}

// 300 of the GPU's 400 J are the process's.
std::vector<model::ProcessProfile> shares(const model::Recording& r) {
  model::ProcessProfile p;
  p.process = r.processes[0];
  p.shares.push_back({model::DomainId{0}, Energy::joules(300), {}, {}, {}});
  return {p};
}

std::vector<json> aipowermeter_lines(const model::Recording& r, const std::vector<PowerCurve>& c,
                                     Duration period,
                                     const std::vector<model::ProcessProfile>& p = {}) {
  std::ostringstream out;
  EXPECT_TRUE(write_aipowermeter(out, r, c, p, period));
  const std::string text = out.str();
  std::vector<json> lines;
  for (const auto line : split(text, '\n')) {
    if (!line.empty()) lines.push_back(json::parse(line));
  }
  return lines;
}

TEST(ProfileCsv, OneRowADomainWithEmptyFieldsForWhatIsAbsent) {
  const auto rows = rows_of(to_csv(lost_profile()));
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_EQ(rows[1][column(rows[0], "energy_joules")], "2612004.250000");
  EXPECT_EQ(rows[1][column(rows[0], "interval_low_joules")], "2481404.250000");
  EXPECT_EQ(rows[2][column(rows[0], "energy_joules")], "");
  EXPECT_EQ(rows[2][column(rows[0], "mean_watts")], "");
  EXPECT_EQ(rows[2][column(rows[0], "provenance")], "unavailable");
  EXPECT_THAT(rows[2][column(rows[0], "reason")], HasSubstr("GPU is lost"));
  EXPECT_EQ(rows[3][column(rows[0], "visible")], "false");
  EXPECT_EQ(rows_of(to_csv(gpu_profile()))[3][column(rows[0], "parent")], "package-0");
  EXPECT_EQ(rows_of(to_csv(model::Profile{})).size(), 1u);
}

TEST(ProfileCsv, FieldsSurviveAnyName) {
  auto profile = gpu_profile();
  profile.domains[0].domain.name = "a,b \"c\"\nd\x1b[2J\xFF";
  profile.processes[0].process.command_line = "sh -c \"x, y\"\r\n";
  const auto rows = rows_of(to_csv(profile));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1][2], "a,b \"c\" d\xEF\xBF\xBD[2J\xEF\xBF\xBD");
  const auto processes = rows_of(processes_to_csv(profile));
  ASSERT_EQ(processes.size(), 9u);
  EXPECT_EQ(processes[1][4], "sh -c \"x, y\"  ");
  EXPECT_EQ(processes[1][column(processes[0], "gpu0_joules")], "18161.260000");
  EXPECT_EQ(processes[1][column(processes[0], "energy_joules")], "21155.360000");
  EXPECT_EQ(processes[2][column(processes[0], "gpu0_joules")], "");
  EXPECT_EQ(processes[1][column(processes[0], "own_pid")], "");
}

// A locale whose decimal mark is a comma and whose thousands are set apart.
struct CommaNumbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Locale, ADecimalCommaChangesNothing) {
  const auto everything = [] {
    std::ostringstream samples;
    write_power_csv(samples, recording());
    write_counter_csv(samples, recording());
    write_gauge_csv(samples, recording());
    EXPECT_TRUE(write_aipowermeter(samples, recording(), curves(), shares(recording())));
    model::Snapshot snapshot;
    auto& gpu = snapshot.domains.emplace_back();
    gpu.domain.device = "gpu1000";
    gpu.provenance = model::Provenance::kMeasured;
    gpu.power = Power::watts(1312.5);
    auto dmon = DmonTable::create({.select = "p", .time = "DT", .interval = Duration{1}});
    const auto profile = lost_profile();
    return to_text(profile) + to_json(profile) + to_csv(profile) + processes_to_csv(profile) +
           samples.str() + snapshot_csv_rows(snapshot) + monitor_table_rows(snapshot) +
           snapshot_json_line(snapshot) + dmon->rows(snapshot) + live_line(snapshot, 80);
  };
  const std::string plain = everything();
  const std::locale before = std::locale::global(std::locale(std::locale(), new CommaNumbers));
  const char* c_before = std::setlocale(LC_ALL, nullptr);
  const std::string c_name = c_before != nullptr ? c_before : "C";
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  }
  const std::string with_commas = everything();
  std::setlocale(LC_ALL, c_name.c_str());
  std::locale::global(before);
  EXPECT_EQ(with_commas, plain);
}

TEST(ExportSamples, PowersInOrderOfTimeWithExactStamps) {
  std::ostringstream out;
  auto r = recording();
  r.domains[0].name = "NVIDIA H200";
  write_power_csv(out, r);
  EXPECT_EQ(
      out.str(),
      "time_unix_seconds,time_seconds,device,domain,sensor,power_watts,provenance,name,"
      "work_begin_unix_seconds,work_end_unix_seconds\n"
      "1795183390.750000000,-0.500000000,gpu0,gpu,\"ring, \"\"20 ms\"\"\",60,simulated,NVIDIA H200,"
      "1795183391.250000000,1795183393.250000000\n"
      "1795183392.250000000,1.000000000,gpu0,gpu,\"ring, \"\"20 ms\"\"\",100.5,simulated,NVIDIA "
      "H200,"
      "1795183391.250000000,1795183393.250000000\n"
      "1795183393.250000000,2.000000000,gpu0,gpu,\"ring, \"\"20 ms\"\"\",,simulated,NVIDIA H200,"
      "1795183391.250000000,1795183393.250000000\n");
}

TEST(ExportSamples, CountersAndGauges) {
  std::ostringstream out;
  auto r = recording();
  r.clock_points.clear();
  write_counter_csv(out, r);
  write_gauge_csv(out, r);
  EXPECT_EQ(
      out.str(),
      "time_unix_seconds,time_seconds,device,domain,sensor,read_seconds,energy_joules,provenance,"
      "name,work_begin_unix_seconds,work_end_unix_seconds\n"
      ",0.002500000,package-0,cpu,powercap,0.002500000,0.000001,measured,,,\n"
      "time_unix_seconds,time_seconds,device,domain,quantity,value,provenance,name,"
      "work_begin_unix_seconds,work_end_unix_seconds\n"
      ",1.000000000,gpu0,gpu,temperature_celsius,41,measured,,,\n");
}

TEST(ExportSamples, AnEmptyRecordingHasAHeader) {
  std::ostringstream out;
  write_power_csv(out, model::Recording{});
  EXPECT_EQ(rows_of(out.str()).size(), 1u);
}

TEST(AiPowerMeter, TheTrapezoidRuleGivesBackTheEnergy) {
  // 3 points, and a period that does not divide the span.
  for (const auto period : {std::chrono::milliseconds(1000), std::chrono::milliseconds(300)}) {
    const auto lines = aipowermeter_lines(recording(), curves(), period);
    const std::size_t points = lines.size() - 1;
    double gpu = 0;
    double package = 0;
    for (std::size_t i = 0; i < points; ++i) {
      const double weight =
          (i == 0 || i + 1 == points ? 0.5 : 1) * 2.0 / static_cast<double>(points - 1);
      gpu += weight * lines[i]["metrics"]["gpu"]["nvidia_draw_absolute"].get<double>();
      package += weight * lines[i]["metrics"]["cpu"]["intel_power"].get<double>();
    }
    EXPECT_NEAR(gpu, 400, 1e-4);
    EXPECT_NEAR(package, 100, 1e-4);
  }
}

TEST(AiPowerMeter, AGpuThatIsLostLeavesTheOthers) {
  model::Recording two = recording();
  two.domains.push_back(domain(2, model::DomainKind::kGpu, "gpu1").domain);
  auto drawn = curves();
  drawn.push_back({model::DomainId{2}, {{at(100), at(101), Power::watts(70)}}});
  const auto lines = aipowermeter_lines(two, drawn, std::chrono::seconds(1));
  const json& before = lines[0]["metrics"]["gpu"];
  const json& after = lines[lines.size() - 2]["metrics"]["gpu"];
  EXPECT_EQ(before["per_gpu_power_draw"], json({{"0", 100.0}, {"1", 70.0}}));
  EXPECT_EQ(before["nvidia_draw_absolute"], 170.0);
  EXPECT_EQ(after["per_gpu_power_draw"], json({{"0", 300.0}}));
  EXPECT_FALSE(after.contains("nvidia_draw_absolute"));
}

TEST(AiPowerMeter, HasTheFieldsThatItsReaderLooksFor) {
  setenv("TZ", "UTC", 1);
  tzset();
  const auto lines =
      aipowermeter_lines(recording(), curves(), std::chrono::seconds(1), shares(recording()));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["date"], "2026-11-20 14:03:11.250000");
  EXPECT_EQ(lines[2]["date"], "2026-11-20 14:03:13.250000");
  EXPECT_EQ(lines[0]["provenance"], json({{"cpu", "measured"}, {"gpu", "simulated"}}));
  EXPECT_EQ(lines[3], "END OF RECORDING SEGMENT");
  const json& gpu = lines[1]["metrics"]["gpu"];
  EXPECT_EQ(gpu["per_gpu_power_draw"], json({{"0", 200.0}}));
  EXPECT_EQ(gpu["per_gpu_attributable_mem_use"], json({{"0", {{"4711", 500}}}}));
  EXPECT_EQ(gpu["per_gpu_per_pid_utilization_absolute"]["0"], json({{"4711", 0.6}, {"5000", 0.2}}));
  EXPECT_EQ(gpu["per_gpu_absolute_percent_usage"]["0"], 0.6);
  EXPECT_EQ(gpu["per_gpu_estimated_attributable_utilization"]["0"], 0.75);
  EXPECT_EQ(gpu["per_gpu_attributable_power"], json({{"0", 150.0}, {"all", 150.0}}));
  const json& cpu = lines[1]["metrics"]["cpu"];
  EXPECT_EQ(cpu["per_process_mem_use_abs"], json({{"4711", 1000}}));
  EXPECT_EQ(cpu["per_process_mem_use_percent"]["4711"], 0.25);
  EXPECT_EQ(cpu["per_process_cpu_uses"]["4711"], 0.25);
}

TEST(AiPowerMeter, WhatIsAbsentIsLeftOutAndNeverZero) {
  auto r = recording();
  r.run.complete = false;
  r.process_readings.clear();
  const auto lines = aipowermeter_lines(r, {curves()[0]}, std::chrono::seconds(1));
  ASSERT_EQ(lines.size(), 3u);
  for (const json& line : lines) {
    EXPECT_FALSE(line["metrics"].contains("cpu"));
    EXPECT_TRUE(line["metrics"]["gpu"]["per_gpu_attributable_power"]["all"].is_null());
    EXPECT_EQ(line.dump().find("-1,"), std::string::npos);
  }
  // A curve with a hole: a segment before and one after it, each from end to end.
  auto holed = curves();
  holed.resize(1);
  holed[0].steps = {{at(100), at(100.4), Power::watts(100)},
                    {at(101.6), at(102), Power::watts(100)}};
  const auto with_hole = aipowermeter_lines(r, holed, std::chrono::seconds(1));
  ASSERT_EQ(with_hole.size(), 5u);
  EXPECT_EQ(with_hole[2], "END OF RECORDING SEGMENT");
  EXPECT_EQ(with_hole[1]["date"], "2026-11-20 14:03:11.650000");
  EXPECT_EQ(with_hole[3]["date"], "2026-11-20 14:03:12.850000");
}

// As AIPowerMeter's reader computes it: trapezoids within a segment, of what a line has.
double reader_joules(const std::vector<json>& lines, const std::vector<std::string>& keys) {
  double sum = 0;
  std::optional<std::pair<double, double>> last;
  for (const json& line : lines) {
    const json* value = line.is_object() ? &line["metrics"] : nullptr;
    for (const auto& key : keys) {
      value = value != nullptr && value->contains(key) ? &(*value)[key] : nullptr;
    }
    if (value == nullptr || !value->is_number()) {
      last.reset();
      continue;
    }
    const std::string clock = line["date"].get<std::string>().substr(11);
    const double at = 3600 * std::stod(clock.substr(0, 2)) + 60 * std::stod(clock.substr(3, 2)) +
                      std::stod(clock.substr(6));
    const double watts = value->get<double>();
    if (last) sum += (at - last->first) * (watts + last->second) / 2;
    last = {at, watts};
  }
  return sum;
}

TEST(AiPowerMeter, ItsReaderFindsTheEnergyOfSegmentsAndOfProcessesThatComeAndGo) {
  auto r = recording();
  r.processes[0].start = at(100.5);
  r.processes[0].end = at(101.2);
  r.process_readings.processes.resize(2);  // of the first second only
  r.process_readings.gpu_processes.resize(2);
  auto holed = curves();
  holed[0].steps = {{at(100), at(100.9), Power::watts(100)},
                    {at(101.1), at(102), Power::watts(300)}};
  for (const auto period : {std::chrono::milliseconds(1000), std::chrono::milliseconds(150)}) {
    const auto lines = aipowermeter_lines(r, holed, period, shares(r));
    EXPECT_NEAR(reader_joules(lines, {"gpu", "nvidia_draw_absolute"}), 0.9 * 100 + 0.9 * 300, 0.1);
    EXPECT_NEAR(reader_joules(lines, {"gpu", "per_gpu_attributable_power", "all"}), 300, 0.1);
    EXPECT_NEAR(reader_joules(lines, {"cpu", "intel_power"}), 100, 0.1);
  }
}

// The machine slept for ten seconds, or its clock was set.
TEST(AiPowerMeter, AStepOfTheClockEndsASegment) {
  auto r = recording();
  r.clock_points = {{at(100), kStart, {}},
                    {at(101), kStart + std::chrono::seconds{11}, {}},
                    {at(102), kStart + std::chrono::seconds{12}, {}}};
  const auto lines = aipowermeter_lines(r, curves(), std::chrono::milliseconds(500));
  EXPECT_NEAR(reader_joules(lines, {"gpu", "nvidia_draw_absolute"}), 400, 0.1);
}

TEST(AiPowerMeter, HasEveryGpuKeyThatARealFileHas) {
  const std::filesystem::path real =
      JOULEPROF_SOURCE_DIR "/../shared/data/peers/aipowermeter/example_data.power_metrics.json";
  const auto text = read_file(real);
  if (!text) GTEST_SKIP() << "no file of AIPowerMeter here (" << real << ")";
  const json theirs = json::parse(split(*text, '\n')[0]);
  const json ours =
      aipowermeter_lines(recording(), curves(), std::chrono::seconds(1), shares(recording()))[1];
  for (const auto& [key, value] : theirs["metrics"]["gpu"].items()) {
    ASSERT_TRUE(ours["metrics"]["gpu"].contains(key)) << key;
    EXPECT_EQ(ours["metrics"]["gpu"][key].is_object(), value.is_object()) << key;
  }
  EXPECT_TRUE(ours["metrics"]["cpu"]["intel_power"].is_number());
}

TEST(AiPowerMeter, NothingToWriteIsAnError) {
  std::ostringstream out;
  const auto none = write_aipowermeter(out, recording(), {}, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kUnavailable);
  EXPECT_EQ(write_aipowermeter(out, recording(), curves(), {}, Duration{}).error().code,
            Errc::kInvalidArgument);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace jouleprof::report
