// The cost of aggregating a traced program's kernels into bins and scopes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/records.h"
#include "spans/scopes/scopes.h"

namespace jouleprof {
namespace {

struct Counter : model::ActivitySink {
  std::size_t bytes = 0;
  void define(std::uint32_t, const model::TracedDevice&) override {}
  void define(std::uint32_t, const model::KernelClass&) override {}
  void define(std::uint32_t, const model::Layer&) override {}
  void define(std::uint32_t, const model::Range&) override {}
  void define(std::uint32_t, const model::Scope&) override {}
  void add(const model::ActivityChunk& chunk) override { bytes += chunk.bytes.size(); }
  void status(const model::TraceStatus&) override {}
};

// One second of a program: `state.range(0)` kernels of 100 signatures and 50 layers, a tenth of
// them overlapping another; `state.range(1)`: each is kept.
void aggregate(benchmark::State& state) {
  const auto kernels = static_cast<std::size_t>(state.range(0));
  std::vector<std::string> names;
  for (int i = 0; i != 100; ++i) {
    names.push_back("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_" + std::to_string(i));
  }
  Counter sink;
  cupti::KernelClasses classes(sink);
  cupti::ActivityAggregator aggregator(sink, {.events = state.range(1) != 0});
  const std::int64_t step = 1'000'000'000 / state.range(0);
  std::int64_t now = 0;
  std::size_t done = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i != kernels; ++i) {
      cupti::Activity a;
      a.start = now;
      a.end = now + (i % 10 == 0 ? step * 3 / 2 : step * 9 / 10);
      const auto n = static_cast<std::uint32_t>(i % 100);
      a.kernel_class = classes.kernel(names[n].c_str(), {n, 1, 1}, {128, 1, 1});
      a.scope = static_cast<std::uint32_t>(i % 500 / 10);
      now += step;
      aggregator.add(a);
    }
    classes.renew();
    aggregator.settle(false, false);
    aggregator.send();
    done += kernels;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(done));
  state.counters["bytes_per_second_traced"] =
      static_cast<double>(sink.bytes) / static_cast<double>(state.iterations());
}
BENCHMARK(aggregate)
    ->Args({35'000, 0})
    ->Args({180'000, 0})
    ->Args({1'000'000, 0})
    ->Args({180'000, 1});

// The cost of a launch callback, in the same layer as the launch before or in another one.
void launch(benchmark::State& state) {
  cupti::CorrelationTable table;
  std::vector<std::uint32_t> layers;
  for (std::int64_t i = 0; i != state.range(0); ++i) layers.push_back(scopes::add(model::Layer{}));
  std::uint32_t correlation = 0;
  std::size_t next = 0;
  for (auto _ : state) {
    scopes::this_thread().layer = layers[next];
    if (++next == layers.size()) next = 0;
    table.put(++correlation, scopes::current());
  }
  scopes::this_thread() = {};
}
BENCHMARK(launch)->Arg(1)->Arg(100);

}  // namespace
}  // namespace jouleprof

BENCHMARK_MAIN();
