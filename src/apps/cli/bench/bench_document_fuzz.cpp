// What a benchmark's workload says that it did.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apps/cli/bench/bench_workload.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  write_seed("document", R"({"schema": "jouleprof.bench.workload/1",
 "versions": {"torch": "2.11", "jouleprof": null},
 "cases": [{"window": "w", "workload": "deit-b", "mode": "inference", "batch": 1, "dtype": "bf16",
  "device": "cuda", "seed": 0, "inputs": "random", "input_size": [1, 3], "iterations": 100,
  "units": [{"name": "sample", "per_iteration": 1}],
  "phases": [{"name": "decode", "window": "d", "units": []}],
  "warm_up": {"seconds": 3, "iterations": 9, "steady": true, "remark": "", "compared": ["a"]},
  "latency": {"median_seconds": 0.1, "mean_seconds": 0.1, "p50_seconds": 0.1, "p90_seconds": 0.1,
   "p99_seconds": 0.1, "quantiles_of_iterations": 100, "blocks": 5, "iterations_per_block": 20},
  "macs": 5, "model": {"parameters": 7, "layers": [{"name": "l", "class": "Linear",
   "parameters": 3, "macs": 2, "input_size": [1]}]}}]})");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = cli::parse_bench_document(text);
  if (!document) {
    if (document.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& bench : document->cases) {
    if (bench.iterations == 0) std::abort();
  }
  return 0;
}
