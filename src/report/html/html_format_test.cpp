#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/synthetic_run_test.h"
#include "report/cells.h"
#include "report/example_bench_test.h"
#include "report/format/format.h"
#include "report/html/page.h"

namespace jouleprof::report {
namespace {

using analysis::Part;
using analysis::simulated::SyntheticRun;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Four seconds of four kernels on a GPU, and a second of idle on either side of the command.
model::Recording traced() {
  SyntheticRun run;
  run.kernels = analysis::simulated::various_kernels(4);
  run.seconds = 4;
  auto recording = analysis::simulated::synthesise(run).recording;
  recording.run.complete = true;
  const auto& powers = recording.readings.powers;
  recording.run.work_begin = powers.front().at + std::chrono::seconds{1};
  recording.run.work_end = *recording.run.work_begin + std::chrono::seconds{4};
  return recording;
}

std::string page_of(model::Recording recording, const FormatOptions& options = {},
                    const Part& part = {}) {
  const analysis::Run run(std::move(recording));
  std::ostringstream out;
  const auto made = find_format("html")->write(run, part, options, out);
  EXPECT_TRUE(made) << made.error().message;
  return out.str();
}

std::string block_of(const std::string& page) {
  constexpr std::string_view kBegin = R"(<script type="application/json" id="data">)";
  const auto begin = page.find(kBegin);
  if (begin == std::string::npos) return "";
  const auto from = begin + kBegin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

// What a browser shows without JavaScript.
std::string text_of(const std::string& page) {
  return page.substr(0, page.find(R"(<script type="application/json")"));
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(HtmlFormat, EveryFigureIsThatOfJson) {
  const analysis::Run run(traced());
  for (const Part& part : {Part{}, Part{std::chrono::seconds{1}, std::chrono::seconds{3}}}) {
    std::ostringstream page, summary, kernels;
    ASSERT_TRUE(find_format("html")->write(run, part, {}, page));
    ASSERT_TRUE(find_format("json")->write(run, part, {}, summary));
    FormatOptions by_kernel;
    by_kernel.by.emplace();
    ASSERT_TRUE(find_format("json")->write(run, part, by_kernel, kernels));
    const json data = json::parse(block_of(page.str()));
    EXPECT_EQ(data["profile"], json::parse(summary.str()));
    const json table = json::parse(kernels.str())["devices"][0];
    const json& packed = data["activity"]["kernel"][0]["rows"];
    ASSERT_EQ(packed["rows"].size(), table["rows"].size());
    for (std::size_t i = 0; i < table["rows"].size(); ++i) {
      for (std::size_t k = 0; k < packed["keys"].size(); ++k) {
        EXPECT_EQ(packed["rows"][i][k], table["rows"][i][packed["keys"][k].get<std::string>()]);
      }
    }
  }
}

TEST(HtmlFormat, PowerStepsSumToTheEnergy) {
  const analysis::Run run(traced());
  std::ostringstream page;
  ASSERT_TRUE(find_format("html")->write(run, {}, {}, page));
  const json data = json::parse(block_of(page.str()));
  const json& track = data["timeline"]["power"][0];
  std::int64_t steps = 0;
  for (const json& step : track["energy_microjoules"]) {
    if (!step.is_null()) steps += step.get<std::int64_t>();
  }
  // The curve may have time before and after the command, which the summary has not.
  const auto& recording = run.recording();
  const HostTime origin = *recording.run.work_begin;
  const auto at = [&](const char* key) {
    return origin + Duration(std::llround(track[key].get<double>() * 1e9));
  };
  const auto whole = run.energy(0, at("begin_seconds"), at("end_seconds"));
  ASSERT_TRUE(whole);
  EXPECT_NEAR(static_cast<double>(steps), static_cast<double>(whole->energy.microjoules()),
              1e-6 * static_cast<double>(steps));
}

TEST(HtmlFormat, StacksSumToTheEnergyOfKernels) {
  const json data = json::parse(block_of(page_of(traced())));
  std::int64_t stacks = 0;
  for (const json& stack : data["stacks"][0]["stacks"]) stacks += stack[6].get<std::int64_t>();
  EXPECT_EQ(stacks,
            std::llround(data["activity"]["kernel"][0]["kernels_joules"].get<double>() * 1e6));
}

TEST(HtmlFormat, SlicesSumToTheRows) {
  const json data = json::parse(block_of(page_of(traced())));
  ASSERT_EQ(data["slices"].size(), 1U);
  const json& slices = data["slices"][0];
  EXPECT_EQ(slices["id"], data["stacks"][0]["id"]);
  const json& packed = data["activity"]["kernel"][0]["rows"];
  const auto column = [&](const char* key) {
    return static_cast<std::size_t>(std::find(packed["keys"].begin(), packed["keys"].end(), key) -
                                    packed["keys"].begin());
  };
  ASSERT_EQ(slices["kernel"].size(), 4U);
  for (const json& row : slices["kernel"]) {
    const double unit = row[1].get<double>() / 1e6;
    double sum = 0;
    double absolute = 0;
    for (const json& energy : row[2]) {
      sum += unit * energy.get<double>();
      absolute += unit * std::abs(energy.get<double>());
    }
    EXPECT_EQ(row[2].size(), slices["count"].get<std::size_t>());
    const json& whole = packed["rows"][row[0].get<std::size_t>()];
    const double joules = whole[column("energy_joules")].get<double>();
    EXPECT_NEAR(sum, joules, 2e-3 * joules);
    double bound = row[3].get<double>() * absolute + unit * row[4].get<double>();
    if (!row[5].is_null()) {
      bound = 0;
      for (const json& error : row[5]) bound += unit * error.get<double>();
    }
    const double high = whole[column("interval_joules")][1].get<double>();
    EXPECT_GE(bound, 0.99 * (high - joules));
    EXPECT_LE(bound, 2 * (high - joules));
  }
}

// Two processes with the same kernels.
model::Recording traced_twice() {
  auto recording = traced();
  auto second = recording.traces[0];
  second.pid = recording.traces[0].pid + 1;
  second.rank.global = 1;
  recording.traces.push_back(std::move(second));
  return recording;
}

TEST(HtmlFormat, ProcessesHaveTheirKernelsAndEnergiesByTime) {
  const json data = json::parse(block_of(page_of(traced_twice())));
  const json& slices = data["process_slices"];
  ASSERT_EQ(slices["energy"].size(), 2U);
  for (const json& row : slices["energy"]) {
    double sum = 0;
    for (const json& units : row[4]) sum += units.get<double>() * row[2].get<double>() / 1e6;
    const json& process = data["profile"]["processes"][row[0].get<std::size_t>()];
    const double joules = process["energy"][0]["energy_joules"].get<double>();
    EXPECT_EQ(row[1], process["energy"][0]["id"]);
    EXPECT_NEAR(sum, joules, 1e-3 * joules);
  }
  const json& stacks = data["stacks"][0];
  ASSERT_EQ(stacks["processes"].size(), 2U);
  EXPECT_TRUE(stacks["processes"][0]["rank"].is_null());
  EXPECT_EQ(stacks["processes"][1]["rank"], 1);
  std::int64_t kernels = 0;
  std::int64_t gaps = 0;
  for (const json& process : stacks["processes"]) {
    gaps += process["idle_between_microjoules"].get<std::int64_t>();
    for (const json& kernel : process["kernels"]) kernels += kernel[3].get<std::int64_t>();
  }
  const json& device = data["activity"]["kernel"][0];
  EXPECT_EQ(kernels, std::llround(device["kernels_joules"].get<double>() * 1e6));
  EXPECT_EQ(gaps, std::llround(device["idle_between_launches_joules"].get<double>() * 1e6));
}

TEST(HtmlFormat, RedactLeavesOutTheNamesOfTracedPrograms) {
  auto recording = traced_twice();
  for (auto& trace : recording.traces) trace.program = "secret_model.py";
  EXPECT_THAT(page_of(recording), HasSubstr("secret_model.py"));
  FormatOptions options;
  options.redact = true;
  const std::string page = page_of(recording, options);
  EXPECT_THAT(page, Not(HasSubstr("secret_model.py")));
  EXPECT_THAT(block_of(page), HasSubstr("rank 1, pid "));
}

TEST(HtmlFormat, OneProcessHasNoKernelsOfItsOwn) {
  const json data = json::parse(block_of(page_of(traced())));
  EXPECT_TRUE(data["stacks"][0]["processes"].empty());
}

TEST(HtmlFormat, HostileNamesAreText) {
  const std::string hostile = "</script><script>alert(1)</script><!--\xe2\x80\xa8\xff\xe2\x80\xae" +
                              std::string(10'000, 'x');
  model::Recording recording = traced();
  recording.run.command = {hostile, "<img src=x onerror=alert(1)>"};
  recording.run.host = hostile;
  recording.domains[0].name = hostile;
  recording.warnings.push_back({{}, hostile});
  for (auto& process : recording.processes) process.name = process.command_line = hostile;
  for (auto& trace : recording.traces) {
    for (auto& layer : trace.layers) layer.name = layer.type = hostile;
    for (auto& kernel : trace.classes) kernel.name = hostile;
  }
  model::Window window;
  window.name = hostile;
  window.begin = *recording.run.work_begin;
  window.end = window.begin + std::chrono::seconds{1};
  recording.windows.push_back(window);
  const std::string page = page_of(recording);
  const std::string plain = page_of(traced());
  for (const auto* mark : {"<script", "</script", "<!--", "<img", "\xff"}) {
    EXPECT_EQ(count(page, mark), count(plain, mark)) << mark;
  }
  EXPECT_THAT(text_of(page), Not(HasSubstr("\xe2\x80\xae")));  // the page's reader replaces it
  EXPECT_TRUE(json::accept(block_of(page)));
  EXPECT_THAT(block_of(page), Not(HasSubstr("<")));
}

TEST(HtmlFormat, RedactLeavesOutJobsMetersAndImportedFiles) {
  model::Recording recording = traced();
  recording.run.source = "import:nvidia-smi";
  recording.run.rank.job = "778899";
  recording.run.rank.step = "step-of-erika";
  auto& wall = recording.domains.emplace_back();
  wall.id = model::DomainId{77};
  wall.kind = model::DomainKind::kPlatform;
  wall.device = "wall";
  wall.name = "Wall meter (shelly:bmc.erika.example:8080)";
  wall.unavailable_reason = "http://of-erika:9/rpc does not answer: failed to connect to of-erika";
  for (const char* text :
       {"erika 1.csv: 2 rows left out", "erika_log: the times are local", "gpu0: as in erika 1.csv",
        "http://erikas-meter:80/rpc does not answer: "
        "failed to connect to erikas-meter port 80"}) {
    recording.warnings.push_back({{}, text});
  }
  FormatOptions options;
  EXPECT_THAT(page_of(recording, options), HasSubstr("778899"));
  options.redact = true;
  const std::string page = page_of(recording, options);
  EXPECT_THAT(page, Not(HasSubstr("erika")));
  EXPECT_THAT(page, Not(HasSubstr("778899")));
  EXPECT_THAT(page, HasSubstr("Wall meter (shelly:(redacted))"));
  EXPECT_THAT(page, HasSubstr("(redacted): 2 rows left out"));
  EXPECT_THAT(page, HasSubstr("gpu0: as in (redacted)"));
  EXPECT_THAT(page, HasSubstr("http:(redacted) does not answer: failed to connect to (redacted)"));
}

TEST(HtmlFormat, RedactLeavesOutWhoAndWhere) {
  model::Recording recording = traced();
  recording.run.command = {"/home/erika/secret-train.py", "--token=hunter2"};
  recording.run.host = "node-of-erika";
  recording.run.working_directory = "/home/erika";
  recording.run.trace_folder = "/tmp/spool-of-erika";
  recording.run.boot_id = "boot-of-erika";
  recording.run.user = "erika";
  recording.run.node_list = "node-of-erika[1-2]";
  recording.domains[0].uuid = "GPU-of-erika";
  for (auto& trace : recording.traces) {
    for (auto& device : trace.devices) device.uuid = "GPU-of-erika";
  }
  for (auto& process : recording.processes) {
    process.name = "name-of-erika";
    process.command_line = "line-of-erika";
  }
  recording.warnings.push_back(
      {{}, "cannot read /home/erika/thesis.py on node-of-erika: --token=hunter2"});
  FormatOptions options;
  EXPECT_THAT(page_of(recording, options), HasSubstr("erika"));
  options.redact = true;
  const std::string page = page_of(recording, options);
  EXPECT_THAT(page, Not(HasSubstr("erika")));
  EXPECT_THAT(page, Not(HasSubstr("hunter2")));
  EXPECT_THAT(page, Not(HasSubstr("thesis.py")));
  EXPECT_THAT(text_of(page), HasSubstr("--redact"));
  // What the report is about stays.
  EXPECT_THAT(block_of(page), HasSubstr("kernel 0"));
}

TEST(HtmlFormat, TheHeadlineNeedsNoJavaScript) {
  model::Recording recording = traced();
  recording.run.command = {"python3", "a b.py"};
  std::string text = text_of(page_of(recording));
  text.erase(0, text.find("<body>"));  // the script has words of its own
  EXPECT_THAT(text, HasSubstr("python3 'a b.py'"));
  EXPECT_THAT(text, HasSubstr(" mWh"));
  EXPECT_THAT(text, Not(HasSubstr("SIMULATED")));
  EXPECT_THAT(text, Not(HasSubstr("CUT OFF")));
}

TEST(HtmlFormat, TheHeadlineMarksSimulatedAndInterruptedRuns) {
  model::Recording recording = traced();
  recording.run.complete = false;
  for (auto& sensor : recording.sensors) sensor.provenance = model::Provenance::kSimulated;
  const std::string text = text_of(page_of(recording));
  EXPECT_THAT(text, HasSubstr("SIMULATED"));
  EXPECT_THAT(text, HasSubstr("CUT OFF"));
  recording.run.being_written = true;
  const std::string unfinished = text_of(page_of(recording));
  EXPECT_THAT(unfinished, HasSubstr("STILL BEING WRITTEN"));
  EXPECT_THAT(unfinished, Not(HasSubstr("CUT OFF")));
}

TEST(HtmlFormat, WithoutReadingsThereIsNoFigure) {
  model::Recording recording = traced();
  recording.traces.clear();
  recording.readings = {};
  const std::string page = page_of(recording);
  EXPECT_THAT(text_of(page), HasSubstr("no energy"));
  EXPECT_THAT(text_of(page), Not(HasSubstr("kWh")));
  const json data = json::parse(block_of(page));
  EXPECT_TRUE(data["activity"].is_null());
  EXPECT_TRUE(data["profile"]["total"]["energy_joules"].is_null());
  EXPECT_TRUE(data["timeline"]["power"].empty());
}

TEST(HtmlFormat, ManyWindowsAreJoinedAndCountedOnce) {
  model::Recording recording = traced();
  const HostTime begin = *recording.run.work_begin;
  for (int i = 0; i < 10'000; ++i) {
    model::Window window;
    window.name = i % 2 == 0 ? "even" : "odd";
    window.begin = begin + i * std::chrono::microseconds{390};
    window.end = window.begin + std::chrono::microseconds{380};
    recording.windows.push_back(window);
  }
  const json data = json::parse(block_of(page_of(recording)));
  const json& track = data["timeline"]["windows"];
  EXPECT_LE(track["blocks"].size(), 6'000U);
  std::size_t windows = 0;
  for (const json& block : track["blocks"]) windows += block[4].get<std::size_t>();
  EXPECT_EQ(windows, 10'000U);
}

TEST(HtmlFormat, JoinedWindowsOfOneNameHaveTheirSums) {
  model::Recording recording = traced();
  const HostTime begin = *recording.run.work_begin;
  for (int i = 0; i < 10'000; ++i) {
    model::Window& window = recording.windows.emplace_back();
    window.name = "step";
    window.begin = begin + i * std::chrono::microseconds{390};
    window.end = window.begin + std::chrono::microseconds{380};
  }
  const json data = json::parse(block_of(page_of(recording)));
  double joules = 0;
  double seconds = 0;
  for (const json& block : data["timeline"]["windows"]["blocks"]) {
    ASSERT_EQ(block[5].size(), 1U);
    joules += block[5][0][1].get<double>() / 1e6;
    seconds += block[4] == 1 ? block[3].get<double>() : block[6].get<double>();
  }
  const json& group = data["profile"]["windows"][0];
  EXPECT_NEAR(joules, group["energy"][0]["energy_joules"].get<double>(), 0.02 * joules);
  EXPECT_NEAR(seconds, 3.8, 1e-3);
}

TEST(HtmlFormat, WhatIsSelectedHoldsTheIntervalOfASensorThatReadsLow) {
  model::Recording recording = traced();
  for (auto& sensor : recording.sensors) sensor.traits.scale = {0.01, 0.09, {}, {}, {}};
  model::Window& window = recording.windows.emplace_back();
  window.name = "step";
  window.begin = *recording.run.work_begin + std::chrono::seconds{1};
  window.end = window.begin + std::chrono::seconds{2};
  const json data = json::parse(block_of(page_of(recording)));
  const json& own = data["timeline"]["windows"]["blocks"][0][5][0];
  const json& reported = data["profile"]["windows"][0]["energy"][0];
  const double high = own[1].get<double>() / 1e6 + own[2].get<double>() / 1e6;
  EXPECT_NEAR(high, reported["interval_joules"][1].get<double>(), 1e-5);
  const json& track = data["timeline"]["power"][0];
  EXPECT_NEAR(track["calibration_ratio"].get<double>(), 0.09, 0.002);
}

TEST(HtmlFormat, RequestsHaveATrackAndTheNumberInFlight) {
  model::Recording recording = traced();
  const HostTime begin = *recording.run.work_begin;
  const auto window = [&](std::string name, double from, double to) {
    model::Window& w = recording.windows.emplace_back();
    w.name = std::move(name);
    w.begin = begin + duration_of(from);
    w.end = begin + duration_of(to);
  };
  window("warm-up", 0, 1);
  window("request", 1, 2);
  window("chat_request 7", 1.5, 3);
  window("Requests/8", 1.75, 2);
  window("prerequest", 3, 3.5);  // another word
  const json data = json::parse(block_of(page_of(recording)));
  const json& track = data["timeline"]["windows"];
  EXPECT_EQ(track["request_lanes"], 3);
  EXPECT_EQ(track["lanes"], 4);
  for (const json& block : track["blocks"]) {
    const std::string name = track["names"][block[1].get<std::size_t>()];
    EXPECT_EQ(block[0] >= 3, name == "warm-up" || name == "prerequest") << name;
  }
  double sum = 0;
  double most = 0;
  const json& in_flight = track["in_flight"];
  for (const json& mean : in_flight["means"]) {
    sum += mean.get<double>() * in_flight["step_seconds"].get<double>();
    most = std::max(most, mean.get<double>());
  }
  EXPECT_NEAR(sum, 1 + 1.5 + 0.25, 1e-2);
  EXPECT_EQ(most, 3);
}

TEST(HtmlFormat, RequestsOneAfterTheOtherAreNotCounted) {
  model::Recording recording = traced();
  for (int i = 0; i < 3; ++i) {
    model::Window& window = recording.windows.emplace_back();
    window.name = "request";
    window.begin = *recording.run.work_begin + i * std::chrono::seconds{1};
    window.end = window.begin + std::chrono::seconds{1};
  }
  const json data = json::parse(block_of(page_of(recording)));
  EXPECT_EQ(data["timeline"]["windows"]["request_lanes"], 1);
  EXPECT_TRUE(data["timeline"]["windows"]["in_flight"].is_null());
}

// The page without data, and what a kernel, a window and a step of the timeline add to it.
TEST(HtmlFormat, SizesAreBounded) {
  EXPECT_LE(std::string_view(kTemplate).size(), 140'000U);  // an empty page: 150 kB
  EXPECT_LE(std::string_view(kResultsTemplate).size(), 100'000U);
  EXPECT_LE(page_of(traced()).size(), 300'000U);
}

TEST(HtmlFormat, NothingIsRequested) {
  const std::string page = page_of(traced());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const auto* from : {" src=", "<link", "@import", "url(http"}) {
    EXPECT_THAT(page, Not(HasSubstr(from)));
  }
}

TEST(HtmlText, MarkupIsText) {
  EXPECT_EQ(markup_text(R"(</script><b a="1">&amp;)"),
            "&lt;/script&gt;&lt;b a=&quot;1&quot;&gt;&amp;amp;");
}

TEST(HtmlText, WhatCannotBeShownIsReplaced) {
  for (const std::string_view bad : {"\xff", "\xc3", "\x01", "\xe2\x80\xae"}) {  // U+202E
    const std::string text = markup_text("a" + std::string(bad) + "b");
    EXPECT_THAT(text, Not(HasSubstr(bad)));
    EXPECT_TRUE(text.starts_with('a') && text.ends_with('b')) << text;
  }
}

TEST(ScriptJson, EndsNoScript) {
  const std::string hostile = "</script><!-- <script> \xe2\x80\xa8 \xe2\x80\xa9 \xff \\ \" \n";
  Json document;
  document[hostile] = text_json(hostile);
  const std::string text = script_json(document);
  for (const auto* bad : {"<", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xff", "\n"}) {
    EXPECT_THAT(text, Not(HasSubstr(bad)));
  }
}

TEST(ScriptJson, ParsesToTheSameText) {
  const std::string hostile = "</script><!-- \xe2\x80\xa8\xe2\x80\xa9 \xc3\xa4 \\u2028";
  Json document;
  document["name"] = text_json(hostile);
  EXPECT_EQ(nlohmann::json::parse(script_json(document))["name"].get<std::string>(), hostile);
}

TEST(PackedRows, KeepKeysOnceAndAbsentCells) {
  Json rows = Json::array();
  rows.push_back({{"name", "a"}, {"energy", 1}, {"symbol", "x"}});
  rows.push_back({{"name", "b"}, {"symbol", "y"}});
  EXPECT_EQ(packed_rows(rows, {"symbol"}).dump(),
            R"({"keys":["name","energy"],"rows":[["a",1],["b",null]]})");
  EXPECT_EQ(packed_rows(Json::array()).dump(), R"({"keys":[],"rows":[]})");
}

std::string page_of(const BenchResult& result, bool redact = false) {
  PageOptions options;
  options.redact = redact;
  const auto page = bench_to_html({}, {result}, options);
  return page ? *page : page.error().message;
}

bool has(const std::string& page, std::string_view text) {
  return page.find(text) != std::string::npos;
}

TEST(BenchPage, HasTheLevelsThatAreKnown) {
  const auto page = page_of(bench_result());
  for (const char* level : {"rest", "held", "active"}) {
    EXPECT_TRUE(has(page, ">" + std::string(level) + "</th>")) << level;
  }
}

TEST(BenchPage, HasAWarningInsteadOfColumnsThatNoRowHas) {
  auto result = bench_result();
  auto& profile = result.energy->profile;
  for (auto& domain : profile.domains) domain.levels = {};
  profile.warnings = {"idle power is unknown; see /home/user/log"};
  const auto page = page_of(result);
  EXPECT_FALSE(has(page, ">held</th>"));
  EXPECT_TRUE(has(page, ">total</th>"));
  EXPECT_TRUE(has(page, "warning: idle power is unknown; see /home/user/log"));
  EXPECT_FALSE(has(page_of(result, true), "/home/user"));
}

}  // namespace
}  // namespace jouleprof::report
