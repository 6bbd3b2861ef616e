#include "spans/layers/autograd.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace jouleprof::layers {
namespace {

using namespace abi::torch;

constexpr std::uint64_t kThread = 5;
std::uint64_t next = 1000;

// Nodes laid out as PyTorch's after 2.11 and as those up to then.
struct IntrusiveNode {
  void* table = nullptr;
  std::uint64_t count = (std::uint64_t{1} << 32) + 2;
  std::uint64_t sequence = 0;
  std::uint64_t topological = 1;
  std::uint64_t has_parent = 1;
  std::uint64_t thread = kThread;
};
struct SharedNode {
  void* table = nullptr;
  std::weak_ptr<void> self;
  std::uint64_t sequence = 0;
  std::uint64_t topological = 1;
  std::uint64_t has_parent = 1;
  std::uint64_t thread = kThread;
};

IntrusiveNode* running = nullptr;
std::shared_ptr<SharedNode> running_shared;

NodePointer* intrusive_current(NodePointer* result) {
  result->node = running;
  if (running != nullptr) ++running->count;
  return result;
}
NodePointer* shared_current(NodePointer* result) {
  new (result) std::shared_ptr<SharedNode>(running_shared);
  return result;
}

AutogradFunctions functions(CurrentNode* current) {
  return {[] { return next; }, [] { return kThread; }, current};
}

// What Python holds: two words, then the pointer to the node.
struct Function {
  std::array<std::uint64_t, 2> head{};
  const void* node = nullptr;
};

template <typename Node>
struct Samples {
  std::array<Node, 4> nodes;
  std::array<Function, 4> held;
  std::vector<GradientSample> list;

  Samples() {
    for (std::size_t i = 0; i < 4; ++i) {
      nodes[i].sequence = i == 3 ? kAccumulateSequence : 1000 + 3 * i;
      held[i].node = &nodes[i];
      list.push_back({&held[i], nodes[i].sequence});
    }
  }
};

class AutogradTest : public testing::Test {
 protected:
  void TearDown() override {
    running = nullptr;
    running_shared.reset();
  }
};

TEST_F(AutogradTest, ReadsNodesWithACountOfTheirOwn) {
  const Samples<IntrusiveNode> samples;
  const auto autograd = Autograd::verified(functions(&intrusive_current), samples.list, 24);
  ASSERT_TRUE(autograd) << autograd.error().message;
  EXPECT_FALSE(autograd->current());
  IntrusiveNode node;
  node.sequence = 4711;
  running = &node;
  const auto before = node.count;
  const auto found = autograd->current();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 4711u);
  EXPECT_EQ(found->thread, kThread);
  EXPECT_EQ(node.count, before);  // given back
}

TEST_F(AutogradTest, ReadsSharedNodes) {
  const Samples<SharedNode> samples;
  const auto autograd = Autograd::verified(functions(&shared_current), samples.list, 32);
  ASSERT_TRUE(autograd) << autograd.error().message;
  EXPECT_FALSE(autograd->current());
  running_shared = std::make_shared<SharedNode>();
  running_shared->sequence = 4711;
  const auto found = autograd->current();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sequence, 4711u);
  EXPECT_EQ(found->thread, kThread);
  EXPECT_EQ(running_shared.use_count(), 1);
}

TEST_F(AutogradTest, RefusesWhatItDoesNotKnow) {
  const auto of = [](auto&& samples, CurrentNode* current, std::size_t size) {
    return Autograd::verified(functions(current), samples.list, size);
  };
  EXPECT_FALSE(of(Samples<SharedNode>(), &intrusive_current, 24));
  EXPECT_FALSE(of(Samples<IntrusiveNode>(), &shared_current, 32));
  EXPECT_FALSE(of(Samples<IntrusiveNode>(), &intrusive_current, 32));

  Samples<IntrusiveNode> moved;
  moved.nodes[1].sequence += 1;
  EXPECT_FALSE(of(moved, &intrusive_current, 24));
  Samples<IntrusiveNode> elsewhere;
  elsewhere.nodes[2].thread = 6;
  EXPECT_FALSE(of(elsewhere, &intrusive_current, 24));
  Samples<IntrusiveNode> uncounted;
  uncounted.nodes[0].count = 0x5555'0000'0000;
  EXPECT_FALSE(of(uncounted, &intrusive_current, 24));
  Samples<IntrusiveNode> few;
  few.list.resize(3);
  EXPECT_FALSE(of(few, &intrusive_current, 24));
}

TEST_F(AutogradTest, SaysThatThereIsNoPyTorch) {
  const auto functions = AutogradFunctions::load();
  ASSERT_FALSE(functions);
  EXPECT_NE(functions.error().message.find("libtorch_cpu.so"), std::string::npos);
}

}  // namespace
}  // namespace jouleprof::layers
