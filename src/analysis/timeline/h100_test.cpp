// The timeline over readings of a real H100 (tests/fixtures/h100).
#include <gtest/gtest.h>

#include "analysis/timeline/timeline.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

struct Event {
  std::string name;
  HostTime begin{};
  HostTime end{};
};

std::vector<std::vector<std::string>> rows(const std::string& name) {
  const auto text =
      read_file(std::string(JOULEPROF_SOURCE_DIR) + "/tests/fixtures/h100/" + name + ".csv");
  EXPECT_TRUE(text.has_value());
  std::vector<std::vector<std::string>> out;
  if (!text) return out;
  for (const auto line : split(*text, '\n')) {
    if (line.empty()) continue;
    std::vector<std::string> fields;
    for (const auto field : split(trim(line), ',')) fields.emplace_back(field);
    out.push_back(std::move(fields));
  }
  out.erase(out.begin());
  return out;
}

HostTime stamp(const std::string& text, std::int64_t unit) {
  return HostTime{Duration{*parse_integer(text) * unit}};
}

struct H100Run {
  EnergyTimeline timeline;
  std::vector<Event> events;
};

H100Run load(const std::string& name) {
  using model::SensorKind;
  model::Sensor counter{model::SensorId{0}, {}, SensorKind::kEnergyCounter, "counter", {}, {}};
  counter.traits.refresh = 100ms;
  counter.traits.quantum = Energy::millijoules(1);
  model::Sensor ring{model::SensorId{1}, {}, SensorKind::kPowerRing, "ring", {}, {}};
  ring.traits.refresh = 20ms;
  ring.traits.window = 25ms;
  ring.traits.lag = 2500us;
  H100Run out{EnergyTimeline({counter, ring}), {}};
  for (const auto& r : rows(name + "_samples")) {
    out.timeline.append(
        model::PowerReading{ring.id, stamp(r[0], 1000), Power::milliwatts(*parse_integer(r[1]))});
  }
  for (const auto& r : rows(name + "_energy")) {
    out.timeline.append(model::CounterReading{counter.id, stamp(r[0], 1), stamp(r[1], 1),
                                              Energy::millijoules(*parse_integer(r[2]))});
  }
  for (const auto& r : rows(name + "_events")) {
    out.events.push_back({r[0], stamp(r[1], 1), stamp(r[2], 1)});
  }
  return out;
}

TEST(H100, SamplesAndCounterClose) {
  for (const auto& [name, tolerance] : {std::pair{"square", 0.005}, std::pair{"steady", 0.002}}) {
    H100Run r = load(name);
    const auto extent = r.timeline.extent();
    ASSERT_TRUE(extent);
    const HostTime begin = extent->begin + 300ms;
    const HostTime end = extent->end - 700ms;
    const auto samples = r.timeline.samples_only(begin, end);
    const auto counter = r.timeline.counter_only(begin, end);
    ASSERT_TRUE(samples && counter);
    EXPECT_NEAR(samples->joules(), counter->joules(), tolerance * counter->joules()) << name;
    const auto energy = r.timeline.energy(begin, end);
    ASSERT_TRUE(energy);
    EXPECT_NEAR(energy->energy.joules(), counter->joules(), 0.001 * counter->joules()) << name;
    EXPECT_TRUE(r.timeline.notes().empty());
  }
}

TEST(H100, SteadyLoadsAgreeWithTheCounter) {
  H100Run r = load("steady");
  ASSERT_EQ(r.events.size(), 9u);
  for (const Event& e : r.events) {
    const HostTime begin = e.begin + 300ms;
    const HostTime end = e.end - 300ms;
    const auto energy = r.timeline.energy(begin, end);
    const auto counter = r.timeline.counter_only(begin, end);
    ASSERT_TRUE(energy && counter) << e.name;
    EXPECT_NEAR(energy->energy.joules(), counter->joules(), 0.003 * counter->joules()) << e.name;
    EXPECT_LT(energy->repeatability.joules(), 0.02 * energy->energy.joules()) << e.name;
  }
}

TEST(H100, BurstsDrawWhatTheLongOnesDo) {
  H100Run r = load("square");
  for (const Event& e : r.events) {
    // Power settles in the first 50 ms.
    if (e.end - e.begin < 200ms) continue;
    const auto m = r.timeline.energy(e.begin + 50ms, e.end);
    ASSERT_TRUE(m);
    EXPECT_NEAR((m->energy / (e.end - e.begin - 50ms)).watts(), 690, 45);
  }
}

}  // namespace
}  // namespace jouleprof::analysis
