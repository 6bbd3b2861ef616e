// What windows of one name come to together, live and from a recording: known answers.
#include "analysis/live/window_totals.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "analysis/live/live_energy.h"
#include "analysis/timeline/simulated_sensors_test.h"
#include "analysis/windows/windows.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;

constexpr double kFrom = 4;
constexpr double kTo = 34;
constexpr std::uint32_t kName = 3;

struct Span {
  double begin = 0;
  double end = 0;
};
using Spans = std::vector<Span>;

// Windows one after the other, of lengths between `shortest` and `longest`, `gap` apart.
Spans in_a_row(double shortest, double longest, double gap, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> length(shortest, longest);
  Spans spans;
  for (double t = kFrom; t < kTo;) {
    const double end = t + length(random);
    spans.push_back({t, end});
    t = end + gap;
  }
  return spans;
}

// A load that steps up and down at random.
Truth random_load(unsigned seed, double end) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> watts(120, 600);
  std::uniform_real_distribution<double> length(0.02, 0.6);
  Truth truth;
  truth.hold(120, 2);
  while (truth.end() < end) truth.hold(watts(random), length(random));
  return truth;
}

struct Reported {
  model::Measurement total;
  model::Measurement enclosing;
};

struct Simulated {
  explicit Simulated(unsigned seed, double end = kTo + 8) : truth(random_load(seed, end)) {
    gpu.seed = seed;
    recording.domains.push_back({kGpu0, model::DomainKind::kGpu, "gpu0", "", "", {}, true, ""});
    recording.sensors = {gpu.counter(), gpu.ring()};
    recording.readings.powers = gpu.samples(truth, 0, truth.end());
    recording.readings.counters = gpu.reads(truth, 0.1, truth.end());
  }
  double joules(const Spans& spans) const {
    double sum = 0;
    for (const auto& s : spans) sum += truth.joules(s.begin, s.end);
    return sum;
  }

  GpuSensors gpu;
  Truth truth;
  model::Recording recording;
};

Reported from_recording(Simulated& run, const Spans& spans) {
  run.recording.windows.clear();
  for (const auto& s : spans) {
    run.recording.windows.push_back({"step", at(s.begin), at(s.end), 1, 1, false});
  }
  auto timelines = timelines_of(run.recording);
  mark_windows(timelines, run.recording.windows);
  const auto groups = window_groups(run.recording, timelines, {}, {}, {});
  return {*groups.at(0).energies.at(0).energy,
          *timelines[0]->energy(at(spans.front().begin), at(spans.back().end))};
}

// As windows and readings arrive in a program that runs.
Reported live_with(Duration history, Simulated& run, const Spans& spans) {
  LiveEnergy energy(run.recording.domains, run.recording.sensors, history);
  const auto& powers = run.recording.readings.powers;
  const auto& counters = run.recording.readings.counters;
  std::size_t power = 0;
  std::size_t counter = 0;
  std::size_t span = 0;
  for (double t = 0.5; t < run.truth.end(); t += 0.5) {
    model::Readings readings;
    while (power < powers.size() && powers[power].at <= at(t)) {
      readings.powers.push_back(powers[power++]);
    }
    while (counter < counters.size() && counters[counter].after <= at(t)) {
      readings.counters.push_back(counters[counter++]);
    }
    energy.append(readings);
    for (; span < spans.size() && spans[span].end <= t; ++span) {
      energy.add(kName, at(spans[span].begin), at(spans[span].end));
    }
    energy.tidy(at(t));
  }
  const auto total = energy.total(kName);
  EXPECT_TRUE(total && total->energies[0]);
  EXPECT_EQ(total->count, spans.size());
  EXPECT_EQ(total->resolved_count, spans.size());
  return {*total->energies[0], *energy.energy(at(spans.front().begin), at(spans.back().end))[0]};
}

Reported live(Simulated& run, const Spans& spans) { return live_with(10min, run, spans); }

struct Windows {
  const char* name;
  double shortest;
  double longest;
  double gap;
};

class InARow
    : public ::testing::TestWithParam<std::tuple<Windows, Reported (*)(Simulated&, const Spans&)>> {
};

TEST_P(InARow, ErrAsOneWindowAroundThem) {
  const auto& [windows, reported_by] = GetParam();
  constexpr unsigned kRuns = 20;
  unsigned within = 0;
  for (unsigned seed = 1; seed <= kRuns; ++seed) {
    Simulated run(seed);
    const Spans spans = in_a_row(windows.shortest, windows.longest, windows.gap, seed);
    const Reported reported = reported_by(run, spans);
    const double off = reported.total.energy.joules() - run.joules(spans);
    within += std::abs(off) <= reported.total.repeatability.joules();
    const double gaps = run.truth.joules(spans.front().begin, spans.back().end) - run.joules(spans);
    EXPECT_LE(reported.total.repeatability.joules(),
              1.3 * reported.enclosing.repeatability.joules() + gaps)
        << "seed " << seed;
  }
  EXPECT_GE(within, 18u);  // 90 %
}

INSTANTIATE_TEST_SUITE_P(
    WindowTotalsTest, InARow,
    ::testing::Combine(::testing::Values(Windows{"Long", 0.3, 0.3, 0}, Windows{"Uneven", 0.1, 2, 0},
                                         Windows{"AroundTheLimit", 0.08, 0.12, 2e-6},
                                         Windows{"Short", 0.02, 0.02, 1e-6}),
                       ::testing::Values(&from_recording, &live)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) +
             (std::get<1>(test.param) == &live ? "Live" : "Recorded");
    });

// Epochs that begin before what is known in full detail: one after the other, and one alone.
TEST(WindowTotalsTest, AWindowMayBeLongerThanTheHistory) {
  Simulated run(1, 200);
  for (const Spans& spans : {Spans{{4, 70}, {70, 130}, {130, 190}}, Spans{{4.25, 190}}}) {
    const auto total = live_with(20s, run, spans).total;
    EXPECT_NEAR(total.energy.joules(), run.joules(spans), total.repeatability.joules());
    EXPECT_LT(total.repeatability.joules(), 0.01 * total.energy.joules());
  }
}

// A program may open windows for weeks.
TEST(WindowTotalsTest, LeaveNothingBehindOnceTheyAreSettled) {
  Simulated run(3, 80);
  EnergyLedger ledger({run.gpu.counter(), run.gpu.ring()}, 10min);
  ledger.append(run.recording.readings);
  WindowTotals totals(1);
  Spans spans;
  for (double t = kFrom; t < kTo; t += 0.5) {  // long ones, and short ones apart
    spans.insert(spans.end(), {{t, t + 0.2}, {t + 0.3, t + 0.33}, {t + 0.34, t + 0.4}});
  }
  for (const Span& s : spans) totals.add(kName, at(s.begin), at(s.end));
  totals.settle(at(kTo + 20), {&ledger});
  EXPECT_EQ(ledger.remembered(), 0U);
  const auto total = totals.total(kName, {&ledger});
  ASSERT_TRUE(total && total->energies[0]);
  EXPECT_EQ(total->resolved_count, spans.size());
  EXPECT_NEAR(total->energies[0]->energy.joules(), run.joules(spans),
              total->energies[0]->repeatability.joules());
}

TEST(WindowTotalsTest, WindowsApartAddInQuadrature) {
  Simulated run(1);
  Spans spans;
  // In no step with the sensor.
  for (double t = kFrom; t < kTo; t += 1.0131) spans.push_back({t, t + 0.5});
  const Reported reported = live(run, spans);
  const double one = live(run, {spans[0]}).total.repeatability.joules();
  EXPECT_GT(reported.total.repeatability.joules(), 3 * one);
  EXPECT_LT(reported.total.repeatability.joules(), 20 * one);
  EXPECT_NEAR(reported.total.energy.joules(), run.joules(spans),
              reported.total.repeatability.joules());
}

// The same windows from two threads: whatever one errs, the other errs too.
TEST(WindowTotalsTest, WindowsThatOverlapErrAlike) {
  Simulated run(2);
  Spans once;
  Spans twice;
  for (double t = kFrom; t < kTo; t += 1) {
    once.push_back({t, t + 0.5});
    twice.insert(twice.end(), 2, once.back());
  }
  const double single = live(run, once).total.repeatability.joules();
  EXPECT_NEAR(live(run, twice).total.repeatability.joules(), 2 * single, 0.01 * single);
  EXPECT_NEAR(from_recording(run, twice).total.repeatability.joules(),
              2 * from_recording(run, once).total.repeatability.joules(), 2 * single);
}

// Steps with pauses between them, of an idle board or of any power, on sensors of which some have
// samples. Live and recorded sums are one.
struct Draw {
  double step;
  double pause;
  double edges;  // of the counter
  bool idle;
  bool samples;
};

void step_and_pause(const Draw& draw, std::mt19937& random, Truth& truth, Spans& spans) {
  std::uniform_real_distribution<double> part(0, 1);
  const double level = 250 + 300 * part(random);
  for (int i = 0; i < 30; ++i) {
    const double begin = truth.end();
    truth.hold(level, 0.6 * draw.step * (0.95 + 0.1 * part(random)));
    truth.hold(level * 0.7, 0.4 * draw.step);
    spans.push_back({begin, truth.end()});
    if (draw.pause > 0) {
      truth.hold(draw.idle ? 100 : 100 + 450 * part(random),
                 draw.pause * (0.8 + 0.4 * part(random)));
    }
  }
}

TEST(WindowTotalsTest, PausesAreTakenOutAlikeLiveAndRecorded) {
  constexpr double kSteps[] = {0.005, 0.024, 0.1, 0.2};
  constexpr double kPauses[] = {0, 30e-6, 1e-3, 5e-3, 20e-3};
  unsigned draws = 0;
  unsigned within = 0;
  for (const double step : kSteps) {
    for (const double pause : kPauses) {
      for (unsigned kind = 0; kind < 4; ++kind) {
        std::mt19937 random(++draws);
        const Draw draw{step, pause, 0.02 * (1 + draws % 5), kind % 2 == 0, kind < 2};
        Simulated run(draws, 3);
        run.truth = Truth();
        run.truth.hold(100, 3 + 0.013 * draws);
        Spans spans;
        step_and_pause(draw, random, run.truth, spans);
        run.truth.hold(100, 8);
        run.gpu.edge_every = run.gpu.read_every = draw.edges;
        run.gpu.phase = 0.37 * draw.edges;
        run.gpu.latest_visible = std::min(0.016, 0.5 * draw.edges);
        TimelineSensors sensors{run.gpu.counter(), {}};
        run.recording.sensors = {run.gpu.counter()};
        run.recording.readings = {};
        if (draw.samples) {
          sensors.power = run.gpu.ring();
          run.recording.sensors.push_back(run.gpu.ring());
          run.recording.readings.powers = run.gpu.samples(run.truth, 0, run.truth.end());
        }
        run.recording.readings.counters = run.gpu.reads(run.truth, 0.1, run.truth.end());
        const Reported recorded = from_recording(run, spans);
        EnergyLedger ledger(sensors, 10min);
        ledger.append(run.recording.readings);
        WindowTotals totals(1);
        for (const Span& s : spans) {
          ledger.mark(at(s.begin));
          ledger.mark(at(s.end));
          totals.add(kName, at(s.begin), at(s.end));
        }
        const auto live = *totals.total(kName, {&ledger})->energies[0];
        const double truth = run.joules(spans);
        const double half = recorded.total.repeatability.joules();
        const std::string of = "step " + std::to_string(step) + " pause " + std::to_string(pause) +
                               " kind " + std::to_string(kind);
        EXPECT_NEAR(live.repeatability.joules(), half, 0.05 * half + 0.01) << of;
        EXPECT_NEAR(live.energy.joules(), recorded.total.energy.joules(), 0.1 * half + 0.01) << of;
        within += std::abs(recorded.total.energy.joules() - truth) <= half;
        const double power = truth / (static_cast<double>(spans.size()) * step);
        EXPECT_LE(half, 1.05 * recorded.enclosing.repeatability.joules() +
                            1.5 * power * pause * static_cast<double>(spans.size()))
            << of;
      }
    }
  }
  EXPECT_GE(within, draws * 95 / 100);
}

}  // namespace
}  // namespace jouleprof::analysis
