#include "importers/csv/csv_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/gzip/gzip.h"
#include "importers/importers_fixture.h"
#include "model/activity/activity_codec.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::importers {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kSamples =
    "t_us,power_mw\n1000000000,50000\n1000020000,60000\n1000040000,70000\n";
const std::string kCounter =
    "t_before_ns,t_after_ns,energy_mj\n1000000000000,1000000500000,7000\n"
    "1000040000000,1000040500000,9500\n";
const std::string kKernels =
    "kernel_id,start_ns,duration_ns\n0,1000001000000,6000000\n1,1000004000000,2000000\n"
    "0,1000020000000,1000000\n";

struct Busy {
  std::uint64_t launches = 0;
  std::uint64_t nanoseconds = 0;
};

std::vector<Busy> busy_by_class(const model::Trace& trace, model::ChunkKind kind) {
  std::vector<Busy> out(trace.classes.size());
  for (const auto& chunk : trace.chunks) {
    if (chunk.kind != kind) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    const auto add = [&](const auto& entry, std::uint64_t launches, std::uint64_t busy) {
      out.at(entry.kernel_class).launches += launches;
      out.at(entry.kernel_class).nanoseconds += busy;
    };
    if (kind == model::ChunkKind::kBins) {
      for (model::BinEntry e; decoder.next(e);) add(e, e.launches, e.busy_nanoseconds);
    } else if (kind == model::ChunkKind::kScopes) {
      for (model::ScopeEntry e; decoder.next(e);) add(e, e.launches, e.busy_nanoseconds);
    } else {
      for (model::EventEntry e; decoder.next(e);) add(e, 1, e.duration_nanoseconds);
    }
    EXPECT_TRUE(decoder.ok());
  }
  return out;
}

class CsvRecording : public ::testing::Test {
 protected:
  Result<model::Recording> import(const std::string& samples, const std::string& counter = "",
                                  const std::string& kernels = "", const std::string& names = "") {
    const auto put = [&](const char* name, const std::string& text) -> std::filesystem::path {
      if (text.empty()) return {};
      tree_.write(name, text);
      return tree_ / name;
    };
    sources_.samples = put("samples", samples);
    sources_.counter = put("counter", counter);
    sources_.kernels = put("kernels", kernels);
    sources_.names = put("names", names);
    return import_csv(sources_);
  }
  Error error(const std::string& samples, const std::string& counter = "",
              const std::string& kernels = "", const std::string& names = "") {
    const auto recording = import(samples, counter, kernels, names);
    EXPECT_FALSE(recording);
    return recording ? Error{} : recording.error();
  }

  TempTree tree_;
  CsvSources sources_;
};

TEST_F(CsvRecording, ThreeFilesAreOneRecording) {
  sources_.device_name = "NVIDIA H100 80GB HBM3";
  sources_.idle = {"1000.03:1000.04", "0s:1ms"};
  const auto r = import(kSamples, kCounter, kKernels);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->run.source, "import:csv");
  EXPECT_TRUE(r->warnings.empty()) << r->warnings[0].text;
  ASSERT_EQ(r->domains.size(), 1u);
  EXPECT_EQ(r->domains[0].device, "gpu0");
  EXPECT_EQ(r->domains[0].name, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(r->sensors.size(), 2u);
  EXPECT_EQ(r->sensors[0].kind, model::SensorKind::kEnergyCounter);
  EXPECT_EQ(r->sensors[0].traits.refresh, Duration{100ms});
  EXPECT_EQ(r->sensors[0].traits.quantum, Energy::millijoules(1));
  EXPECT_EQ(r->sensors[1].kind, model::SensorKind::kPowerRing);
  EXPECT_EQ(r->sensors[1].traits.rise, Duration{14ms});
  ASSERT_EQ(r->readings.powers.size(), 3u);
  EXPECT_EQ(r->readings.powers[1].at, HostTime{20ms});
  EXPECT_EQ(r->readings.powers[1].power.watts(), 60);
  EXPECT_EQ(r->readings.counters.at(1).after, HostTime{40ms + 500us});
  EXPECT_EQ(r->readings.counters.at(1).total, Energy::joules(9.5));
  EXPECT_EQ(r->clock_points.at(0).real, RealTime{1000s});
  EXPECT_EQ(r->run.work_begin, HostTime{1ms});
  EXPECT_EQ(r->run.work_end, HostTime{21ms});
  EXPECT_EQ(r->idle_spans, (std::vector<model::IdleSpan>{{HostTime{30ms}, HostTime{40ms}},
                                                         {HostTime{0ms}, HostTime{1ms}}}));
  ASSERT_EQ(r->traces.size(), 1u);
  const model::Trace& trace = r->traces[0];
  ASSERT_EQ(trace.classes.size(), 2u);
  EXPECT_EQ(trace.classes[0].name, "kernel 0");
  EXPECT_EQ(trace.status.activities, 3u);
  EXPECT_TRUE(trace.status.ended);
  for (const auto kind : {model::ChunkKind::kBins, model::ChunkKind::kScopes}) {
    const auto busy = busy_by_class(trace, kind);  // of 4 to 6 ms each has half
    EXPECT_EQ(busy[0].launches, 2u);
    EXPECT_EQ(busy[0].nanoseconds, 6'000'000u);
    EXPECT_EQ(busy[1].nanoseconds, 1'000'000u);
  }
}

TEST_F(CsvRecording, HeadersGiveTheUnits) {
  const auto a = import(kSamples, kCounter);
  const auto b = import("power_w,t_s\n50,1000\n60,1000.02\n70.000,1000.04\n",
                        "t_before_us,energy_joules,t_after_us\n1000000000,7.0,1000000500\n"
                        "1000040000,9.5,1000040500\n");
  ASSERT_TRUE(a && b) << (a ? b : a).error().message;
  EXPECT_EQ(a->readings, b->readings);
  const auto one_stamp = import("", "t_ns,energy_uj\n5,1\n9,2\n");
  ASSERT_TRUE(one_stamp) << one_stamp.error().message;
  EXPECT_EQ(one_stamp->readings.counters.at(1).before, HostTime{4ns});
  EXPECT_EQ(one_stamp->readings.counters.at(1).after, HostTime{4ns});
  const auto ends = import(kSamples, "",
                           "name,start_ms,end_ms,stream\n\"f<a, b>\",1000001,1000002.5,7\n"
                           "Memset (Device),1000004,1000004.25,7\n");
  ASSERT_TRUE(ends) << ends.error().message;
  EXPECT_EQ(ends->traces[0].classes[0].name, "f<a, b>");
  EXPECT_EQ(ends->traces[0].classes[1].kind, model::ActivityKind::kMemset);
  EXPECT_EQ(busy_by_class(ends->traces[0], model::ChunkKind::kBins)[0].nanoseconds, 1'500'000u);
}

TEST_F(CsvRecording, NamesAndTheirBase) {
  sources_.events = true;
  const auto r =
      import(kSamples, "", "kernel_id,start_us,duration_us\n5,0,10\n6,5,3\n5,100,10\n7,0,1\n",
             R"({"base_unix_ns": 1000010000000,
          "kernels": {"5": "gemm", "6": "Command Buffer Full", "7": "gemm"}, "more": []})");
  ASSERT_TRUE(r) << r.error().message;
  const model::Trace& trace = r->traces.at(0);
  ASSERT_EQ(trace.classes.size(), 1u);
  EXPECT_EQ(trace.classes[0].name, "gemm");
  EXPECT_EQ(busy_by_class(trace, model::ChunkKind::kEvents)[0].launches, 3u);
  EXPECT_EQ(r->run.work_begin, HostTime{10ms});
  EXPECT_TRUE(has_warning(*r, "1 record of 'Command Buffer Full' left out"));
}

TEST_F(CsvRecording, CompressedFilesAreRead) {
  std::ostringstream packed;
  {
    GzipStream gzip(packed);
    gzip << kSamples;
  }
  const auto plain = import(kSamples);
  const auto r = import(packed.str());
  ASSERT_TRUE(r && plain);
  EXPECT_EQ(r->readings, plain->readings);
  EXPECT_THAT(error(packed.str().substr(0, packed.str().size() - 12)).message,
              HasSubstr("cut off"));
}

TEST_F(CsvRecording, ALastNumberThatMayBeCutOffIsLeftOut) {
  const auto r = import(kSamples + "1000060000,7");  // of 70000
  ASSERT_TRUE(r);
  EXPECT_EQ(r->readings.powers.size(), 3u);
  EXPECT_TRUE(r->run.complete);
  EXPECT_TRUE(has_warning(*r, "line 5"));
}

TEST_F(CsvRecording, ErrorsNameLineAndColumn) {
  EXPECT_THAT(error("").message, HasSubstr("--samples"));
  EXPECT_THAT(error("t_us,power\n1,2\n").message,
              AllOf(HasSubstr("line 1"), HasSubstr("'power_mw', 'power_w' or 'power_watts'")));
  EXPECT_THAT(error("t_us,power_mw,colour\n1,2,3\n").message, HasSubstr("'colour'"));
  EXPECT_THAT(error("t_us,t_ns,power_mw\n1,2,3\n").message, HasSubstr("have the same meaning"));
  EXPECT_THAT(error("t_us,power_mw\n1000060000,x\n").message,
              HasSubstr("line 2, column 'power_mw': 'x' is not a number"));
  EXPECT_TRUE(has_warning(*import(kSamples + "1000060000,x\n"),
                          "1 row left out that cannot be right; the first is"));
  EXPECT_TRUE(has_warning(*import(kSamples + "1000060000\n"), "line 5: 1 fields"));
  EXPECT_THAT(error(kSamples + "1000039999,5\n").message,
              HasSubstr("line 5, column 't_us': the time goes back"));
  EXPECT_THAT(error("t_us,power_mw\n-5,2\n").message, HasSubstr("column 't_us': no time"));
  EXPECT_THAT(error("t_us,power_mw\n99999999999999999,2\n").message, HasSubstr("line 2"));
  EXPECT_EQ(error("t_us,power_mw\n").code, Errc::kUnavailable);
  EXPECT_EQ(error("t_us,power_mw\n5,5\n").code, Errc::kUnavailable);
  EXPECT_THAT(error("", "t_before_ns,energy_mj\n1,2\n").message, HasSubstr("t_after_ns"));
  EXPECT_THAT(error("", "t_ns,energy_mj\n1,-2\n").message, HasSubstr("never negative"));
  EXPECT_THAT(error(kSamples, "", "kernel_id,start_ns\n1,2\n").message, HasSubstr("'duration_ns'"));
  EXPECT_THAT(error(kSamples, "", "start_ns,duration_ns\n1,2\n").message, HasSubstr("'kernel_id'"));
  EXPECT_THAT(error(kSamples, "", "kernel_id,start_ns,duration_ns\n0,5,-1\n").message,
              HasSubstr("line 2, column 'duration_ns'"));
  EXPECT_THAT(error(kSamples, "", "kernel_id,start_ns,duration_ns\n0,5,1\n").message,
              HasSubstr("ran 1000.000 s before the readings"));
  EXPECT_THAT(error(kSamples, "", "kernel_id,start_ns,duration_ms\n0,5,86400000\n").message,
              HasSubstr("line 2, column 'duration_ms': '86400000' is no duration of a kernel"));
  EXPECT_THAT(error(kSamples, "", kKernels, "{\"kernels\": {\"0\": \"a\"}}").message,
              HasSubstr("line 3, column 'kernel_id': there is no name for kernel 1"));
  EXPECT_THAT(error(kSamples, "", kKernels, "[]").message, HasSubstr("not a JSON object"));
  sources_.idle = {"1000:3"};
  EXPECT_THAT(error(kSamples).message, HasSubstr("'1000:3' is empty"));
  sources_.idle = {"soon:3"};
  EXPECT_THAT(error(kSamples).message, HasSubstr("'soon'"));
}

TEST_F(CsvRecording, AKernelThatCannotBeRightIsLeftOutAndCountsAsDropped) {
  const std::string bad[] = {"1,x,2", "1,1000020000000", "0,1000020000000,-7",
                             "0,1000020000000,86400000000000"};
  const auto whole = import(kSamples, "", kKernels)->traces.at(0).status.activities;
  for (const auto& row : bad) {
    SCOPED_TRACE(row);
    for (const bool is_first : {true, false}) {
      auto rows = kKernels;
      rows.insert(is_first ? rows.find('\n') + 1 : rows.size(), row + "\n");
      const auto r = import(kSamples, "", rows);
      ASSERT_TRUE(r);
      EXPECT_EQ(r->traces.at(0).status.dropped, 1u);
      EXPECT_EQ(r->traces.at(0).status.activities, whole);
      EXPECT_TRUE(has_warning(*r, "1 row left out that cannot be right; the first is"));
    }
  }
}

// The known answers are sums over the files, made apart from this code.
TEST(CsvH100, Mix) {
  const std::filesystem::path folder = JOULEPROF_SOURCE_DIR "/tests/fixtures/h100";
  CsvSources sources;
  sources.samples = folder / "mix_samples.csv.gz";
  sources.counter = folder / "mix_energy.csv.gz";
  sources.kernels = folder / "mix_kernels.csv.gz";
  sources.names = folder / "mix_names.json";
  sources.device_name = "NVIDIA H100 80GB HBM3";
  sources.idle = {"0s:7s"};
  const auto r = import_csv(sources);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->readings.powers.size(), 1642u);
  ASSERT_EQ(r->readings.counters.size(), 341u);
  EXPECT_EQ(r->readings.counters.back().total - r->readings.counters.front().total,
            Energy::joules(14259.34));
  const model::Trace& trace = r->traces.at(0);
  EXPECT_EQ(trace.status.activities, 337724u);
  EXPECT_EQ(trace.status.late, 0u);
  ASSERT_EQ(trace.classes.size(), 10u);
  EXPECT_EQ(trace.classes[1].name, "Memset (Device)");
  EXPECT_EQ(trace.classes[1].kind, model::ActivityKind::kMemset);
  const auto busy = busy_by_class(trace, model::ChunkKind::kBins);
  EXPECT_EQ(busy_by_class(trace, model::ChunkKind::kScopes)[0].nanoseconds, busy[0].nanoseconds);
  std::uint64_t all = 0;
  for (const Busy& b : busy) all += b.nanoseconds;
  EXPECT_EQ(all, 17'345'407'212u);  // nothing overlaps
  for (std::size_t i = 0; i < trace.classes.size(); ++i) {
    if (trace.classes[i].name == "nvjet_sm90_tst_64x48_64x15_2x4_h_bz_NNT") {
      EXPECT_EQ(busy[i].launches, 123971u);
      EXPECT_EQ(busy[i].nanoseconds, 407'584'411u);
    }
  }
}

}  // namespace
}  // namespace jouleprof::importers
