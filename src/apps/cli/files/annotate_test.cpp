// annotate: what the importer reads of a torch trace, and what the report writes into it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/gzip/gzip.h"
#include "importers/torch/example_torch_trace.h"
#include "importers/torch/torch_trace.h"
#include "report/chrome/torch_annotator.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;
using importers::kBase;
using importers::torch_power;
using importers::TorchTrace;
using importers::trace_text;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

model::Measurement joules(double energy, double error) {
  model::Measurement m;
  m.energy = Energy::joules(energy);
  m.error = Energy::joules(error);
  return m;
}

// 300 W above idle for the gemm, 100 W for the copy.
std::vector<model::ActivityProfile> profiles_of(const model::Trace& trace) {
  model::ActivityProfile p;
  p.domain = torch_power().domains[0];
  p.begin = HostTime{1000s};
  p.end = HostTime{1004s};
  p.method = "by \"hand\"";
  for (const auto& kernel : trace.classes) {
    model::ActivityRow row;
    row.name = kernel.name;
    row.kernel = kernel;
    if (kernel.name.starts_with("gemm")) {
      row.busy = 3ms;
      row.energy = joules(0.9, 0.09);
    } else if (kernel.kind == model::ActivityKind::kMemcpy) {
      row.busy = 1ms;
      row.energy = joules(0.1, 0.2);
      row.resolvable = false;
      row.reason = "too short";
    } else if (kernel.kind == model::ActivityKind::kMemset) {
      row.reason = "nothing is known";
    }
    p.by_kernel.push_back(row);
  }
  return {p};
}

struct Annotated {
  std::string text;
  report::TorchAnnotation counts;
};

class AnnotateTest : public ::testing::Test {
 protected:
  Result<TorchTrace> read(const std::string& text) {
    tree_.write("trace.json", text);
    return TorchTrace::read(tree_ / "trace.json", torch_power());
  }
  Annotated annotate(const std::string& text) {
    const auto trace = read(text);
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace) return {};
    const auto profiles = profiles_of(trace->profiled().trace);
    report::CounterTrack track{"gpu0 power (W)", {}};
    for (int i = 0; i < 3; ++i) {
      track.steps.push_back({HostTime{1001s + i * 1ms}, HostTime{1001s + (i + 1) * 1ms},
                             Power::watts(300.5), Power::watts(2)});
    }
    return write(*trace, profiles, {track});
  }
  static Annotated write(const TorchTrace& trace,
                         const std::vector<model::ActivityProfile>& profiles,
                         const std::vector<report::CounterTrack>& tracks) {
    std::ostringstream out;
    report::TorchAnnotator annotator(trace.profiled(), profiles, tracks, "9.9");
    EXPECT_TRUE(trace.for_each_piece([&](const model::TracePiece& piece) {
      annotator.write(out, piece);
      return out.good();
    }));
    return {out.str(), annotator.annotation()};
  }
  std::string error(const std::string& text) {
    const auto trace = read(text);
    EXPECT_FALSE(trace);
    return trace ? "" : trace.error().message;
  }
  // Removes what the annotation added.
  static std::string original(std::string text) {
    static const std::regex kEvents(R"re(,?\n  \{[^\n]*"cat": "jouleprof"[^\n]*\})re");
    static const std::regex kBare(R"re((, )?"args": \{"energy (high )?\(J\)"[^{}]*\})re");
    static const std::regex kArgs(
        R"re((, )?"energy (high )?\(J\)": [^,}]*(, "(energy [^"]*|power [^"]*|kernels|energy|provenance)": )re"
        R"re(("[^"]*"|[-+.0-9e]*))*)re");
    text = std::regex_replace(text, kEvents, "");
    text = std::regex_replace(text, kBare, "");
    return std::regex_replace(text, kArgs, "");
  }

  TempTree tree_;
};

TEST_F(AnnotateTest, KernelsAndWhatLaunchedThemHaveTheirEnergy) {
  const Annotated a = annotate(trace_text());
  EXPECT_EQ(a.counts.kernels, 2u);
  EXPECT_EQ(a.counts.without_energy, 2u);
  EXPECT_EQ(a.counts.ranges, 2u);
  const Json json = Json::parse(a.text);
  std::map<std::string, Json> args;
  for (const auto& e : json["traceEvents"]) {
    const std::string key = e["name"].get<std::string>() + " " + e["tid"].dump();
    args[key] = e.value("args", Json::object());
  }
  const Json& gemm = args.at("gemm<float, 4>(float*) 7");
  EXPECT_DOUBLE_EQ(gemm["energy (J)"], 0.6);
  EXPECT_DOUBLE_EQ(gemm["energy low (J)"], 0.54);
  EXPECT_DOUBLE_EQ(gemm["energy high (J)"], 0.66);
  EXPECT_DOUBLE_EQ(gemm["power above idle (W)"], 300);
  EXPECT_FALSE(gemm.contains("energy"));
  const Json& copy = args.at("Memcpy DtoD (Device -> Device) 7");
  EXPECT_FALSE(copy.contains("energy (J)"));  // no number that could be taken for a measured one
  EXPECT_FALSE(copy.contains("power above idle (W)"));
  EXPECT_GT(copy["energy high (J)"], 0);
  EXPECT_EQ(copy["energy"], "not resolvable: too short");
  const Json& linear = args.at("aten::linear ä 11");
  EXPECT_DOUBLE_EQ(linear["energy (J)"], 0.7);
  EXPECT_DOUBLE_EQ(linear["energy high (J)"], 0.96);
  EXPECT_EQ(linear["kernels"], 2);
  EXPECT_DOUBLE_EQ(args.at("backward 12")["energy (J)"], 0.3);
  EXPECT_FALSE(args.at("late 7").contains("energy (J)"));
  EXPECT_FALSE(args.at("Memset (Device) 8").contains("energy (J)"));
  const Json& own = args.at("jouleprof 0");
  EXPECT_EQ(own["version"], "9.9");
  EXPECT_EQ(own["gpu0"]["method"], "by \"hand\"");
  std::size_t steps = 0;
  for (const auto& e : json["traceEvents"]) {
    if (e["ph"] != "C") continue;
    EXPECT_DOUBLE_EQ(e["ts"].get<double>(), 1e6 + 1000.0 * static_cast<double>(steps / 3));
    EXPECT_EQ(e["args"].size(), 1u);
    const std::pair<const char*, double> expected[] = {{"gpu0 power (W)", 300.5},
                                                       {"gpu0 power (W), 95 % low", 298.5},
                                                       {"gpu0 power (W), 95 % high", 302.5}};
    EXPECT_EQ(e["name"], expected[steps % 3].first);
    EXPECT_DOUBLE_EQ(e["args"]["watts"], expected[steps % 3].second);
    ++steps;
  }
  EXPECT_EQ(steps, 9u);
}

TEST_F(AnnotateTest, AllOtherBytesAreUnchanged) {
  const std::string text = trace_text();
  EXPECT_EQ(original(annotate(text).text), text);
  std::string array = text.substr(text.find("[\n\n"));
  array = array.substr(0, array.rfind("],") + 1) + "\n";
  EXPECT_THAT(error(array), HasSubstr("baseTimeNanoseconds"));
  // Old versions' times count from 1970.
  const std::regex times(R"re("ts": (\d+)(\.\d+)?)re");
  std::string old;
  std::size_t last = 0;
  for (auto it = std::sregex_iterator(array.begin(), array.end(), times);
       it != std::sregex_iterator(); ++it) {
    old += array.substr(last, static_cast<std::size_t>(it->position()) - last);
    old += fmt::format("\"ts\": {}{}", kBase / 1000 + std::stoll((*it)[1]), (*it)[2].str());
    last = static_cast<std::size_t>(it->position() + it->length());
  }
  old += array.substr(last);
  const Annotated a = annotate(old);
  EXPECT_EQ(original(a.text), old);
  EXPECT_EQ(a.counts.kernels, 2u);
}

TEST_F(AnnotateTest, TheBaseTimeMayFollowTheEvents) {
  std::string text = trace_text();
  const std::string base = "\"baseTimeNanoseconds\": 1790857026000000000,";
  text.erase(text.find(base), base.size());
  text.insert(text.find("\"traceName\""), base);
  const Annotated a = annotate(text);
  EXPECT_EQ(original(a.text), text);
  EXPECT_EQ(a.counts.kernels, 2u);
}

TEST_F(AnnotateTest, ATraceCutOffAnywhereIsClosedAfterItsLastCompleteEvent) {
  const std::string text = trace_text();
  const std::size_t first = text.find("\"gpu_memcpy\"");
  for (std::size_t n = first; n + 1 < text.rfind('}'); n += 5) {
    const auto trace = read(text.substr(0, n));
    ASSERT_TRUE(trace) << n;
    EXPECT_TRUE(trace->profiled().cut_off);
    const auto profiles = profiles_of(trace->profiled().trace);
    const std::string out = write(*trace, profiles, {}).text;
    const Json json = Json::parse(out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << n << out;
    EXPECT_GE(json["traceEvents"].size(), 7u + 3);
    // Only the closing brackets are added.
    const std::string bare = original(out);
    EXPECT_TRUE(text.starts_with(bare.substr(0, bare.rfind(']') - 1))) << n;
  }
}

TEST_F(AnnotateTest, CompressedAndCutOff) {
  std::ostringstream packed;
  {
    GzipStream gzip(packed);
    gzip << trace_text();
  }
  EXPECT_EQ(annotate(packed.str()).counts.kernels, 2u);
  const auto cut = read(packed.str().substr(0, packed.str().size() - 150));
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_TRUE(cut->profiled().cut_off);
}

TEST_F(AnnotateTest, AnAnnotatedTraceIsRefused) {
  EXPECT_THAT(error(annotate(trace_text()).text), HasSubstr("annotated already"));
}

}  // namespace
}  // namespace jouleprof::cli
