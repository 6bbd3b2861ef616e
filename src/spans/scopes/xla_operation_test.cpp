#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spans/scopes/range_stack.h"
#include "spans/scopes/scopes_fixture.h"

namespace jouleprof::scopes {
namespace {

using model::Phase;
using testing::ElementsAre;
using testing::IsEmpty;

XlaOperation of(const std::string& name) {
  return xla_operation("Thunk:#name=" + name + ",hlo_op=custom-call.13,unique_hlo_op_id=7#")
      .value();
}

TEST(XlaOperations, ModulesAreLayersAndTransformationsArePhases) {
  const auto forward = of("jit(train)/jvp(Net)/Dense_11/dot_general");
  EXPECT_THAT(forward.path, ElementsAre("Net", "Dense_11"));
  EXPECT_EQ(forward.phase, Phase::kForward);
  const auto backward = of("jit(train)/transpose(jvp(Net))/Dense_6/transpose");
  EXPECT_THAT(backward.path, ElementsAre("Net", "Dense_6"));
  EXPECT_EQ(backward.phase, Phase::kBackward);
  EXPECT_THAT(of("jit(train)/jvp(Net)").path, ElementsAre("Net"));
  EXPECT_THAT(of("jit(apply)/Net/Block_2").path, ElementsAre("Net", "Block_2"));
}

TEST(XlaOperations, FunctionsLoopsAndCallsOfJaxAreNoLayers) {
  EXPECT_THAT(of("jit(train)").path, IsEmpty());
  EXPECT_THAT(of("jit(train)/add").path, IsEmpty());
  EXPECT_EQ(of("jit(train)/jvp()/mul").phase, Phase::kForward);
  EXPECT_THAT(of("jit(f)/jvp(jit(gelu))/mul").path, IsEmpty());
  EXPECT_THAT(of("jit(f)/while/body/closed_call/attention/jit(_where)/select_n").path,
              ElementsAre("attention"));
  EXPECT_THAT(of("jit(f)/vmap(jvp(Net/Block_0))/cond/branch_1_fun/Dense_0/add").path,
              ElementsAre("Net", "Block_0", "Dense_0"));
}

TEST(XlaOperations, OtherRangesAreNone) {
  EXPECT_EQ(xla_operation("XlaModule:#hlo_module=jit_train#"), std::nullopt);
  EXPECT_EQ(xla_operation(""), std::nullopt);
  EXPECT_EQ(xla_operation("Thunk:#hlo_op=command_buffer_1#"), XlaOperation{});
  EXPECT_EQ(xla_operation("Thunk:#"), XlaOperation{});
  EXPECT_EQ(of(""), XlaOperation{});
  EXPECT_THAT(of("((((").path, ElementsAre("(((("));
  EXPECT_THAT(of("a)b(c").path, ElementsAre("a)b(c"));
  EXPECT_THAT(of("jit(f)/Net/Dense_0/dot_general/").path, ElementsAre("Net", "Dense_0"));
}

TEST(XlaOperations, ANameOfManyBracketsEndsNoStack) {
  std::string name;
  for (int i = 0; i < 200'000; ++i) name += "a(";
  EXPECT_THAT(of("Net/" + name + std::string(200'000, ')')).path, ElementsAre("Net"));
}

TEST(XlaOperations, ProgramsHaveShortNames) {
  EXPECT_EQ(short_range("XlaModule:#hlo_module=jit_train,program_id=12#"), "XlaModule jit_train");
  EXPECT_EQ(short_range("XlaModule:#prefix=a,hlo_module=jit_f#"), "XlaModule jit_f");
  EXPECT_EQ(short_range("step"), "step");
}

TEST(XlaOperations, SetTheLayerOfTheirThreadAndAreNoRanges) {
  const InScope back;
  this_thread() = {};
  push_range(nullptr, "step");
  const auto step = this_thread().range;
  EXPECT_EQ(push_range(nullptr, "Thunk:#name=jit(f)/transpose(jvp(Net))/Dense_0/dot_general#"), 1);
  const model::Scope dense = this_thread();
  EXPECT_EQ(dense.range, step);
  EXPECT_EQ(dense.phase, Phase::kBackward);
  const model::Layer layer = reported().layers.at(dense.layer);
  EXPECT_EQ(layer.name, "Dense_0");
  EXPECT_EQ(layer.type, "Dense");
  EXPECT_EQ(reported().layers.at(layer.parent).name, "Net");
  push_range(nullptr, "within");
  EXPECT_EQ(reported().path(this_thread().range), "step/within");
  EXPECT_EQ(this_thread().layer, dense.layer);
  pop_range(nullptr);
  pop_range(nullptr);
  EXPECT_EQ(this_thread(), (model::Scope{model::kNone, step, Phase::kNone}));
  push_range(nullptr, "Thunk:#name=jit(f)/jvp(Net)/Dense_0/add,hlo_op=fusion.3#");
  EXPECT_EQ(this_thread().layer, dense.layer);
  EXPECT_EQ(this_thread().phase, Phase::kForward);
  pop_range(nullptr);
  pop_range(nullptr);
  EXPECT_EQ(this_thread(), model::Scope{});
}

TEST(XlaOperations, OneThatEndsWithinAnotherLeavesTheOtherInItsLayer) {
  const InScope back;
  this_thread() = {};
  const int a = 0;
  const int b = 0;
  push_range(&a, "Thunk:#name=jit(f)/Outer/Loop_0/while#");
  push_range(&b, "Thunk:#name=jit(f)/Outer/Inner_0/add#");
  const model::Scope inner = this_thread();
  pop_range(&a);
  EXPECT_EQ(this_thread(), inner);
  pop_range(&b);
  EXPECT_EQ(this_thread(), model::Scope{});
}

}  // namespace
}  // namespace jouleprof::scopes
