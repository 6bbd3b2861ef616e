#include "report/chrome/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "model/activity/device_timeline.h"
#include "report/json/values.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

constexpr Duration kZero{};

HostTime at(Duration t) { return HostTime{100s + t}; }

model::Measurement joules(double energy, double error) {
  model::Measurement m;
  m.energy = Energy::joules(energy);
  m.error = Energy::joules(error);
  return m;
}

struct Example {
  model::Recording recording;
  std::vector<model::ActivityProfile> profiles;
  ChromeTraceParts parts;

  explicit Example(bool events) {
    model::Domain gpu;
    gpu.device = "gpu0";
    gpu.uuid = "GPU-1";
    recording.domains = {gpu};
    recording.clock_points = {{HostTime{100s}, RealTime{1000s}, {}}};
    recording.run.work_begin = at(kZero);
    recording.windows = {{"a \"b\"", at(1ms), at(9ms), 7, 8, false}};
    model::Trace trace;
    trace.pid = 42;
    trace.program = "python";
    trace.devices = {{0, "GPU-1", "H100"}};
    trace.classes.resize(2);
    trace.classes[0].name = "_Z4gemmPf";
    trace.classes[0].grid = {4, 2, 1};
    trace.classes[0].block = {32, 1, 1};
    trace.classes[1].kind = model::ActivityKind::kMemset;
    trace.classes[1].name = "Memset (Device)";
    trace.classes[1].bytes = 64;
    trace.layers.resize(3);
    trace.layers[0].name = "Model";
    trace.layers[1].name = "fc1";
    trace.layers[1].type = "Linear";
    trace.layers[1].parent = 0;
    trace.layers[2].name = "fc2";
    trace.layers[2].parent = 0;
    trace.ranges = {{"step", model::kNone}};
    trace.scopes = {{1, 0, model::Phase::kForward}, {2, 0, model::Phase::kForward}};
    model::ActivityBins::Options options;
    options.events = events;
    options.bin = trace.bin = 5ms;
    model::ActivityBins bins(options, [&](model::ActivityChunk c) { trace.chunks.push_back(c); });
    bins.add({at(1ms), at(3ms), 0, 0, 7});
    bins.add({at(3ms), at(4ms), 1, 0, 7});
    bins.add({at(4ms), at(8ms), 0, 1, 7});
    bins.add({at(20ms), at(21ms), 0, model::kNone, 7});
    bins.finish();
    recording.traces = {trace};

    model::ActivityProfile p;
    p.domain = gpu;
    p.begin = at(kZero);
    p.end = at(10ms);
    model::ActivityRow row;
    row.kernel = trace.classes[0];
    row.busy = 6ms;
    row.energy = joules(1.8, 0.18);
    p.by_kernel = {row};
    profiles = {p};
    parts.profiles = &profiles;
    parts.version = "9.9";
    parts.curves = {{gpu.id,
                     {{at(-20ms), at(kZero), Power::watts(100)},
                      {at(kZero), at(20ms), Power::watts(250.5), Power::watts(300)}}}};
    parts.window_energy = [](const model::Window&, std::size_t) {
      return Result<model::Measurement>(joules(2, 0.5));
    };
  }

  Json write() const {
    std::ostringstream out;
    const auto done = write_chrome_trace(out, recording, parts);
    EXPECT_TRUE(done);
    return Json::parse(out.str());
  }
};

TEST(ChromeTrace, LaunchesAreSlicesWithTheirEnergy) {
  const Json json = Example(true).write();
  EXPECT_EQ(json["baseTimeNanoseconds"], 999'980'000'000);
  EXPECT_EQ(json["otherData"]["version"], "9.9");
  std::vector<Json> launches;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] == "X") launches.push_back(e);
  }
  ASSERT_EQ(launches.size(), 4u);
  const Json& gemm = launches[0];
  EXPECT_EQ(gemm["name"], "gemm(float*)");
  EXPECT_DOUBLE_EQ(gemm["ts"], 21'000);
  EXPECT_DOUBLE_EQ(gemm["dur"], 2'000);
  EXPECT_DOUBLE_EQ(gemm["args"]["energy (J)"], 0.6);
  EXPECT_DOUBLE_EQ(gemm["args"]["energy high (J)"], 0.66);
  EXPECT_DOUBLE_EQ(gemm["args"]["power above idle (W)"], 300);
  EXPECT_EQ(gemm["args"]["grid"], Json::parse("[4,2,1]"));
  EXPECT_EQ(gemm["args"]["layer"], "fc1");
  EXPECT_EQ(gemm["args"]["range"], "step");
  EXPECT_EQ(gemm["args"]["phase"], "forward");
  EXPECT_FALSE(launches[1]["args"].contains("energy (J)"));
  EXPECT_FALSE(launches[3]["args"].contains("energy (J)"));  // outside what was attributed
}

TEST(ChromeTrace, AWindowWithoutADeviceSaysWhy) {
  Example example(true);
  example.parts.window_energy = [](const model::Window&, std::size_t) {
    return Result<model::Measurement>(fail(Errc::kUnavailable, "readings \"end\" before it"));
  };
  const Json json = example.write();
  int windows = 0;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "b") continue;
    EXPECT_EQ(e["args"]["gpu0 gpu"], "unavailable: readings \"end\" before it");
    ++windows;
  }
  EXPECT_GT(windows, 0);
}

// Rows are copied one by one: each says that it is no measurement.
TEST(ChromeTrace, ProvenanceTravelsWithEachRow) {
  Example example(true);
  model::Sensor sensor;
  sensor.domain = example.recording.domains[0].id;
  sensor.provenance = model::Provenance::kSimulated;
  example.recording.sensors = {sensor};
  example.profiles[0].by_kernel[0].energy->provenance = model::Provenance::kSimulated;
  example.parts.window_energy = [](const model::Window&, std::size_t) {
    auto energy = joules(2, 0.5);
    energy.provenance = model::Provenance::kEstimated;
    return Result<model::Measurement>(energy);
  };
  int energies = 0;
  int counters = 0;
  int windows = 0;
  const Json json = example.write();
  for (const auto& e : json["traceEvents"]) {
    if (!e.contains("args")) continue;
    if (e["args"].contains("energy (J)")) {
      EXPECT_EQ(e["args"]["provenance"], "simulated");
      ++energies;
    }
    if (e["ph"] == "C") {
      EXPECT_THAT(e["name"].get<std::string>(), ::testing::StartsWith("gpu0 power (W) SIMULATED"));
      EXPECT_EQ(e["args"].size(), 1u) << "a viewer stacks the series of one counter";
      ++counters;
    }
    if (e["ph"] == "b") {
      EXPECT_THAT(e["args"].dump(), ::testing::HasSubstr("2 J ESTIMATED"));
      ++windows;
    }
  }
  EXPECT_GT(energies, 3);
  EXPECT_GT(counters, 0);
  EXPECT_GT(windows, 0);
}

TEST(ChromeTrace, LayersAndRangesSpanTheirLaunches) {
  const Json json = Example(true).write();
  std::map<std::string, std::pair<double, double>> slices;
  std::map<std::string, double> energy;
  std::map<std::string, std::vector<Json>> open;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "B" && e["ph"] != "E") continue;
    auto& track = open[e["tid"].dump()];
    if (e["ph"] == "B") {
      track.push_back(e);
      continue;
    }
    ASSERT_FALSE(track.empty());
    const std::string name = track.back()["name"];
    EXPECT_FALSE(slices.contains(name));
    slices[name] = {track.back()["ts"], e["ts"]};
    energy[name] = e["args"]["energy (J)"];
    track.pop_back();
  }
  for (const auto& [tid, track] : open) EXPECT_TRUE(track.empty());
  EXPECT_EQ(slices["Model"], std::pair(21'000.0, 28'000.0));
  EXPECT_EQ(slices["fc1"], std::pair(21'000.0, 24'000.0));
  EXPECT_EQ(slices["fc2"], std::pair(24'000.0, 28'000.0));
  EXPECT_EQ(slices["step"], std::pair(21'000.0, 28'000.0));
  EXPECT_NEAR(energy["Model"], 1.8, 1e-9);
  EXPECT_NEAR(energy["fc1"], 0.6, 1e-9);
}

TEST(ChromeTrace, PowerAndWindows) {
  const Json json = Example(true).write();
  std::vector<double> watts;
  std::vector<Json> edges;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] == "C") {
      for (const auto& value : e["args"]) watts.push_back(value);
    }
    if (e.contains("cat") && e["cat"] == "window") edges.push_back(e);
    EXPECT_GE(e.value("ts", 0.0), 0);
  }
  EXPECT_EQ(watts, (std::vector<double>{100, 250.5, 0, 550.5}));
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(edges[0]["name"], "a \"b\"");
  EXPECT_EQ(edges[0]["args"]["gpu0 gpu"], "2 J, 95 %: 1.5 to 2.5");
  EXPECT_DOUBLE_EQ(edges[1]["ts"], 29'000);
}

TEST(ChromeTrace, APartHoldsWhatBeginsInIt) {
  Example example(true);
  example.recording.traces[0].program.clear();
  example.parts.begin = at(2ms);
  example.parts.end = at(4ms);
  Json json = example.write();
  std::size_t launches = 0;
  for (const auto& e : json["traceEvents"]) {
    EXPECT_NE(e["ph"], "C");
    if (e.value("name", "") == "process_name" && e["pid"] != 1) {
      EXPECT_THAT(std::string(e["args"]["name"]), testing::Not(testing::HasSubstr(" of ")));
    }
    if (e["ph"] != "X") continue;
    ++launches;
    EXPECT_DOUBLE_EQ(e["ts"], 1'000);
  }
  EXPECT_EQ(launches, 1u);
  Example busy(false);
  busy.parts.begin = at(4ms);
  busy.parts.end = at(10ms);
  json = busy.write();
  for (const auto& e : json["traceEvents"]) {
    if (e.value("name", "") != "busy (%)") continue;
    EXPECT_LE(e["ts"], 6'000);
  }
}

TEST(ChromeTrace, WithoutLaunchesHowBusyTheDeviceWas) {
  const Json json = Example(false).write();
  std::map<double, double> busy;
  for (const auto& e : json["traceEvents"]) {
    EXPECT_NE(e["ph"], "X");
    if (e["name"] == "busy (%)") busy[e["ts"]] = e["args"]["busy"];
  }
  EXPECT_EQ(busy, (std::map<double, double>{
                      {20'000, 80}, {25'000, 60}, {30'000, 0}, {40'000, 20}, {45'000, 0}}));
}

TEST(ChromeTrace, ShortBinsAreAddedUpToSteps) {
  Example example(false);
  example.parts.busy_step = 8ms;
  const Json json = example.write();
  std::map<double, double> busy;
  for (const auto& e : json["traceEvents"]) {
    if (e["name"] == "busy (%)") busy[e["ts"]] = e["args"]["busy"];
  }
  // Bins of 4 ms in 20 to 25 ms, 3 in 25 to 30, 1 in 40 to 45.
  EXPECT_EQ(busy, (std::map<double, double>{
                      {16'000, 40}, {24'000, 47.5}, {32'000, 0}, {40'000, 12.5}, {48'000, 0}}));
}

TEST(ChromeTrace, ReplaysAreNamed) {
  Example example(true);
  model::Trace& trace = example.recording.traces[0];
  const auto replay = [&](Duration begin, Duration end, const std::string& bytes) {
    trace.chunks.push_back({model::ChunkKind::kReplay, model::kNone, at(begin), at(end), bytes});
  };
  model::ActivityEncoder entry;
  entry.add(model::KernelRerun{7, 1'755'000});
  replay(20ms, 30ms, "");
  replay(30ms, 40ms, entry.take());
  std::vector<std::string> names;
  const Json written = example.write();
  for (const auto& event : written["traceEvents"]) {
    if (event.value("cat", "") != "replay") continue;
    names.push_back(event["name"]);
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["dur"].get<double>(), 10'000);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"in between", "a kernel"}));
  replay(60ms, 70ms, "\xff");
  std::ostringstream out;
  EXPECT_FALSE(write_chrome_trace(out, example.recording, example.parts));
}

TEST(ChromeTrace, DamagedActivityIsAnError) {
  Example example(true);
  example.recording.traces[0].classes.resize(1);
  std::ostringstream out;
  EXPECT_EQ(write_chrome_trace(out, example.recording, example.parts).error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::report
