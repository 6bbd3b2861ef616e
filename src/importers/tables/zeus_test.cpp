#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "importers/importers_fixture.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const std::string kLog =
    "Time,Power\n2026-11-21 03:00:00.000000000,50000\n2026-11-21 03:00:00.500000000,60000\n";

TEST(ZeusWindows, ATimeOfAnotherKindIsLeftOutAndCounted) {
  const auto recording = import_text(
      "start_time,window_name,elapsed_time,gpu0_energy\n1772420400.5,a,1.0,100\n12.5,b,1.0,100\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  EXPECT_FALSE(recording->imported_windows[1].begin);
  EXPECT_TRUE(has_warning(*recording, "the time of 1 window left out: it is of another kind"));
}

// A name takes what the other fields leave, but not the numbers of decimal commas.
TEST(ZeusWindows, DecimalCommasAreNoPartOfAName) {
  const std::string header = "start_time,window_name,elapsed_time,gpu0_energy\n";
  for (const std::string row :
       {"1700000000.0,step,10.0,2500,5\n", "1700000000.0,step,10,5,2500.5\n",
        "1700000000,5,step,10.0,2500.5\n"}) {
    EXPECT_THAT(import_error(header + row), HasSubstr("line 2: 5 fields under a header of 4"));
  }
  const auto recording = import_text(header + "1700000000.5,blocks 1, 2,10.0,9e-05\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->imported_windows.at(0).name, "blocks 1, 2");
}

// As jouleprof.zeus writes them.
TEST(ZeusWindows, NamesMayBeQuoted) {
  const auto recording = import_text(
      "start_time,window_name,elapsed_time,gpu0_energy\n1700000000.5,\"a, 1\",1.0,100.5\n"
      "1700000003.5,\"say \"\"b\"\"\",1.0,\n1700000006.5,plain \"c\",1.0,100.5\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 3u);
  EXPECT_EQ(recording->imported_windows[0].name, "a, 1");
  EXPECT_EQ(recording->imported_windows[1].name, "say \"b\"");
  EXPECT_EQ(recording->imported_windows[2].name, "plain \"c\"");
}

// The name took all of the first row, and its window was lost without a word.
TEST(ZeusWindows, ARowThatRunsIntoTheNextIsLeftOutAndCounted) {
  const std::string header = "start_time,window_name,elapsed_time,gpu0_energy\n";
  // The first is cut within its start time.
  for (const std::string first : {"170000", "1700000000.5,a", "1700000000.5,a,",
                                  "1700000000.5,a,1.0", "1700000000.5,a,1.0,100.5"}) {
    const auto recording = import_text(header + first +
                                       "1700000003.5,b,1.25,200.5\n1700000006.5,c,1.0,100.5\n"
                                       "1700000009.5,x, 1700000009.25,1.0,100.5\n");
    ASSERT_TRUE(recording) << recording.error().message;
    ASSERT_EQ(recording->imported_windows.size(), 2u) << first;
    EXPECT_EQ(recording->imported_windows[1].name, "x, 1700000009.25");
    EXPECT_TRUE(
        has_warning(*recording, "1 row left out that cannot be right; the first is line 2: "))
        << recording->warnings.at(0).text;
  }
}

// A second column of one energy counted as another window's; one that is not read went unsaid.
TEST(ZeusWindows, ColumnsOfEnergyCountOnceOrAreNamed) {
  const std::string start = "start_time,window_name,elapsed_time,";
  for (const std::string columns : {"gpu0_energy,gpu0_energy", "gpu0_energy,elapsed_time"}) {
    EXPECT_THAT(import_error(start + columns + "\n1700000000.5,a,1.0,100.0,2.0\n"),
                HasSubstr("twice; leave one of them out"));
  }
  const auto recording =
      import_text(start + "gpu0_energy,cpu0_energy\n1700000000.5,a,1.0,100.0,20.0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "column 'cpu0_energy' left out: its energy is in no total"));
  EXPECT_FALSE(has_warning(*recording, "wrong unit?"));
}

// As powers are: kilojoules under the name of joules.
TEST(ZeusWindows, MeanPowersThatNoBoardDrawsAreNamed) {
  const auto recording = import_text(
      "start_time,window_name,elapsed_time,gpu0_energy\n1700000000.5,a,10.0,2.5\n"
      "1700000010.5,a,10.0,2.0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "gpu0 draws at most 0.25 W: wrong unit?"));
}

TEST(ZeusMonitor, ReadsMilliwattsInUtc) {
  const auto recording = import_text(kLog);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:zeus-monitor");
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 27.5, 1e-9);
  EXPECT_EQ(recording->clock_points.at(0).real, RealTime{seconds{1795230000}});
  EXPECT_EQ(recording->run.work_end, HostTime{milliseconds{500}});
}

TEST(ZeusMonitor, ReadsItsOtherColumns) {
  const auto recording = import_text(
      "Time,Power,Temp,SMFreq,Mem\n2026-11-21 03:00:00,50000,40,1380,1048576\n"
      "2026-11-21 03:00:01,50000,41,,1048576\n");
  ASSERT_TRUE(recording);
  ASSERT_EQ(recording->readings.gauges.size(), 5u);
  EXPECT_EQ(recording->readings.gauges[1].value, 1380e6);
  EXPECT_EQ(recording->sensors[3].name, model::gauge::kMemoryUsed);
}

TEST(ZeusMonitor, NamesAndValuesMayHaveUnits) {
  for (const std::string text :
       {"Time,Power [W],SMFreq [MHz]\n2026-11-21 03:00:00,50,1380\n2026-11-21 03:00:01,60,1380\n",
        "Time,Power,SMFreq\n2026-11-21 03:00:00,50 W,1380 MHz\n2026-11-21 03:00:01,60000 mW,1.38 "
        "GHz\n"}) {
    const auto recording = import_text(text);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 55, 1e-9);
    EXPECT_EQ(recording->readings.gauges.at(0).value, 1380e6);
  }
  EXPECT_THAT(import_error("Time,Power [hp]\n2026-11-21 03:00:00,50\n"),
              HasSubstr("in a unit that is not known"));
}

TEST(ZeusMonitor, SeveralFilesAreSeveralGpusOnOneTimeline) {
  const auto recording = import_texts(std::vector<SourceText>{
      {"a", kLog},
      {"b",
       "Time,Power\n2026-11-21 03:00:00.250000000,10000\n2026-11-21 03:00:01.250000000,10000\n"}});
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->domains[1].device, "gpu1");
  EXPECT_THAT(recording->domains[1].name, HasSubstr("b"));
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu0")), 27.5, 1e-9);
  EXPECT_NEAR(trapezoid(powers_of(*recording, "gpu1")), 10, 1e-9);
  EXPECT_EQ(powers_of(*recording, "gpu1")[0].at, HostTime{milliseconds{250}});
}

TEST(ZeusMonitor, ALastNumberThatMayBeCutOffIsLeftOut) {
  const auto recording = import_text(kLog + "2026-11-21 03:00:01.000000000,32");  // of 32303
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->readings.powers.size(), 2u);
  EXPECT_TRUE(recording->run.complete);
}

// The old program wrote mW, later versions and the profiling service W.
TEST(ZeusMonitor, PowerWithoutAUnitIsInWattsWhereNoBoardDrawsMilliwattsSoFew) {
  const auto watts =
      import_text("Time,Power\n2026-11-21 03:00:00.0,400.250\n2026-11-21 03:00:01.0,400.250\n");
  ASSERT_TRUE(watts) << watts.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*watts, "gpu0")), 400.25, 1e-6);
  EXPECT_TRUE(has_warning(*watts, "400.25 is taken to be in W"));
  const auto milliwatts =
      import_text("Time,Power\n2026-11-21 03:00:00.0,32402\n2026-11-21 03:00:01.0,32402\n");
  ASSERT_TRUE(milliwatts) << milliwatts.error().message;
  EXPECT_NEAR(trapezoid(powers_of(*milliwatts, "gpu0")), 32.402, 1e-6);
}

TEST(ZeusMonitor, BadLogs) {
  EXPECT_THAT(import_error("Time,Power\n"), HasSubstr("no row"));
  EXPECT_THAT(import_error("Time,Power\nlater,1\n"), HasSubstr("line 2: 'later' is no time"));
  for (const auto& [row, why] : {std::pair{"later,1\n", "line 4: 'later' is no time"},
                                 {"2026-11-21 03:00:01,x\n", "line 4: 'x' is no number"},
                                 {"2026-11-21 03:00:01\n", "line 4: 1 fields"}}) {
    const auto recording = import_text(kLog + row);
    ASSERT_TRUE(recording) << row << recording.error().message;
    EXPECT_TRUE(has_warning(*recording, why)) << row;
  }
  EXPECT_THAT(import_error("a,b\n1,2\n", {.format = "zeus-monitor", .interval = {}}),
              HasSubstr("it has no power; its header needs the columns Time and Power"));
}

TEST(ZeusWindows, EachRowIsAWindow) {
  const auto recording = import_text(
      "start_time,window_name,elapsed_time,gpu0_energy,gpu2_energy\n"
      "1795230010.5,inner, with a comma,2.5,100.25,0.0\n"
      "1795230000.0,__GlobalPowerLimitOptimizer_300,20.0,1000.0,2000.0\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:zeus-windows");
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  const auto& inner = recording->imported_windows[0];
  EXPECT_EQ(inner.name, "inner, with a comma");
  EXPECT_EQ(inner.begin, HostTime{milliseconds{10500}});
  EXPECT_EQ(inner.duration, milliseconds{2500});
  // Zero is a window too short for the counter, not no energy.
  ASSERT_EQ(inner.energies.size(), 1u);
  EXPECT_EQ(inner.energies[0].energy, Energy::joules(100.25));
  EXPECT_TRUE(has_warning(*recording, "1 value of gpu2_energy that is exactly 0"));
  const auto& outer = recording->imported_windows[1];
  EXPECT_EQ(outer.begin, HostTime{});
  EXPECT_EQ(outer.energies[1].domain, recording->domains[1].id);
  EXPECT_EQ(recording->domains[1].device, "gpu2");
  ASSERT_EQ(outer.labels.size(), 1u);
  EXPECT_EQ(outer.labels[0], (model::ImportedWindow::Label{"power_limit_watts", "300"}));
  EXPECT_EQ(recording->run.work_end, HostTime{seconds{20}});
  EXPECT_EQ(recording->clock_points.at(0).real, RealTime{seconds{1795230000}});
  EXPECT_FALSE(recording->domains[0].unavailable_reason.empty());
}

TEST(ZeusWindows, BadLogs) {
  const std::string head = "start_time,window_name,elapsed_time,gpu0_energy\n";
  EXPECT_THAT(import_error(head), HasSubstr("no window under it"));
  EXPECT_THAT(import_error(head + "1,a,1\n"), HasSubstr("line 2: 3 fields under a header of 4"));
  EXPECT_THAT(import_error(head + "1,a,1,-5\n"),
              HasSubstr("line 2: gpu0_energy is '-5', no energy"));
  EXPECT_THAT(import_error(head + "x,a,1,5\n"), HasSubstr("line 2: start_time is 'x', no time"));
  EXPECT_THAT(import_error(head + "1,a,x,5\n"),
              HasSubstr("line 2: elapsed_time is 'x', no duration"));
  EXPECT_THAT(import_error("start_time,window_name,elapsed_time\n1,a,1\n"),
              HasSubstr("gpu0_energy"));
  EXPECT_THAT(import_error("start_time,window_name,elapsed_time,cpu\n1,a,1,5\n"),
              HasSubstr("no column 'gpu0_energy'"));
}

TEST(ZeusSweep, EachRowIsAnEpoch) {
  const auto recording = import_text(
      "network,power_limit,average_power,time_per_epoch\n"
      "\"a,b\",100,90.5,10.0\nnet,125,100,8.5\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:zeus-sweep");
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  const auto& first = recording->imported_windows[0];
  EXPECT_EQ(first.name, "a,b");
  EXPECT_EQ(first.begin, std::nullopt);
  EXPECT_EQ(first.duration, seconds{10});
  EXPECT_EQ(first.energies.at(0).energy, Energy::joules(905));
  EXPECT_EQ(first.labels, (std::vector<model::ImportedWindow::Label>{
                              {"network", "a,b"}, {"power_limit_watts", "100"}}));
}

TEST(ZeusSweep, BadTables) {
  const std::string head = "network,power_limit,time_per_epoch,average_power\n";
  EXPECT_THAT(import_error(head), HasSubstr("no run under it"));
  EXPECT_THAT(import_error("network,power_limit,average_power\nn,1,1\n"),
              HasSubstr("time_per_epoch"));
  EXPECT_THAT(import_error(head + "n,100,0,50\n"), HasSubstr("line 2: time_per_epoch is '0'"));
  EXPECT_THAT(import_error(head + "n,100,5,nan\n"), HasSubstr("line 2: average_power is 'nan'"));
  EXPECT_THAT(import_error(head + "n,-1,5,5\n"), HasSubstr("line 2: power_limit is '-1'"));
  EXPECT_THAT(import_error(head + "\"n,100,5,5\n"), HasSubstr("line 2: 0 fields"));
}

std::string label(const model::ImportedWindow& window, std::string_view name) {
  for (const auto& l : window.labels) {
    if (l.name == name) return l.value;
  }
  return {};
}

TEST(ZeusPeers, MonitorSample) {
  JOULEPROF_PEER_FILE(file, "zeus/zeus_monitor_sample.csv");
  const auto recording = import_files({file});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->readings.powers.size(), 19u);
  EXPECT_EQ(recording->readings.powers.front().power.watts(), 32.402);
  EXPECT_EQ(*recording->run.work_end - *recording->run.work_begin, Duration{958481625});
}

TEST(ZeusPeers, A40Profile) {
  JOULEPROF_PEER_FILE(file, "zeus/profile_A40+bert-base-uncased+gpu0.csv");
  const auto recording = import_files({file});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 9u);
  const auto& windows = recording->imported_windows;
  const auto joules = [](const model::ImportedWindow& w) {
    return w.energies.at(0).energy.joules();
  };
  const model::ImportedWindow* least = &windows[0];
  const model::ImportedWindow* fastest = &windows[0];
  for (const auto& w : windows) {
    if (joules(w) < joules(*least)) least = &w;
    if (w.duration < fastest->duration) fastest = &w;
  }
  EXPECT_EQ(label(*least, "power_limit_watts"), "200");
  EXPECT_NEAR(joules(*least), 2481.354, 0.0005);
  const model::ImportedWindow* bounded = fastest;
  for (const auto& w : windows) {
    if (w.duration <= fastest->duration * 1.1 && joules(w) < joules(*bounded)) bounded = &w;
  }
  EXPECT_EQ(label(*bounded, "power_limit_watts"), "275");
  EXPECT_NEAR(joules(*bounded), 2758.486, 0.0005);
}

TEST(ZeusPeers, V100Sweep) {
  JOULEPROF_PEER_FILE(file, "zeus/summary_power_v100.csv");
  const auto recording = import_files({file});
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 476u);
  std::map<std::string, std::map<int, const model::ImportedWindow*>> groups;
  for (const auto& w : recording->imported_windows) {
    groups[w.name][std::stoi(label(w, "power_limit_watts"))] = &w;
  }
  ASSERT_EQ(groups.size(), 68u);
  std::map<int, int> least_limits;
  double saving = 0, slowdown = 0;
  for (const auto& [name, runs] : groups) {
    const auto joules = [](const auto& run) { return run.second->energies.at(0).energy.joules(); };
    const auto least =
        *std::min_element(runs.begin(), runs.end(),
                          [&](const auto& a, const auto& b) { return joules(a) < joules(b); });
    const auto highest = *runs.rbegin();
    ++least_limits[least.first];
    saving += 1 - joules(least) / joules(highest);
    slowdown +=
        jouleprof::seconds(least.second->duration) / jouleprof::seconds(highest.second->duration) -
        1;
  }
  EXPECT_EQ(least_limits,
            (std::map<int, int>{
                {100, 24}, {125, 21}, {150, 15}, {175, 4}, {200, 2}, {225, 1}, {250, 1}}));
  EXPECT_NEAR(saving / 68 * 100, 21.36, 0.005);
  EXPECT_NEAR(slowdown / 68 * 100, 16.53, 0.005);
}

}  // namespace
}  // namespace jouleprof::importers
