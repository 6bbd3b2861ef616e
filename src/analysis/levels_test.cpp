// Levels of power on simulated boards: 80 W at rest, 127 W held, 400 W at work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/recorded_run_test.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using ::testing::HasSubstr;

constexpr model::SensorId kSmClock{20};
constexpr double kRest = 80;
constexpr double kHeld = 127;
constexpr double kWork = 400;
constexpr double kActive = (kWork - kHeld) * 8;  // joules
constexpr double kHeldAlone = (kHeld - kRest) * 13;

// A command from 2 s to 20 s that opens a context at 5 s, works from 8 s to 16 s and closes it at
// 18 s.
class Board {
 public:
  Board() {
    auto& r = run.recording;
    r.domains.resize(1);
    r.domains[0].uuid = "GPU-1";
    r.run.command = {"train"};
    r.run.work_begin = at(2);
    r.run.work_end = at(20);
    r.idle_spans = {{at(0.2), at(1.9)}, {at(20.2), at(21.8)}};
    r.sensors.push_back(
        {kSmClock, kGpu0, model::SensorKind::kGauge, std::string(model::gauge::kSmClock), {}, {}});
    r.processes.push_back({ProcessId{1}, 100, {}, 1, "train", "train", at(2), at(20), true});
  }
  using ProcessId = model::ProcessId;

  // Power before the command and until the context opens; after 18 s it falls from 88 to 80 W.
  Board& draw(const std::function<double(double)>& before, double quiet = kHeld,
              double falls_at = 18) {
    run.power = course(
        [&](double t) {
          if (t < 5) return before(t);
          if (t < 8 || (t >= 16 && t < 18)) return quiet;
          if (t >= 8 && t < 16) return kWork;
          if (t < falls_at) return kHeld;
          return kRest + 8 * std::exp(-(t - falls_at) / 4);
        },
        23);
    auto& r = run.recording.readings;
    r.powers = run.gpu.samples(run.power, 0, 22);
    r.counters = run.gpu.reads(run.power, 0.1, 22);
    return *this;
  }
  // Clocks and utilisation every 0.9 s; `held_from`: when the clock rises.
  Board& gauges(double held_from = 5, double held_to = 18, double use = 1) {
    for (double t = 0.05; t < 22; t += 0.9) {
      const bool held = t >= held_from && t < held_to;
      run.recording.readings.gauges.push_back({kSmClock, at(t), held ? 1.98e9 : 3.45e8});
      run.recording.readings.gauges.push_back(
          {kUtilisation, at(t + 1e-5), t > 8 && t < 16.3 ? use : 0.0});
    }
    return *this;
  }
  Board& listed(ProcessId process, double from, double to) {
    for (double t = from; t < to; t += 1) {
      run.recording.process_readings.gpu_processes.push_back(
          {process, kGpu0, at(t), std::nullopt, 1 << 20});
    }
    return *this;
  }
  model::Recording& recording() { return run.recording; }
  model::KnownLevels& known() { return run.recording.domains[0].known_levels; }

  model::Profile profile() const {
    auto made = profile_of(run.recording);
    EXPECT_TRUE(made) << made.error().message;
    for (const auto& d : made->domains) {
      const auto& l = d.levels;
      if (l.rest && l.held && l.active) {
        EXPECT_EQ(l.rest->energy + l.held->energy + l.active->energy, d.energy->energy);
      }
    }
    expect_conserved(*made);
    return *made;
  }

 private:
  Recorded run;
};

double cold(double) { return kRest; }

TEST(Levels, AColdBoardIsSplitIntoRestHeldAndActive) {
  const auto profile = Board().draw(cold).gauges().listed(model::ProcessId{1}, 5.5, 18).profile();
  const auto& gpu = profile.domains[0];
  ASSERT_TRUE(gpu.levels.active) << gpu.levels.reason;
  EXPECT_NEAR(gpu.rest_power->power.watts(), kRest, 0.5);
  EXPECT_NEAR(gpu.held_power->power.watts(), kHeld, 1);
  EXPECT_TRUE(gpu.rest_power->observed && gpu.held_power->observed);
  EXPECT_NEAR(gpu.levels.rest->energy.joules(), kRest * 18, 10);
  EXPECT_NEAR(gpu.levels.held->energy.joules(), kHeldAlone, 15);
  EXPECT_NEAR(gpu.levels.active->energy.joules(), kActive, 0.02 * kActive);
  // The process has its held and active energy; the board at rest is of no process.
  const auto& share = profile.processes.at(0).shares.at(0);
  EXPECT_EQ(share.held, gpu.levels.held->energy);
  EXPECT_NEAR(share.energy.joules(), kActive + kHeldAlone, 0.03 * kActive);
}

TEST(Levels, PowerAfterTheContextIsNotHeld) {
  Board board;
  board.draw(cold, kRest + 8).gauges(8, 16.3).listed(model::ProcessId{1}, 8.5, 16.9);
  auto& gauges = board.recording().readings.gauges;
  gauges.push_back({kSmClock, at(16.86), 1.98e9});  // the last look at the context
  std::stable_sort(gauges.begin(), gauges.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  const auto gpu = board.profile().domains[0];
  EXPECT_FALSE(gpu.held_power && gpu.held_power->observed);
}

// Its utilisation is a mean over the second before, and its clocks are down at once.
TEST(Levels, AUtilisationThatIsLeftOfEndedWorkIsNoContext) {
  constexpr model::SensorId kCount{21};
  Board board;
  board.draw(cold, kRest + 8).gauges(8, 16.3).listed(model::ProcessId{1}, 8.5, 16.3);
  auto& r = board.recording();
  r.sensors.push_back(
      {kCount, kGpu0, model::SensorKind::kGauge, std::string(model::gauge::kProcessCount), {}, {}});
  for (double t = 0.05; t < 22; t += 0.9) {
    r.readings.gauges.push_back({kCount, at(t), t > 8 && t < 16.3 ? 1.0 : 0.0});
  }
  for (auto& g : r.readings.gauges) {
    if (g.sensor == kUtilisation && g.at > at(16.3) && g.at < at(18)) g.value = 0.04;
  }
  const auto gpu = board.profile().domains[0];
  EXPECT_FALSE(gpu.held_power && gpu.held_power->observed);
}

TEST(Levels, PowerThatStillFallsIsNotRest) {
  Board board;
  const auto warm = [](double t) { return kRest + 38 * std::exp(-t / 4); };
  board.draw(warm).gauges().listed(model::ProcessId{1}, 5.5, 18);
  board.known().rest = {Power::watts(kRest), Power::watts(0.6), 30.0, {}};
  const auto gpu = board.profile().domains[0];
  EXPECT_FALSE(gpu.rest_power->observed);
  EXPECT_NEAR(gpu.rest_power->power.watts(), kRest, 0.01);
  ASSERT_TRUE(gpu.levels.active) << gpu.levels.reason;
  EXPECT_NEAR(gpu.levels.active->energy.joules(), kActive, 0.04 * kActive);
}

TEST(Levels, ClocksThatAreStillUpAreNobodysContextWhereNoProcessIsListed) {
  constexpr model::SensorId kCount{21};
  Board board;
  board.draw(cold).gauges().listed(model::ProcessId{1}, 5.5, 18);
  auto& r = board.recording();
  r.sensors.push_back(
      {kCount, kGpu0, model::SensorKind::kGauge, std::string(model::gauge::kProcessCount), {}, {}});
  for (double t = 0.1; t < 22; t += 1) {
    r.readings.gauges.push_back({kCount, at(t), t > 5 && t < 18 ? 1.0 : 0.0});
  }
  for (auto& g : r.readings.gauges) {
    if (g.sensor == kSmClock && g.at > at(1) && g.at < at(2.5)) g.value = 1.98e9;
  }
  const auto profile = board.profile();
  EXPECT_TRUE(profile.processes.at(0).shares.at(0).held);
}

// The driver reports how much one of two processes worked when the other has ended.
TEST(Levels, AProcessWhoseUseIsNotKnownIsInBoundsThatHoldMoreThanItsContext) {
  Board board;
  board.draw(cold).gauges(5, 18, 0.4).listed(model::ProcessId{1}, 5.5, 18);
  auto& r = board.recording();
  r.process_readings.gpu_processes.back().compute_utilisation = 0.4;
  model::Process second = r.processes.at(0);
  second.id = model::ProcessId{2};
  second.pid = 77;
  r.processes.push_back(second);
  board.listed(second.id, 5.5, 14);
  const auto profile = board.profile();
  ASSERT_EQ(profile.processes.size(), 2u);
  for (const auto& process : profile.processes) {
    const auto& share = process.shares.at(0);
    ASSERT_TRUE(share.held && share.bounds) << process.process.pid;
    EXPECT_LE(share.bounds->low, share.energy);
    EXPECT_GE(share.bounds->high, share.energy);
    if (process.process.id != second.id) continue;
    EXPECT_EQ(share.energy, *share.held);
    EXPECT_GT(share.bounds->high.joules(), share.held->joules() + 0.1 * kActive);
  }
}

TEST(Levels, HeldAndActiveEnergyOfABoardThatMigDividesIsOfNoProcess) {
  Board board;
  board.draw(cold).gauges().listed(model::ProcessId{1}, 5.5, 18);
  ASSERT_TRUE(board.profile().processes.at(0).shares.at(0).held);
  auto& domains = board.recording().domains;
  domains.push_back({model::DomainId{9}, model::DomainKind::kGpu, "gpu0:mig0", "an instance",
                     "MIG-1", domains[0].id, true, "MIG instances have no sensor"});
  const auto profile = board.profile();
  // The listed process may not be the only one that uses the board.
  EXPECT_TRUE(profile.processes.at(0).shares.empty());
  const auto& gpu = profile.domains[0];
  EXPECT_NEAR(gpu.unattributed->joules(), kActive, 0.03 * kActive);
  EXPECT_EQ(gpu.held_unowned, gpu.levels.held->energy);
  EXPECT_THAT(profile.warnings, ::testing::Contains(HasSubstr("gpu0: MIG divides this GPU")));
}

// A board of two instances, of three slices and of one; the command is on the first.
struct DividedBoard {
  Board board;

  DividedBoard() {
    board.draw(cold).gauges().listed(model::ProcessId{1}, 5.5, 18);
    auto& r = board.recording();
    for (const unsigned i : {0u, 1u}) {
      r.domains.push_back({model::DomainId{9 + i}, model::DomainKind::kGpu,
                           "gpu0:mig" + std::to_string(i),
                           i == 0 ? "H100 MIG 3g.40gb" : "H100 MIG 1c.1g.10gb",
                           "MIG-" + std::to_string(i), r.domains[0].id, true, "no sensor"});
    }
    model::Process other;
    other.id = model::ProcessId{77};
    other.pid = 77;
    r.processes.push_back(other);
    const auto own = r.process_readings.gpu_processes;
    for (auto& reading : r.process_readings.gpu_processes) {
      reading.domain = model::DomainId{9};
      reading.compute_utilisation.reset();
    }
    for (auto reading : own) {
      reading.process = other.id;
      reading.domain = model::DomainId{10};
      reading.compute_utilisation.reset();
      r.process_readings.gpu_processes.push_back(reading);
    }
  }
  void activity(unsigned instance, double value) {
    auto& r = board.recording();
    const model::SensorId sensor{30 + instance};
    r.sensors.push_back({sensor,
                         model::DomainId{9 + instance},
                         model::SensorKind::kGauge,
                         std::string(model::gauge::kSmActivity),
                         {},
                         {}});
    for (double t = 0; t < 22; t += 0.9) r.readings.gauges.push_back({sensor, at(t), value});
  }
};

TEST(Levels, ABoardThatMigDividesIsDividedBySlicesWhereNoActivityIsKnown) {
  const auto profile = DividedBoard().board.profile();
  const auto& gpu = profile.domains[0];
  const auto& share = profile.processes.at(0).shares.at(0);
  ASSERT_TRUE(share.held);
  EXPECT_NEAR((share.energy - *share.held).joules(), 0.75 * kActive, 0.02 * kActive);
  EXPECT_NEAR((*gpu.others - *share.held).joules(), 0.25 * kActive, 0.02 * kActive);
  // Which of them worked is not known.
  // Before the first list and after the last one, who held it is not known either.
  EXPECT_LT(gpu.command_bounds->low, *share.held);
  EXPECT_GT(gpu.command_bounds->low.joules(), 0.85 * share.held->joules());
  EXPECT_GT((gpu.command_bounds->high - *share.held).joules(), 0.98 * kActive);
  EXPECT_FALSE(profile.processes.at(0).mean_sm_utilisation);
  ASSERT_TRUE(gpu.command);
  EXPECT_EQ(gpu.command->energy.provenance, model::Provenance::kEstimated);
  EXPECT_THAT(profile.warnings, ::testing::Contains(HasSubstr("whether each worked is not known")));
}

TEST(Levels, ABoardThatMigDividesIsDividedByActivityTimesSlices) {
  DividedBoard divided;
  divided.activity(0, 0.2);
  divided.activity(1, 0.9);
  const auto profile = divided.board.profile();
  const auto& gpu = profile.domains[0];
  const auto& share = profile.processes.at(0).shares.at(0);
  ASSERT_TRUE(share.held);
  const double part = 3 * 0.2 / (3 * 0.2 + 1 * 0.9);
  EXPECT_NEAR((share.energy - *share.held).joules(), part * kActive, 0.02 * kActive);
  EXPECT_NEAR((*gpu.others - *share.held).joules(), (1 - part) * kActive, 0.02 * kActive);
  EXPECT_GT((gpu.command_bounds->high - gpu.command_bounds->low).joules(), 0.3 * kActive);
  EXPECT_LT((gpu.command_bounds->high - *share.held).joules(), 0.9 * kActive);
  EXPECT_THAT(profile.warnings, ::testing::Contains(HasSubstr("by the activity and the slices")));
}

TEST(Levels, AnothersContextBeforeTheCommandIsNotRest) {
  const auto held = [](double) { return kHeld; };
  Board board;
  board.draw(held, kHeld, 100).gauges(0, 100).listed(model::ProcessId{9}, 0.5, 21.8);
  auto gpu = board.profile().domains[0];
  EXPECT_FALSE(gpu.levels.rest);
  EXPECT_FALSE(gpu.levels.held);
  EXPECT_THAT(gpu.levels.reason, HasSubstr("other processes held contexts"));
  // Held throughout: what is above that is known without rest.
  ASSERT_TRUE(gpu.levels.active);
  EXPECT_NEAR(gpu.levels.active->energy.joules(), kActive, 0.02 * kActive);

  board.known().rest = {Power::watts(kRest), Power::watts(0.6), 30.0, {}};
  gpu = board.profile().domains[0];
  ASSERT_TRUE(gpu.levels.active) << gpu.levels.reason;
  EXPECT_NEAR(gpu.levels.active->energy.joules(), kActive, 0.02 * kActive);
  // Held by several jobs: of no process of the command, and a part of its own.
  EXPECT_EQ(gpu.held_unowned, gpu.levels.held->energy);
  EXPECT_LT(*gpu.unattributed, gpu.levels.active->energy + Energy::joules(1));
}

TEST(Levels, ActiveEnergyIsKnownWithoutRestWhereTheContextEndsBeforeTheRecording) {
  const auto held = [](double) { return kHeld; };
  Board board;
  auto& r = board.draw(held, kHeld, 100).gauges(-1, 19.5).recording();
  std::erase_if(r.readings.powers, [](const auto& p) { return p.at > at(20); });
  std::erase_if(r.readings.counters, [](const auto& c) { return c.before > at(20); });
  std::erase_if(r.readings.gauges, [](const auto& g) { return g.at > at(20); });
  r.idle_spans.clear();
  r.run.command.clear();
  r.process_readings.processes.push_back({model::ProcessId{1}, at(2), {}, {}, {}, {}, {}});
  const auto gpu = board.profile().domains[0];
  EXPECT_FALSE(gpu.levels.rest);
  ASSERT_TRUE(gpu.levels.active);
  EXPECT_LE(gpu.levels.active->low().joules(), kActive);
  EXPECT_GE(gpu.levels.active->high().joules(), kActive);
  EXPECT_NEAR(gpu.levels.active->energy.joules(), kActive, 0.02 * kActive);
  EXPECT_FALSE(gpu.shares_include_rest);
}

TEST(Levels, ABoardThatIsNeverQuietHasNoHeldLevelOfItsOwn) {
  Board board;
  board.draw(cold, kWork).gauges();
  auto gpu = board.profile().domains[0];
  EXPECT_TRUE(gpu.levels.rest);
  EXPECT_FALSE(gpu.held_power && std::abs(gpu.held_power->power.watts() - kHeld) < 5);
}

TEST(Levels, WithoutClocksAndListsHeldIsUnknownAndRestIsNot) {
  const auto profile = Board().draw(cold).profile();
  const auto& gpu = profile.domains[0];
  EXPECT_TRUE(gpu.levels.rest);
  EXPECT_FALSE(gpu.levels.held);
  EXPECT_FALSE(gpu.levels.active);
  EXPECT_THAT(gpu.levels.reason, HasSubstr("when a context held the board"));
  EXPECT_TRUE(gpu.idle_part);
}

// Another program holds the board from before the command until after it.
Board& shared_with_a_notebook(Board& board) {
  auto& r = board.recording();
  r.processes.push_back(
      {model::ProcessId{2}, 200, {}, 1, "notebook", "notebook", at(-50), std::nullopt, false});
  board.listed(model::ProcessId{1}, 5.5, 18).listed(model::ProcessId{2}, 0, 22);
  for (double t = 0; t < 22; t += 1) {
    const double worked = std::clamp(t - 8, 0.0, 8.0);
    const auto used = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(worked));
    r.process_readings.processes.push_back({model::ProcessId{1}, at(t), used, {}, {}, {}, {}});
    r.process_readings.processes.push_back({model::ProcessId{2}, at(t), {}, {}, {}, {}, {}});
    r.process_readings.machine.push_back({at(t), used, 2 * (at(t) - at(-1)), 0});
  }
  return board;
}

// Work above held, and half of what is held while two hold it.
void expect_inside(const model::DomainProfile& gpu) {
  ASSERT_TRUE(gpu.command);
  const double truth = kActive + kHeldAlone / 2;
  EXPECT_LE(gpu.command->low().joules(), truth);
  EXPECT_GE(gpu.command->high().joules(), truth);
  EXPECT_GE(gpu.command->energy.energy.joules(), 0.9 * kActive);
}

TEST(Levels, TheCommandsPartHoldsWhatOneLevelThatIsUnknownLeavesOpen) {
  // It draws what a held board draws, all the time: rest is unknown.
  Board held;
  held.draw([](double) { return kHeld; }, kHeld, 30).gauges(-1, 30);
  const auto without_rest = shared_with_a_notebook(held).profile().domains[0];
  EXPECT_FALSE(without_rest.levels.rest);
  expect_inside(without_rest);
  // Rest is known from before, and the board is never quiet.
  Board busy;
  busy.draw([](double) { return kHeld; }, kHeld + 30, 30).gauges(-1, 30, 0.02);
  for (auto& g : busy.recording().readings.gauges) {
    if (g.sensor == kUtilisation) g.value = std::max(g.value, 0.01);
  }
  busy.known().rest = {Power::watts(kRest), Power::watts(0.6), 30.0, {}};
  const auto without_held = shared_with_a_notebook(busy).profile().domains[0];
  EXPECT_TRUE(without_held.levels.rest);
  EXPECT_FALSE(without_held.levels.held);
  expect_inside(without_held);
}

TEST(Levels, RestNextToANotebookIsNotThatOfAProgramThatIsAttachedTo) {
  for (const bool attached : {false, true}) {
    Board board;
    board.draw(cold).gauges();
    auto& r = shared_with_a_notebook(board).recording();
    board.known().rest = {Power::watts(kRest), Power::watts(0.6), 30.0, {}};
    if (attached) r.run.command.clear();
    const auto gpu = board.profile().domains[0];
    ASSERT_TRUE(gpu.command) << attached;
    EXPECT_FALSE(gpu.command->rest) << attached;
  }
}

TEST(Levels, ACommandWithoutAContextHoldsNothing) {
  Board board;
  board.draw(cold).gauges(100, 100, 0);
  const auto gpu = board.profile().domains[0];
  ASSERT_TRUE(gpu.levels.held) << gpu.levels.reason;
  EXPECT_EQ(gpu.levels.held->energy, Energy{});
}

// Reads that keep step with the counter's edges see one or the other. Samples say which; without
// them a second of 70 W is 64 W or 76 W, with an error of 7 W.
void expect_rest_where_reads_keep_step(bool has_samples) {
  SCOPED_TRACE(has_samples);
  for (const unsigned seed : {2u, 6u, 9u, 14u, 15u, 20u, 38u, 40u}) {
    Recorded run;
    auto& r = run.recording;
    run.gpu.seed = seed;
    run.gpu.phase = 1e-5;
    run.power.hold(70, 13.2);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    while (run.power.end() < 41.1) run.power.hold(uniform(random) < 0.6 ? 500 : 120, 0.5);
    run.power.hold(70, 1.1);
    r.run.work_begin = at(1.2);
    r.run.work_end = at(41.2);
    r.idle_spans = {{at(0.1), at(1.18)}};
    if (has_samples) r.readings.powers = run.gpu.samples(run.power, 0, run.power.end());
    r.readings.counters = run.gpu.reads(run.power, 0.1, run.power.end());
    const auto made = profile_of(r);
    ASSERT_TRUE(made) << made.error().message;
    const auto& gpu = domain(*made, kGpu0);
    ASSERT_TRUE(gpu.levels.rest) << seed << ": " << gpu.levels.reason;
    const auto& rest = *gpu.levels.rest;
    EXPECT_NEAR(rest.energy.joules(), 70 * 40, rest.repeatability.joules()) << seed;
    if (!has_samples) continue;
    // No update is counted in the second before its own or after it.
    const analysis::Run all(r);
    for (int second = 0; second < 11; ++second) {
      const auto& part = all.profile(Part{1s * second, 1s * (second + 1)});
      ASSERT_TRUE(part) << part.error().message;
      EXPECT_NEAR(domain(*part, kGpu0).energy->energy.joules(), 70, 2) << seed << ", " << second;
    }
  }
}

TEST(Levels, RestIsKnownWhereReadsKeepStepWithTheCounter) {
  expect_rest_where_reads_keep_step(true);
  expect_rest_where_reads_keep_step(false);
}

// Short idle spans show the mean of such power by chance only.
void expect_idle_in_bursts(double length, double read_every) {
  SCOPED_TRACE(length);
  int within = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    Truth power;
    double at_rest = 0;
    for (double t = 0; t < 33; t = power.end()) {
      const bool works = t >= length + 0.2 && t < length + 30.2;
      const double bursts = uniform(random) < 0.3 ? 20 : 0;
      power.hold(20 + bursts + (works ? 40 : 0), 0.03);
      if (works) at_rest += (20 + bursts) * 0.03;
    }
    Recorded run;
    auto& r = run.recording;
    r.run.work_begin = at(length + 0.2);
    r.run.work_end = at(length + 30.2);
    r.idle_spans = {{at(0.15), at(length + 0.18)}, {at(length + 30.25), at(2 * length + 30.25)}};
    for (double t = 0; t < 33; t += read_every)
      r.readings.counters.push_back({kRapl, at(t), at(t + 1e-5), Energy::joules(power.joules(t))});
    const auto made = profile_of(r);
    ASSERT_TRUE(made) << made.error().message;
    const auto& rest = domain(*made, kPackage0).levels.rest;
    ASSERT_TRUE(rest);
    within += std::abs(rest->energy.joules() - at_rest) <= rest->repeatability.joules();
  }
  EXPECT_GE(within, 17);
}

TEST(Levels, IdlePowerOfAProcessorInBurstsIsWithinItsInterval) {
  expect_idle_in_bursts(1, 0.1);
  expect_idle_in_bursts(0.3, 0.02);
  expect_idle_in_bursts(0.2, 0.02);
  expect_idle_in_bursts(0.15, 0.02);
}

}  // namespace
}  // namespace jouleprof::analysis
