// The cost of opening and analysing a recording of one hour.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "analysis/run.h"
#include "bench/hour.h"
#include "recording/reader.h"
#include "recording/writer.h"
#include "report/format/format.h"

namespace jouleprof {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "recording_bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

// The hour as a file, removed when the program ends.
class HourFile {
 public:
  HourFile()
      : path_(std::filesystem::temp_directory_path() /
              ("jouleprof_bench." + std::to_string(getpid()) + ".jprof")) {
    if (auto done = recording::write_recording(path_, bench::one_hour()); !done) {
      std::fprintf(stderr, "recording_bench: %s\n", done.error().message.c_str());
      std::exit(1);
    }
  }
  ~HourFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const HourFile& hour_file() {
  static const HourFile file;
  return file;
}

void open_an_hour(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(must(recording::read_recording(hour_file().path())));
  }
  state.counters["file_bytes"] =
      static_cast<double>(std::filesystem::file_size(hour_file().path()));
}
BENCHMARK(open_an_hour)->Unit(benchmark::kMillisecond);

void analyse_an_hour(benchmark::State& state) {
  const auto recording = must(recording::read_recording(hour_file().path()));
  for (auto _ : state) benchmark::DoNotOptimize(must(analysis::Run(recording).profile()));
}
BENCHMARK(analyse_an_hour)->Unit(benchmark::kMillisecond);

void open_and_summarise_an_hour(benchmark::State& state) {
  for (auto _ : state) {
    const analysis::Run run(must(recording::read_recording(hour_file().path())));
    benchmark::DoNotOptimize(report::to_text(must(run.profile())));
  }
}
BENCHMARK(open_and_summarise_an_hour)->Unit(benchmark::kMillisecond);

void analyse_an_hour_with_windows(benchmark::State& state) {
  auto recording = bench::one_hour();
  bench::add_windows(recording, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const auto profile = must(analysis::Run(recording).profile());
    benchmark::DoNotOptimize(report::to_text(profile));
    benchmark::DoNotOptimize(report::to_json(profile));
  }
}
BENCHMARK(analyse_an_hour_with_windows)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace jouleprof

BENCHMARK_MAIN();
