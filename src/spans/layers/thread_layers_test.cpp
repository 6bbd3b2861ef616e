#include "spans/layers/thread_layers.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "model/activity_codec.h"
#include "spans/layers/layers.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {
namespace {

struct Sink : model::ActivitySink {
  void define(std::uint32_t, const model::TracedDevice&) override {}
  void define(std::uint32_t, const model::KernelClass&) override {}
  void define(std::uint32_t id, const model::Layer& layer) override { names[id] = layer.name; }
  void define(std::uint32_t, const model::Range&) override {}
  void define(std::uint32_t, const model::Scope&) override {}
  void add(const model::ActivityChunk& chunk) override {
    ++chunks;
    EXPECT_LE(chunk.begin, chunk.end);
    model::ActivityDecoder decoder(chunk.bytes);
    if (chunk.kind == model::ChunkKind::kPhases) {
      for (model::PhaseEntry entry; decoder.next(entry);) phases[entry.phase] = entry;
      EXPECT_TRUE(decoder.ok());
      return;
    }
    EXPECT_EQ(chunk.kind, model::ChunkKind::kLayers);
    model::LayerEntry entry;
    while (decoder.next(entry)) {
      ASSERT_TRUE(names.count(entry.layer));  // defined before it is named
      entries[{names[entry.layer], entry.phase}] = entry;
    }
    EXPECT_TRUE(decoder.ok());
  }
  void status(const model::TraceStatus&) override {}

  std::map<std::uint32_t, std::string> names;
  std::map<std::pair<std::string, model::Phase>, model::LayerEntry> entries;
  std::map<model::Phase, model::PhaseEntry> phases;
  int chunks = 0;
};

Sink& sink() {
  static Sink only;
  return only;
}

const Sink& reported() {
  sink().entries.clear();
  sink().phases.clear();
  sink().chunks = 0;
  tell(sink(), HostClock::now());
  return sink();
}

std::uint32_t layer(const std::string& name) {
  model::Layer layer;
  layer.name = name;
  return scopes::add(layer);
}

void spend(Duration time) { std::this_thread::sleep_for(time); }
constexpr auto kForward = model::Phase::kForward;
constexpr std::chrono::milliseconds kShort{20};

TEST(ThreadLayers, TimeIsExclusive) {
  reported();
  const auto outer = layer("exclusive.outer");
  const auto inner = layer("exclusive.inner");
  ThreadLayers* mine = ThreadLayers::mine();
  ASSERT_NE(mine, nullptr);
  ThreadLayers::Outer none;
  ThreadLayers::Outer around;
  const HostTime begin = HostClock::now();
  mine->enter(outer, none);
  EXPECT_FALSE(mine->outermost());
  spend(kShort);
  mine->enter(inner, around);
  EXPECT_EQ(scopes::this_thread(), (model::Scope{inner, model::kNone, kForward}));
  spend(2 * kShort);
  mine->leave(around);
  EXPECT_EQ(scopes::this_thread(), (model::Scope{outer, model::kNone, kForward}));
  mine->leave(none);
  const HostTime end = HostClock::now();
  EXPECT_EQ(scopes::this_thread(), model::Scope{});
  spend(kShort);  // in no layer

  const Sink& now = reported();
  const auto& a = now.entries.at({"exclusive.outer", kForward});
  const auto& b = now.entries.at({"exclusive.inner", kForward});
  EXPECT_EQ(a.calls, 1u);
  EXPECT_EQ(b.calls, 1u);
  EXPECT_GE(Duration(a.wall_nanoseconds), kShort);
  EXPECT_GE(Duration(b.wall_nanoseconds), 2 * kShort);
  // The whole is split, nothing is counted twice or lost but the stamps' own time.
  const Duration sum{a.wall_nanoseconds + b.wall_nanoseconds};
  EXPECT_LE(sum, end - begin);
  EXPECT_GE(sum, end - begin - std::chrono::milliseconds(1));
  EXPECT_EQ(reported().chunks, 0);  // nothing since
}

TEST(ThreadLayers, ALayerThatCallsItselfIsCountedEachTime) {
  reported();
  const auto id = layer("recursive");
  ThreadLayers* mine = ThreadLayers::mine();
  ThreadLayers::Outer outer[3];
  for (auto& o : outer) mine->enter(id, o);
  for (int i = 2; i >= 0; --i) mine->leave(outer[i]);
  EXPECT_EQ(reported().entries.at({"recursive", kForward}).calls, 3u);
  EXPECT_TRUE(mine->outermost());
}

TEST(ThreadLayers, CpuTimeIsOfTheOutermostCallAlone) {
  reported();
  const auto outer = layer("cpu.outer");
  const auto inner = layer("cpu.inner");
  const auto call = [&] {
    ThreadLayers* mine = ThreadLayers::mine();
    ThreadLayers::Outer none;
    ThreadLayers::Outer around;
    mine->enter(outer, none);
    mine->enter(inner, around);
    volatile unsigned work = 0;
    for (int i = 0; i < 1'000'000; ++i) work = work + 1;
    mine->leave(around);
    mine->leave(none);
  };
  call();
  EXPECT_EQ(reported().entries.at({"cpu.outer", kForward}).cpu_nanoseconds, 0u);
  take_cpu_time(true);
  call();
  take_cpu_time(false);
  const Sink& now = reported();
  EXPECT_GT(now.entries.at({"cpu.outer", kForward}).cpu_nanoseconds, 0u);
  EXPECT_EQ(now.entries.at({"cpu.inner", kForward}).cpu_nanoseconds, 0u);
}

class Phases : public testing::Test {
 protected:
  Phases() {
    reported();
    take_cpu_time(true);
  }
  ~Phases() override { take_cpu_time(false); }

  static std::uint64_t nanoseconds(Duration time) {
    return static_cast<std::uint64_t>(time.count());
  }
  void call(Duration time) {
    ThreadLayers::Outer outer;
    mine_->enter(layer_, outer);
    spend(time);
    mine_->leave(outer);
  }

  ThreadLayers* mine_ = ThreadLayers::mine();
  std::uint32_t layer_ = layer("phases.layer");
};

constexpr auto kBackward = model::Phase::kBackward;
constexpr auto kOptimizer = model::Phase::kOptimizer;

TEST_F(Phases, HaveTheirTimeWithoutThatOfLayersAndPhasesInThem) {
  const Duration part = std::chrono::milliseconds(20);
  const HostTime begin = HostClock::now();
  mine_->begin_phase(kOptimizer);  // with a closure
  spend(part);
  call(part);
  mine_->begin_phase(kBackward);
  spend(part);
  call(2 * part);  // a checkpoint
  mine_->end_phase(kBackward);
  mine_->end_phase(kOptimizer);
  const auto all = nanoseconds(HostClock::now() - begin);
  const Sink& now = reported();
  const auto& optimizer = now.phases.at(kOptimizer);
  const auto& backward = now.phases.at(kBackward);
  EXPECT_EQ(optimizer.times, 1u);
  EXPECT_EQ(backward.times, 1u);
  EXPECT_EQ(now.phases.at(kForward).times, 2u);  // there is no graph here that knows of backward
  EXPECT_GE(optimizer.wall_nanoseconds, nanoseconds(part));
  EXPECT_GE(backward.wall_nanoseconds, nanoseconds(part));
  const auto layers = now.entries.at({"phases.layer", kForward}).wall_nanoseconds;
  const auto sum = optimizer.wall_nanoseconds + backward.wall_nanoseconds + layers;
  EXPECT_LE(sum, all);
  EXPECT_GE(sum, all - all / 10);  // none twice, none lost
}

TEST_F(Phases, AreTheLayersWhereOneIsCalled) {
  ThreadLayers::Outer outer;
  mine_->enter(layer_, outer);
  mine_->begin_phase(kBackward);
  mine_->end_phase(kBackward);
  mine_->leave(outer);
  const Sink& now = reported();
  EXPECT_EQ(now.phases.size(), 1u);
  EXPECT_EQ(now.phases.at(kForward).times, 1u);
  EXPECT_EQ(now.phases.at(kForward).wall_nanoseconds, 0u);
}

TEST_F(Phases, AStepThatFailsIsNotCounted) {
  mine_->begin_phase(kOptimizer);  // and an exception ends it
  spend(std::chrono::milliseconds(30));
  mine_->begin_phase(kOptimizer);
  mine_->end_phase(kOptimizer);
  mine_->end_phase(kOptimizer);
  const Sink& now = reported();
  EXPECT_EQ(now.phases.at(kOptimizer).times, 1u);
  EXPECT_LT(now.phases.at(kOptimizer).wall_nanoseconds, 30'000'000u);
}

TEST_F(Phases, AreNotTimedWhereKernelsTellThem) {
  take_cpu_time(false);
  mine_->begin_phase(kBackward);
  mine_->end_phase(kBackward);
  EXPECT_TRUE(reported().phases.empty());
}

TEST(ThreadLayers, ThreadsThatHaveEndedAreReportedToo) {
  reported();
  const auto id = layer("threads");
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([id] {
        ThreadLayers::Outer outer;
        for (int call = 0; call < 100; ++call) {
          ThreadLayers::mine()->enter(id, outer);
          ThreadLayers::mine()->leave(outer);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(reported().entries.at({"threads", kForward}).calls, 8000u);
}

TEST(ThreadLayers, TellingWhileThreadsCallLosesNothing) {
  reported();
  const auto id = layer("busy");
  std::atomic<bool> done{false};
  std::thread thread([&] {
    ThreadLayers::Outer outer;
    for (int call = 0; call < 100'000; ++call) {
      ThreadLayers::mine()->enter(id, outer);
      ThreadLayers::mine()->leave(outer);
    }
    done = true;
  });
  std::uint64_t calls = 0;
  const auto add = [&] {
    const auto& entries = reported().entries;
    const auto found = entries.find({"busy", kForward});
    if (found != entries.end()) calls += found->second.calls;
  };
  while (!done) add();
  thread.join();
  add();
  EXPECT_EQ(calls, 100'000u);
}

TEST(ThreadLayers, TheOptimizersPhaseIsPutBackAfterAClosure) {
  ThreadLayers* mine = ThreadLayers::mine();
  mine->set_phase(model::Phase::kOptimizer);
  ThreadLayers::Outer outer;
  mine->enter(layer("closure"), outer);
  EXPECT_EQ(scopes::this_thread().phase, kForward);
  mine->leave(outer);
  EXPECT_EQ(scopes::this_thread().phase, model::Phase::kOptimizer);
  mine->set_phase(model::Phase::kNone);
}

// PyTorch's part, played: the numbers and the node that runs.
thread_local std::uint64_t next_sequence = 0;
thread_local std::uint64_t thread_number = 1;
struct Node {
  void* table = nullptr;
  std::uint64_t count = 2;
  std::uint64_t sequence = 0;
  std::uint64_t topological = 0;
  std::uint64_t has_parent = 0;
  std::uint64_t thread = 1;
};
thread_local Node* running = nullptr;

abi::torch::NodePointer* current_node(abi::torch::NodePointer* result) {
  result->node = running;
  if (running != nullptr) ++running->count;
  return result;
}

TEST(ThreadLayers, BackwardBelongsToTheLayerThatMadeTheNode) {
  const AutogradFunctions functions{[] { return next_sequence; }, [] { return thread_number; },
                                    &current_node};
  std::array<Node, 4> nodes;
  struct Function {
    std::uint64_t head[2]{};
    Node* node = nullptr;
  };
  std::array<Function, 4> held;
  std::vector<GradientSample> samples;
  for (std::size_t i = 0; i < 4; ++i) {
    nodes[i].sequence = i == 3 ? abi::torch::kAccumulateSequence : 100 + i;
    held[i].node = &nodes[i];
    samples.push_back({&held[i], nodes[i].sequence});
  }
  const auto autograd = Autograd::verified(functions, samples, 24);
  ASSERT_TRUE(autograd);
  use_autograd(*autograd);
  set_active(true);

  const auto outer_id = layer("model");
  const auto inner_id = layer("model.fc");
  ThreadLayers* mine = ThreadLayers::mine();
  ThreadLayers::Outer none;
  ThreadLayers::Outer around;
  next_sequence = 200;
  mine->enter(outer_id, none);
  next_sequence = 203;  // 200, 201, 202 by the model itself
  mine->enter(inner_id, around);
  next_sequence = 204;  // 203 by fc
  mine->leave(around);
  next_sequence = 205;
  mine->leave(none);
  next_sequence = 207;  // 205, 206: the loss
  mine->enter(outer_id, none);
  mine->leave(none);

  const auto whose = [](std::uint64_t sequence, std::uint64_t thread) {
    Node node;
    node.sequence = sequence;
    node.thread = thread;
    running = &node;
    model::Scope scope;
    EXPECT_TRUE(find_backward(scope));
    EXPECT_EQ(node.count, 2u);
    EXPECT_EQ(scope.phase, model::Phase::kBackward);
    running = nullptr;
    return scope.layer;
  };
  std::thread([&] {  // as the thread of a device does
    EXPECT_EQ(whose(200, 1), outer_id);
    EXPECT_EQ(whose(202, 1), outer_id);
    EXPECT_EQ(whose(203, 1), inner_id);
    EXPECT_EQ(whose(204, 1), outer_id);
    EXPECT_EQ(whose(205, 1), model::kNone);
    EXPECT_EQ(whose(203, 2), model::kNone);  // another thread's 203
    EXPECT_EQ(whose(abi::torch::kAccumulateSequence, 1), model::kNone);
    model::Scope scope;
    EXPECT_FALSE(find_backward(scope));  // no backward pass

    // A checkpoint: the layer is called again in the backward pass.
    Node node;
    running = &node;
    ThreadLayers::Outer outer;
    ThreadLayers::mine()->enter(inner_id, outer);
    EXPECT_EQ(scopes::this_thread(),
              (model::Scope{inner_id, model::kNone, model::Phase::kBackward}));
    ThreadLayers::mine()->leave(outer);
    running = nullptr;
  })
      .join();
  set_active(false);
}

}  // namespace
}  // namespace jouleprof::layers
