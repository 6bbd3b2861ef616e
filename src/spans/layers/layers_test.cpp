#include "spans/layers/layers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/activity/activity_codec.h"
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
  model::Layer layer;
  layer.name = "replayed";
  scopes::add(layer);
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

// Far apart, as if by chance, so that many share a place in the table.
const void* at(std::size_t i) {
  std::mt19937_64 random(i);
  return reinterpret_cast<const void*>(((random() >> 20) | 1) << 4);
}

TEST(ModuleMap, FindsWhatWasPut) {
  ModuleMap map;
  EXPECT_EQ(map.find(at(1)), nullptr);
  map.put({at(1), 7, false});
  ASSERT_NE(map.find(at(1)), nullptr);
  EXPECT_EQ(map.find(at(1))->layer, 7u);
  map.put({at(1), 8, true});
  EXPECT_EQ(map.find(at(1))->layer, 8u);
  EXPECT_EQ(map.size(), 1u);
}

TEST(ModuleMap, AnAddressThatIsUsedAgainIsNotTheDeadModule) {
  ModuleMap map;
  map.put({at(1), 7, false});
  map.erase(at(1));
  EXPECT_EQ(map.find(at(1)), nullptr);
  map.erase(at(1));  // twice does no harm
  EXPECT_EQ(map.size(), 0u);
}

TEST(ModuleMap, AgreesWithAMapUnderAnyOrder) {
  ModuleMap map;
  std::map<const void*, std::uint32_t> truth;
  std::mt19937 random(1);
  for (std::uint32_t step = 0; step < 200'000; ++step) {
    const void* module = at(random() % 3000);
    if (random() % 2 == 0) {
      map.put({module, step, false});
      truth[module] = step;
    } else {
      map.erase(module);
      truth.erase(module);
    }
  }
  EXPECT_EQ(map.size(), truth.size());
  for (std::size_t i = 0; i < 3000; ++i) {
    const auto known = truth.find(at(i));
    const ModuleEntry* found = map.find(at(i));
    ASSERT_EQ(found != nullptr, known != truth.end());
    if (found != nullptr) {
      EXPECT_EQ(found->layer, known->second);
    }
  }
}

}  // namespace

}  // namespace jouleprof::layers
