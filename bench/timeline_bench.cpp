// The timeline of one GPU: the cost of adding readings and of a query.
#include <benchmark/benchmark.h>

#include <chrono>

#include "analysis/timeline/timeline.h"
#include "bench/hour.h"

namespace jouleprof {
namespace {

using namespace std::chrono_literals;

constexpr double kLength = 600;

analysis::EnergyTimeline empty_timeline(bool with_counter) {
  analysis::TimelineSensors sensors;
  sensors.power = bench::ring_sensor();
  if (with_counter) sensors.counter = bench::counter_sensor();
  return analysis::EnergyTimeline(sensors);
}

// Ten minutes at once, as in a report.
void read_in(benchmark::State& state) {
  const auto readings = bench::gpu_readings(kLength);
  for (auto _ : state) {
    auto timeline = empty_timeline(state.range(0) != 0);
    timeline.append(readings);
    benchmark::DoNotOptimize(timeline.extent());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(readings.powers.size()));
}
BENCHMARK(read_in)->ArgName("counter")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond);

// Batches of 1.6 s with a query after each, as in a live session.
void read_in_while_asked(benchmark::State& state) {
  const auto readings = bench::gpu_readings(kLength);
  for (auto _ : state) {
    auto timeline = empty_timeline(true);
    std::size_t counter = 0;
    std::size_t n = 0;
    for (const auto& r : readings.powers) {
      timeline.append(r);
      if (++n % 80 != 0) continue;
      while (counter < readings.counters.size() && readings.counters[counter].after <= r.at) {
        timeline.append(readings.counters[counter++]);
      }
      benchmark::DoNotOptimize(timeline.energy(r.at - 1s, r.at - 500ms));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(readings.powers.size()));
}
BENCHMARK(read_in_while_asked)->Unit(benchmark::kMillisecond);

void ask_for_a_window(benchmark::State& state) {
  auto timeline = empty_timeline(true);
  timeline.append(bench::gpu_readings(kLength));
  const Duration length = std::chrono::milliseconds{state.range(0)};
  HostTime begin = bench::at(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(timeline.energy(begin, begin + length));
    begin += 12'345'678ns;
    if (begin > bench::at(kLength / 2)) begin = bench::at(1);
  }
}
BENCHMARK(ask_for_a_window)->ArgName("ms")->Arg(10)->Arg(1'000)->Arg(100'000);

}  // namespace
}  // namespace jouleprof

BENCHMARK_MAIN();
