#include "report/format/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <sstream>

#include "analysis/synthetic_run_test.h"
#include "base/gzip/gzip.h"
#include "base/text.h"
#include "report/csv/readings_csv.h"
#include "report/example_bench_test.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::report {
namespace {

using analysis::Part;
using analysis::simulated::SyntheticRun;
using nlohmann::json;
using ::testing::HasSubstr;

analysis::Run example_run() {
  SyntheticRun run;
  run.kernels = analysis::simulated::various_kernels(4);
  run.seconds = 10;
  auto recording = analysis::simulated::synthesise(run).recording;
  for (auto& sensor : recording.sensors) sensor.provenance = model::Provenance::kSimulated;
  return analysis::Run(std::move(recording));
}

std::string written(std::string_view name, const analysis::Run& run, const Part& part = {},
                    const FormatOptions& options = {}) {
  std::ostringstream out;
  const auto made = find_format(name)->write(run, part, options, out);
  EXPECT_TRUE(made) << name << ": " << made.error().message;
  return out.str();
}

TEST(Formats, HaveNamesAndExtensionsOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> extensions;
  for (const Format* format : formats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_TRUE(extensions.insert(format->extension).second) << format->extension;
    EXPECT_FALSE(format->shows.empty());
    EXPECT_EQ(find_format(format->name), format);
  }
  EXPECT_EQ(find_format("no such"), nullptr);
}

TEST(Formats, TheLongestExtensionDecides) {
  EXPECT_EQ(format_of_file("a.trace.json.gz")->name, "chrome");
  EXPECT_EQ(format_of_file("a.json")->name, "json");
  EXPECT_EQ(format_of_file("a.windows.csv")->name, "windows");
  EXPECT_EQ(format_of_file("a.csv")->name, "csv");
  EXPECT_EQ(format_of_file("a.pb.gz")->name, "pprof");
  EXPECT_EQ(format_of_file("a.xyz"), nullptr);
}

TEST(Formats, EachWritesTheWholeRunAndAPart) {
  const auto run = example_run();
  const Part part{std::chrono::seconds{2}, std::chrono::seconds{6}};
  for (const Format* format : formats()) {
    if (format->name == "png") continue;  // needs librsvg; see svg/run_svg_test.cpp
    const std::string whole = written(format->name, run);
    EXPECT_FALSE(whole.empty()) << format->name;
    // A curve of a shorter time may have more steps.
    EXPECT_LE(written(format->name, run, part).size(), whole.size() + 1000) << format->name;
  }
}

TEST(Formats, APartHasTheSameJoulesInEveryFormat) {
  const auto run = example_run();
  const Part part{std::chrono::seconds{2}, std::chrono::seconds{6}};
  const std::string text = written("json", run, part);
  EXPECT_EQ(text, to_json(*run.profile(part)));
  const json document = json::parse(text);
  const double joules = document["domains"][0]["energy_joules"].get<double>();
  std::istringstream rows(written("domains", run, part));
  std::string header, row;
  std::getline(rows, header);
  std::getline(rows, row);
  EXPECT_THAT(row, HasSubstr(fmt::format("{:.6f}", joules)));
}

TEST(Formats, ReadingsOfAPartLieWithinIt) {
  const auto run = example_run();
  std::istringstream rows(written("csv", run, {std::chrono::seconds{2}, std::chrono::seconds{6}}));
  std::string row;
  std::getline(rows, row);
  int count = 0;
  for (; std::getline(rows, row); ++count) {
    const double t = std::stod(row.substr(row.find(',') + 1));
    EXPECT_GE(t, 2);
    EXPECT_LE(t, 6);
  }
  EXPECT_GT(count, 150);
}

TEST(Formats, WithoutATraceTheErrorNamesTheCommand) {
  model::Recording recording = example_run().recording();
  recording.traces.clear();
  recording.warnings.push_back({{}, "CUPTI is held by another tool"});
  const analysis::Run run(std::move(recording));
  for (const auto* name : {"pprof", "speedscope"}) {
    std::ostringstream out;
    const auto made = find_format(name)->write(run, {}, {}, out);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, HasSubstr("jouleprof run --kernels -- COMMAND"));
    EXPECT_THAT(made.error().message, HasSubstr("CUPTI is held by another tool"));
    EXPECT_TRUE(out.str().empty());
  }
}

// Spreadsheets take a cell that begins so for a formula, and run it.
TEST(Csv, NoCellOfAnyTableIsAFormula) {
  model::Recording recording = example_run().recording();
  const std::array<std::string, 5> evil{"=1+1", "+cmd", "-x|y", "@SUM(A1)", "\t=1"};
  for (auto& domain : recording.domains) domain.device = evil[0], domain.name = evil[1];
  for (auto& sensor : recording.sensors) sensor.name = evil[3];
  auto& trace = recording.traces.at(0);
  trace.program = evil[0];
  for (std::size_t k = 0; k < trace.classes.size(); ++k) {
    trace.classes[k].name = evil[k % evil.size()];
    trace.layers[k].name = trace.layers[k].type = evil[k % evil.size()];
  }
  trace.ranges.emplace_back().name = evil[0];
  for (auto& scope : trace.scopes) scope.range = 0;
  const auto begin = recording.run.work_begin.value_or(HostTime{});
  const auto gauge = static_cast<model::SensorId>(recording.sensors.size());
  recording.sensors.push_back(
      {gauge, recording.domains[0].id, model::SensorKind::kGauge, evil[0], {}, {}});
  recording.readings.gauges.push_back({gauge, begin + std::chrono::seconds{1}, 0.5});
  for (const auto& name : evil) {
    model::Process process;
    process.id = static_cast<model::ProcessId>(recording.processes.size());
    process.pid = 100 + static_cast<pid_t>(recording.processes.size());
    process.name = process.command_line = name;
    process.in_tree = true;
    recording.processes.push_back(process);
    recording.windows.push_back(
        {name, begin + std::chrono::seconds{1}, begin + std::chrono::seconds{2}, 100, 100});
    recording.imported_windows.push_back({name,
                                          {},
                                          std::chrono::seconds{1},
                                          {{recording.domains[0].id, Energy::joules(1)}},
                                          {{name, name}}});
  }
  const analysis::Run run(std::move(recording));

  std::map<std::string, std::string> tables;
  for (const Format* format : formats()) {
    if (!format->extension.ends_with(".csv")) continue;
    tables[std::string(format->name)] = written(format->name, run);
    if (!format->has_tables) continue;
    for (const auto by :
         {ActivityBy::kKernel, ActivityBy::kLayer, ActivityBy::kRange, ActivityBy::kPhase}) {
      FormatOptions options;
      options.by.emplace().by = by;
      tables["by " + std::to_string(static_cast<int>(by))] =
          written(format->name, run, {}, options);
    }
    FormatOptions options;
    options.windows = true;
    tables["by window"] = written(format->name, run, {}, options);
  }
  auto bench = bench_result();
  bench.bench.window = bench.bench.workload = bench.bench.device_name = evil[0];
  tables["bench"] = bench_to_csv({bench});
  model::Snapshot snapshot;
  snapshot.domains.emplace_back().domain.device = evil[0];
  snapshot.domains.back().domain.name = evil[3];
  snapshot.domains.back().provenance = model::Provenance::kMeasured;
  snapshot.domains.back().power = Power::watts(100);
  tables["monitor"] = snapshot_csv_header() + snapshot_csv_rows(snapshot);
  ASSERT_GE(tables.size(), 12U);

  for (const auto& [name, table] : tables) {
    std::size_t marked = 0;
    for (std::istringstream lines(table); lines.good();) {
      std::string line;
      std::getline(lines, line);
      const auto cells = split_csv(line);
      ASSERT_TRUE(cells) << name << ": " << line;
      for (const std::string& cell : *cells) {
        const bool begins =
            !cell.empty() && std::string_view("=+-@\t\r").find(cell[0]) != std::string_view::npos;
        EXPECT_TRUE(!begins || parse_number(cell)) << name << ": " << cell;
        marked += cell.starts_with('\'') ? 1 : 0;
      }
    }
    EXPECT_TRUE(marked > 0 || name == "by 3") << name << "\n" << table;  // phases have our names
  }
}

// Microjoules by the leaf's name, as pprof reads them; or by the root's.
std::map<std::string, std::int64_t> pprof_leaves(const std::string& packed, bool roots = false) {
  const TempTree tree({{"profile.pb.gz", packed}});
  auto reader = GzipReader::open(tree / "profile.pb.gz");
  EXPECT_TRUE(reader);
  std::string bytes(1 << 20, '\0');
  bytes.resize(*reader->read(bytes.data(), bytes.size()));
  std::vector<std::string> texts;
  std::map<std::uint64_t, std::int64_t> name_of;  // of functions, which number as locations do
  std::vector<std::pair<std::uint64_t, std::int64_t>> samples;
  protozero::pbf_reader profile(bytes);
  while (profile.next()) {
    if (profile.tag() == 2) {
      auto sample = profile.get_message();
      std::pair<std::uint64_t, std::int64_t> leaf{};
      while (sample.next()) {
        if (sample.tag() == 1) {
          for (const auto location : sample.get_packed_uint64()) {
            if (roots || leaf.first == 0) leaf.first = location;
          }
        }
        if (sample.tag() == 2) leaf.second = *sample.get_packed_int64().begin();
      }
      samples.push_back(leaf);
    } else if (profile.tag() == 5) {
      auto function = profile.get_message();
      std::uint64_t id = 0;
      while (function.next()) {
        if (function.tag() == 1) id = function.get_uint64();
        if (function.tag() == 2) name_of[id] = function.get_int64();
      }
    } else if (profile.tag() == 6) {
      texts.push_back(profile.get_string());
    } else {
      profile.skip();
    }
  }
  std::map<std::string, std::int64_t> leaves;
  for (const auto& [location, energy] : samples) {
    leaves[texts.at(static_cast<std::size_t>(name_of.at(location)))] += energy;
  }
  return leaves;
}

TEST(Pprof, SamplesSumToTheMeasuredEnergy) {
  const auto run = example_run();
  const auto& profile = run.activity()->front();
  const auto leaves = pprof_leaves(written("pprof", run));
  std::int64_t sum = 0;
  for (const auto& [name, energy] : leaves) sum += energy;
  EXPECT_EQ(sum, profile.measured.energy.microjoules());
  EXPECT_EQ(leaves.at("(idle)"), profile.idle.microjoules());  // its rest power is not known
  EXPECT_EQ(leaves.at("(unattributed)"), profile.unattributed.microjoules());
  for (const auto& [root, energy] : pprof_leaves(written("pprof", run), true)) {
    EXPECT_THAT(root, HasSubstr("SIMULATED"));
  }
}

TEST(Speedscope, WeightsSumToTheEnergyThatIsNotNegative) {
  const auto run = example_run();
  const auto& profile = run.activity()->front();
  const json document = json::parse(written("speedscope", run));
  const json& energy = document["profiles"][0];
  std::int64_t sum = 0;
  for (const auto& weight : energy["weights"]) {
    EXPECT_GT(weight.get<std::int64_t>(), 0);
    sum += weight.get<std::int64_t>();
  }
  EXPECT_EQ(sum, energy["endValue"].get<std::int64_t>());
  const Energy negative = std::min(profile.unattributed, Energy{});
  EXPECT_EQ(sum, (profile.measured.energy - negative).microjoules());
  EXPECT_EQ(energy["name"].get<std::string>().find("unattributed") != std::string::npos,
            negative < Energy{});
  const std::size_t frames = document["shared"]["frames"].size();
  for (const auto& path : energy["samples"]) {
    ASSERT_GE(path.size(), 2U);
    for (const auto& frame : path) EXPECT_LT(frame.get<std::size_t>(), frames);
    const std::size_t root = path[0].get<std::size_t>();
    EXPECT_THAT(document["shared"]["frames"][root]["name"].get<std::string>(),
                HasSubstr("SIMULATED"));
  }
  EXPECT_THAT(energy["name"].get<std::string>(), HasSubstr("SIMULATED"));
}

}  // namespace
}  // namespace jouleprof::report
