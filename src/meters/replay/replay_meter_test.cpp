#include "meters/replay/replay_meter.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace jouleprof::meters {
namespace {

using ::testing::SizeIs;
using namespace std::chrono_literals;
using model::DomainId;
using model::SensorId;

const HostTime kOrigin{5000s};
const HostTime kStart{70s};

// A package with its cores, read through a counter that wraps, and a GPU with power and a gauge.
model::Recording make_recording() {
  model::Recording r;
  r.domains.resize(3);
  r.domains[0].id = DomainId{7};
  r.domains[0].kind = model::DomainKind::kCpu;
  r.domains[1].id = DomainId{3};
  r.domains[1].kind = model::DomainKind::kCpuCores;
  r.domains[1].parent = DomainId{7};
  r.domains[2].id = DomainId{9};
  r.sensors.resize(3);
  r.sensors[0].id = SensorId{40};
  r.sensors[0].domain = DomainId{7};
  r.sensors[0].kind = model::SensorKind::kEnergyCounter;
  r.sensors[0].traits.wrap = Energy::joules(1000);
  r.sensors[0].traits.refresh = 1ms;
  r.sensors[1].id = SensorId{20};
  r.sensors[1].domain = DomainId{9};
  r.sensors[1].kind = model::SensorKind::kPowerInstant;
  r.sensors[2].id = SensorId{30};
  r.sensors[2].domain = DomainId{9};
  r.sensors[2].kind = model::SensorKind::kGauge;
  for (int i = 0; i < 20; ++i) {
    const HostTime at = kOrigin + i * 100ms;
    r.readings.counters.push_back(
        {SensorId{40}, at, at + 3us, Energy::microjoules(900'000'001 + i * 10'000'003)});
    r.readings.powers.push_back({SensorId{20}, at + 7ms, Power::watts(100 + i * 0.1)});
    r.readings.gauges.push_back({SensorId{30}, at + 9ms, i * 1.5});
  }
  for (auto& c : r.readings.counters) {
    if (c.total >= Energy::joules(1000)) c.total -= Energy::joules(1000);
  }
  r.readings.failures.push_back({SensorId{20}, kOrigin + 1s, {Errc::kTimeout, "no answer"}});
  return r;
}

struct Player {
  explicit Player(model::Recording recording, ReplayOptions options = {}) {
    options.clock = [this] { return now; };
    auto opened = ReplayMeter::open(std::move(recording), options);
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return;
    }
    meter = std::move(*opened);
  }
  HostTime now = kStart;
  std::unique_ptr<ReplayMeter> meter;
};

// `r` as a replay that starts at kStart has to hand it out.
model::Readings expected(model::Recording r) {
  const auto map = [](SensorId& id) {
    id = id == SensorId{40} ? SensorId{0} : id == SensorId{20} ? SensorId{1} : SensorId{2};
  };
  const Duration offset = kStart - kOrigin;
  for (auto& x : r.readings.counters) map(x.sensor), x.before += offset, x.after += offset;
  for (auto& x : r.readings.powers) map(x.sensor), x.at += offset;
  for (auto& x : r.readings.gauges) map(x.sensor), x.at += offset;
  for (auto& x : r.readings.failures) map(x.sensor), x.at += offset;
  return r.readings;
}

TEST(Replay, HandsOutEveryReadingExactlyOnceAndUnchanged) {
  for (const Duration step : {Duration{1ms}, Duration{33ms}, Duration{10s}}) {
    Player player(make_recording());
    ASSERT_TRUE(player.meter);
    model::Readings out;
    while (!player.meter->finished()) {
      player.now += step;
      player.meter->read(0, out);
    }
    EXPECT_EQ(out, expected(make_recording()));
    player.now += 100s;
    out.clear();
    player.meter->read(0, out);
    EXPECT_TRUE(out.empty());
  }
}

TEST(Replay, NothingComesBeforeItsTime) {
  Player player(make_recording());
  ASSERT_TRUE(player.meter);
  model::Readings out;
  player.meter->read(0, out);
  EXPECT_TRUE(out.empty());  // the first read began now, and ends 3 us later
  player.now = kStart + 3us;
  player.meter->read(0, out);
  EXPECT_THAT(out.counters, SizeIs(1));
  EXPECT_EQ(out.counters[0].before, kStart);
  player.now = kStart + 450ms;
  const HostTime next = player.meter->read(0, out);
  EXPECT_GT(next, player.now);
  EXPECT_THAT(out.counters, SizeIs(5));
  EXPECT_THAT(out.powers, SizeIs(5));
  EXPECT_FALSE(player.meter->finished());
}

TEST(Replay, IdsCountFromZero) {
  Player player(make_recording());
  ASSERT_TRUE(player.meter);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(player.meter->domains()[i].id, DomainId{i});
    EXPECT_EQ(player.meter->sensors()[i].id, SensorId{i});
  }
  EXPECT_EQ(player.meter->domains()[1].parent, DomainId{0});
  EXPECT_EQ(player.meter->sensors()[0].domain, DomainId{0});
  EXPECT_EQ(player.meter->sensors()[1].domain, DomainId{2});
}

TEST(Replay, IsSimulatedUnlessTheFileSaysOtherwise) {
  EXPECT_EQ(Player(make_recording()).meter->sensors()[0].provenance, model::Provenance::kSimulated);
  EXPECT_EQ(Player(make_recording(), {.keep_provenance = true}).meter->sensors()[0].provenance,
            model::Provenance::kMeasured);
}

TEST(Replay, FasterKeepsPowerAndShrinksTimeAndEnergy) {
  Player player(make_recording(), {.speed = 10});
  ASSERT_TRUE(player.meter);
  player.now += 191ms;
  model::Readings out;
  player.meter->read(0, out);
  EXPECT_TRUE(player.meter->finished());
  EXPECT_EQ(out.powers[19].power, make_recording().readings.powers[19].power);
  EXPECT_EQ(out.powers[19].at - out.powers[0].at, 190ms);
  const model::SensorTraits& traits = player.meter->sensors()[0].traits;
  EXPECT_EQ(traits.wrap, Energy::joules(100));
  EXPECT_EQ(traits.refresh, 100us);
  EXPECT_EQ(traits.window, std::nullopt);
  // 10.000003 J in 100 ms became 1.0000003 J in 10 ms, across the wrap too.
  for (std::size_t i = 1; i < out.counters.size(); ++i) {
    Energy step = out.counters[i].total - out.counters[i - 1].total;
    if (step < Energy{}) step += *traits.wrap;
    EXPECT_NEAR(static_cast<double>(step.microjoules()), 1'000'000.3, 1);
  }
}

TEST(Replay, BadInputIsRefused) {
  const auto error_of = [](model::Recording r, double speed = 1) {
    const auto meter = ReplayMeter::open(std::move(r), {.speed = speed});
    return meter ? std::optional<Errc>() : meter.error().code;
  };
  EXPECT_EQ(error_of(make_recording(), 0), Errc::kInvalidArgument);
  EXPECT_EQ(error_of(make_recording(), -1), Errc::kInvalidArgument);
  EXPECT_EQ(error_of(make_recording(), std::numeric_limits<double>::quiet_NaN()),
            Errc::kInvalidArgument);
  EXPECT_EQ(error_of({}), Errc::kUnavailable);
  auto recording = make_recording();
  recording.readings.powers[3].sensor = SensorId{99};
  EXPECT_EQ(error_of(recording), Errc::kCorrupt);
  recording = make_recording();
  recording.sensors[1].domain = DomainId{99};
  EXPECT_EQ(error_of(recording), Errc::kCorrupt);
  recording = make_recording();
  recording.sensors[1].id = recording.sensors[0].id;
  EXPECT_EQ(error_of(recording), Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::meters
