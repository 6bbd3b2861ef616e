#include "importers/torch/torch_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/torch/example_torch_trace.h"
#include "model/activity/activity_codec.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::importers {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class TorchTraceTest : public ::testing::Test {
 protected:
  Result<TorchTrace> read(const std::string& text) {
    tree_.write("trace.json", text);
    return TorchTrace::read(tree_ / "trace.json", torch_power());
  }
  std::string error(const std::string& text) {
    const auto trace = read(text);
    EXPECT_FALSE(trace);
    return trace ? "" : trace.error().message;
  }

  TempTree tree_;
};

TEST_F(TorchTraceTest, KernelsBecomeActivity) {
  const auto trace = read(trace_text());
  ASSERT_TRUE(trace) << trace.error().message;
  const auto& launches = trace->profiled().launches;
  EXPECT_EQ(launches.size(), 5u);
  const model::Trace& t = trace->profiled().trace;
  ASSERT_EQ(t.classes.size(), 4u);
  EXPECT_EQ(t.classes[0].name, "gemm<float, 4>(float*)");
  EXPECT_EQ(t.classes[0].grid, (std::array<std::uint32_t, 3>{16, 4, 1}));
  EXPECT_EQ(t.classes[0].block, (std::array<std::uint32_t, 3>{256, 1, 1}));
  EXPECT_EQ(t.classes[1].kind, model::ActivityKind::kMemcpy);
  EXPECT_EQ(t.classes[1].bytes, 1024u);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.devices[0].uuid, "GPU-5");
  EXPECT_EQ(launches[0].begin, HostTime{1000s + 1s + 500500ns});
  EXPECT_EQ(trace->profiled().begin, RealTime{Duration{kBase} + 1s});
  std::uint64_t gemm = 0;
  for (const auto& chunk : t.chunks) {
    if (chunk.kind != model::ChunkKind::kBins) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::BinEntry e; decoder.next(e);) {
      if (e.kernel_class == 0) gemm += e.busy_nanoseconds;
    }
  }
  EXPECT_EQ(gemm, 3'000'000u);
  EXPECT_FALSE(trace->profiled().cut_off);
}

TEST_F(TorchTraceTest, PiecesAreTheFileAndNameItsEvents) {
  const auto trace = read(trace_text());
  ASSERT_TRUE(trace) << trace.error().message;
  std::string all;
  std::size_t launches = 0;
  ASSERT_TRUE(trace->for_each_piece([&](const model::TracePiece& piece) {
    all += piece.text;
    if (piece.kind != model::TracePiece::Kind::kLaunch) return true;
    EXPECT_EQ(piece.launch, launches++);
    return true;
  }));
  EXPECT_EQ(all, trace_text());
  EXPECT_EQ(launches, trace->profiled().launches.size());
  // The file shrinks or grows between the two reads.
  tree_.write("trace.json",
              trace_text().insert(trace_text().rfind("{\"ph\": \"X\", \"cat\": \"kernel\""),
                                  "{\"ph\": \"X\", \"cat\": \"kernel\", \"ts\": 1},"));
  const auto again = trace->for_each_piece([](const model::TracePiece&) { return true; });
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kCorrupt);
}

TEST_F(TorchTraceTest, RefusesOtherFilesAndOtherTimes) {
  EXPECT_THAT(error(""), HasSubstr("nothing in it"));
  EXPECT_THAT(error("hello"), HasSubstr("begins neither"));
  EXPECT_THAT(error("{\"a\": 1}"), HasSubstr("no \"traceEvents\""));
  EXPECT_THAT(error("{\"a\": "), HasSubstr("no \"traceEvents\""));
  EXPECT_THAT(error("{\"traceEvents\": 5}"), HasSubstr("not a list"));
  EXPECT_THAT(error("{\"traceEvents\": []}"), HasSubstr("no operator and no kernel"));
  EXPECT_THAT(error("{\"traceEvents\": [}"), HasSubstr("a value is missing"));
  EXPECT_THAT(error("[]"), HasSubstr("no operator"));
  std::string text = trace_text();
  text.replace(text.find("179085702"), 9, "179085703");
  EXPECT_THAT(error(text), HasSubstr("no time in common"));
}

TEST_F(TorchTraceTest, RefusesTimesThatCannotBe) {
  const auto with = [](std::string_view time) {
    std::string text = trace_text();
    const std::string_view usual =
        time.starts_with("\"ts") ? "\"ts\": 1000500.500" : "\"dur\": 2000";
    return text.replace(text.find(usual), usual.size(), time);
  };
  // With the base, 285 years do not fit 64 bits of nanoseconds.
  EXPECT_THAT(error(with("\"ts\": 9000000000000000")), HasSubstr("'gemm<float, 4>(float*)'"));
  EXPECT_THAT(error(with("\"dur\": 9000000000000000")), HasSubstr("last 9000000000 s"));
  // A day in bins of a millisecond takes gigabytes.
  EXPECT_THAT(error(with("\"dur\": 86400000000")),
              HasSubstr("one launch runs for 24.0 h: check the unit of the times"));
}

}  // namespace
}  // namespace jouleprof::importers
