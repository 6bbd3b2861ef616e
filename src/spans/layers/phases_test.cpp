// Phases of the host: backward passes and optimizers' steps outside of layers.
#include "spans/layers/layers_fixture.h"

namespace jouleprof::layers {
namespace {

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
  EXPECT_EQ(now.phases.at(kForward).times, 2u);  // there is no graph here, and so no backward pass
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

TEST_F(Phases, AreNotTimedWhereKernelsShowThem) {
  take_cpu_time(false);
  mine_->begin_phase(kBackward);
  mine_->end_phase(kBackward);
  EXPECT_TRUE(reported().phases.empty());
}

}  // namespace
}  // namespace jouleprof::layers
