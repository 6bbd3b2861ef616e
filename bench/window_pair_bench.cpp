// The cost of one window for the thread that opens and closes it, compared with two reads of the
// GPU's energy counter, as other tools do.
//
// JOULEPROF_NVML_LIBRARY may name the simulated NVML, whose scenario sets the duration of calls.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "jouleprof/jouleprof.hpp"

namespace {

jouleprof::Monitor& monitor() {
  static auto opened = jouleprof::Monitor::open();
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    std::exit(1);
  }
  return *opened;
}

void window_c(benchmark::State& state) {
  jouleprof_monitor* const m = monitor().get();
  const std::uint32_t name = jouleprof_monitor_name(m, "c");
  for (auto _ : state) {
    jouleprof_window window = jouleprof_window_begin(name);
    jouleprof_window_end(m, &window);
  }
}
BENCHMARK(window_c);

void window_cpp(benchmark::State& state) {
  const auto name = monitor().name("cpp");
  for (auto _ : state) const jouleprof::Window window(monitor(), name);
}
BENCHMARK(window_cpp);
BENCHMARK(window_cpp)->Threads(2);

void two_clock_stamps(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(jouleprof_now());
    benchmark::DoNotOptimize(jouleprof_now());
  }
}
BENCHMARK(two_clock_stamps);

// The first GPU's counter, read without any library in between.
struct BareCounter {
  using Init = int (*)();
  using GetHandle = int (*)(unsigned, void**);
  using GetEnergy = int (*)(void*, unsigned long long*);

  BareCounter() {
    const char* file = std::getenv("JOULEPROF_NVML_LIBRARY");
    void* library = dlopen(file != nullptr ? file : "libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<Init>(dlsym(library, "nvmlInit_v2"));
    const auto get = reinterpret_cast<GetHandle>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    if (init() != 0 || get(0, &handle) != 0) return;
    read = reinterpret_cast<GetEnergy>(dlsym(library, "nvmlDeviceGetTotalEnergyConsumption"));
  }

  void* handle = nullptr;
  GetEnergy read = nullptr;
};

void two_counter_reads(benchmark::State& state) {
  const BareCounter counter;
  if (counter.read == nullptr) return state.SkipWithError("no NVML device here");
  unsigned long long value = 0;
  for (auto _ : state) {
    counter.read(counter.handle, &value);
    counter.read(counter.handle, &value);
  }
}
BENCHMARK(two_counter_reads)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
