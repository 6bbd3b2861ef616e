#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <string>

#include "meters/rapl/rapl_meter.h"

namespace jouleprof::meters::rapl {
namespace {

using model::DomainKind;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Counters of a time that passes when they are read, by 20 us, and when the watch sleeps.
class CounterWatchTest : public testing::Test {
 protected:
  // Renewed every millisecond, in steps of 61 uJ; its power wanders.
  void add(DomainKind kind, const std::string& package, double watts, double start,
           double wander = 0, const std::string& suffix = "") {
    Counter counter;
    counter.place = {kind, package};
    counter.name = "zone " + package + suffix;
    counter.traits.quantum = Energy::microjoules(61);
    counter.read = [this, watts, start, wander]() -> Result<Energy> {
      now_ += 20e-6;
      const double t = std::floor(now_ * 1e3) / 1e3;
      const double joules = start + watts * t + 0.01 * wander * (1 - std::cos(170 * wander * t));
      return Energy::microjoules(std::llround(joules * 1e6 / 61) * 61);
    };
    source_.counters.push_back(std::move(counter));
  }
  void watch() {
    leave_out_misleading(source_, 100ms, [this](Duration time) { now_ += seconds(time); });
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> names;
    for (const auto& c : source_.counters) names.push_back(c.name);
    return names;
  }
  std::string why() const {
    std::string all;
    for (const auto& m : source_.ignored) all += m.what + ": " + m.error.message + "\n";
    for (const auto& u : source_.unreadable) {
      all += describe(u.place) + ": " + u.error.message + "\n";
    }
    return all;
  }

  double now_ = 100;
  Source source_;
};

TEST_F(CounterWatchTest, DiesThatMirrorTheirSocketAreOneCounter) {
  add(DomainKind::kCpu, "package-0-die-0", 68, 5000, 1);
  add(DomainKind::kCpu, "package-0-die-1", 68, 5000, 1);
  add(DomainKind::kCpuCores, "package-0-die-1", 30, 2000);
  watch();
  EXPECT_THAT(kept(), ElementsAre("zone package-0-die-0"));
  EXPECT_THAT(why(), HasSubstr("moves as RAPL package-0-die-0 does: both count the same energy"));
  EXPECT_THAT(why(), HasSubstr("RAPL core of package-0-die-1: it belongs to package-0-die-1"));
  EXPECT_THAT(source_.notices, ElementsAre(HasSubstr("both count the same energy")));
}

// Counts of perf events begin when each is opened.
TEST_F(CounterWatchTest, OnePackageReadThroughSeveralCpusIsOneCounter) {
  add(DomainKind::kCpu, "package-0", 68, 0.3, 1, " on CPU 0");
  add(DomainKind::kCpu, "package-0", 68, 0.1, 1, " on CPU 8");
  add(DomainKind::kCpu, "package-1", 68, 0.2, 2, " on CPU 16");
  watch();
  EXPECT_THAT(kept(), ElementsAre("zone package-0 on CPU 0", "zone package-1 on CPU 16"));
}

TEST_F(CounterWatchTest, PsysThatEqualsAPackageIsLeftOut) {
  add(DomainKind::kPlatform, "", 40, 700, 1);
  add(DomainKind::kCpu, "package-0", 40, 700, 1);
  watch();
  EXPECT_THAT(kept(), ElementsAre("zone package-0"));
}

TEST_F(CounterWatchTest, CountersOfTheirOwnAreKept) {
  add(DomainKind::kCpu, "package-0-die-0", 68, 5000, 1);
  add(DomainKind::kCpu, "package-0-die-1", 68, 5600, 1.4);
  add(DomainKind::kCpu, "package-1-die-0", 68, 5000, 1.2);
  add(DomainKind::kPlatform, "", 300, 9000);
  watch();
  EXPECT_EQ(kept().size(), 4u);
  EXPECT_THAT(source_.ignored, IsEmpty());
}

TEST_F(CounterWatchTest, ADieOfAPackageThatIsCountedIsContainedInIt) {
  add(DomainKind::kCpu, "package-0", 68, 5000);
  add(DomainKind::kCpu, "package-0-die-0", 30, 2000);
  watch();
  EXPECT_THAT(kept(), ElementsAre("zone package-0"));
  EXPECT_THAT(why(), HasSubstr("is a die of package-0"));
  EXPECT_THAT(source_.notices, IsEmpty());  // every such machine has it
}

TEST_F(CounterWatchTest, TheMirrorOfARegisterIsUsedWhereTheRegisterStandsStill) {
  for (const double watts : {40.0, 0.0}) {
    source_ = {};
    add(DomainKind::kCpu, "package-0", watts, 5000);
    add(DomainKind::kCpu, "package-0", 40, 7000, 0, "-mmio");
    source_.counters[1].is_mirror = true;
    watch();
    EXPECT_THAT(kept(), ElementsAre(watts > 0 ? "zone package-0" : "zone package-0-mmio"));
    EXPECT_THAT(why(), HasSubstr(watts > 0 ? "zone package-0-mmio is the register of zone package-0"
                                           : "stands still at 5000.0 J"));
  }
}

TEST_F(CounterWatchTest, DramThatMirrorsItsPackageIsNoDram) {
  add(DomainKind::kCpu, "package-0", 68, 5000, 1);
  add(DomainKind::kDram, "package-0", 68, 300, 1);
  add(DomainKind::kDram, "package-1", 5, 300, 1);
  watch();
  EXPECT_THAT(kept(), ElementsAre("zone package-0", "zone package-1"));
  EXPECT_THAT(why(), HasSubstr("RAPL dram of package-0: zone package-0 moves as"));
}

// As in a virtual machine that shows a platform's counter and no package's.
TEST_F(CounterWatchTest, APlatformOrMemoryAloneIsUsedWhereItMoves) {
  for (const auto kind : {DomainKind::kPlatform, DomainKind::kDram}) {
    for (const double watts : {30.0, 0.0}) {
      source_ = {};
      add(kind, "", watts, 700);
      watch();
      EXPECT_EQ(kept().size(), watts > 0 ? 1u : 0u);
      if (kind == DomainKind::kPlatform && watts == 0) {
        EXPECT_THAT(why(), HasSubstr("stands still at 700.0 J"));
      }
    }
  }
}

TEST_F(CounterWatchTest, APackageThatStandsStillIsNamedAsSuch) {
  add(DomainKind::kCpu, "package-0", 0, 23737);
  add(DomainKind::kDram, "package-0", 0, 5);
  watch();
  EXPECT_THAT(kept(), IsEmpty());
  EXPECT_THAT(why(), HasSubstr("stands still at 23737.0 J"));
  EXPECT_THAT(why(), HasSubstr("RAPL dram of package-0: "));
}

}  // namespace
}  // namespace jouleprof::meters::rapl
