#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/activity/activity_codec.h"
#include "spans/layers/layers.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {
namespace {

struct Sink : model::ActivitySink {
  void define(std::uint32_t, const model::TracedDevice&) override {}
  void define(std::uint32_t, const model::KernelClass&) override {}
  void define(std::uint32_t, const model::Layer&) override { ++layers; }
  void define(std::uint32_t, const model::Range&) override {}
  void define(std::uint32_t, const model::Scope&) override {}
  void add(const model::ActivityChunk& chunk) override {
    ASSERT_EQ(chunk.kind, model::ChunkKind::kReplay);
    EXPECT_EQ(chunk.device, model::kNone);
    EXPECT_GT(layers, 0);  // defined before it is named
    chunks.push_back(chunk);
  }
  void status(const model::TraceStatus&) override {}

  int layers = 0;
  std::vector<model::ActivityChunk> chunks;
};

TEST(Replays, AreReportedOnceOneAfterTheOther) {
  Sink sink;
  set_active(true);
  const HostTime before = HostClock::now();
  begin_replay();
  EXPECT_FALSE(active());
  replay_prepared();
  replayed_kernel({7, 1'755'000});
  send(sink, HostClock::now());
  end_replay();
  EXPECT_TRUE(active());
  set_active(false);
  ASSERT_EQ(sink.chunks.size(), 2u);
  EXPECT_LE(before, sink.chunks[0].begin);
  EXPECT_EQ(sink.chunks[0].end, sink.chunks[1].begin);
  EXPECT_TRUE(sink.chunks[0].bytes.empty());
  send(sink, HostClock::now());
  model::ActivityDecoder decoder(sink.chunks[1].bytes);
  model::KernelRerun kernel;
  EXPECT_TRUE(decoder.next(kernel));
  EXPECT_EQ(kernel, (model::KernelRerun{7, 1'755'000}));
  EXPECT_EQ(sink.chunks.size(), 2u);
}

TEST(Replays, ProblemsAreSaidOnceEach) {
  add_problem("a thing");
  add_problem("another");
  add_problem("a thing");
  add_problem("");
  EXPECT_EQ(problem(), "a thing; another");
  add_problem(std::string(100'000, 'x'));
  EXPECT_EQ(problem(), "a thing; another");
}

}  // namespace
}  // namespace jouleprof::layers
