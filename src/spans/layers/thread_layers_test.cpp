#include "spans/layers/thread_layers.h"

#include <vector>

#include "spans/layers/layers_fixture.h"

namespace jouleprof::layers {
namespace {

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

TEST(ThreadLayers, SendingWhileThreadsCallLosesNothing) {
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
