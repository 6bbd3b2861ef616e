#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "apps/cli/bench/bench_workload.h"

namespace jouleprof::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCase = R"({
  "window": "hf:x, generate, batch 2", "workload": "hf:x", "mode": "generate", "batch": 2,
  "dtype": "bfloat16", "device": "cuda:0", "device_name": "a GPU", "energy_device": "gpu0",
  "seed": 3, "inputs": "tokens", "input_size": [2, 16], "new_tokens": 8, "iterations": 12,
  "units": [{"name": "sample", "per_iteration": 2}],
  "phases": [{"name": "decode", "window": "hf:x, generate, batch 2, decode",
              "units": [{"name": "decoded token", "per_iteration": 14}]}],
  "warm_up": {"seconds": 2.5, "iterations": 5, "steady": false, "remark": "power changed",
              "compared": ["time", "power"]},
  "threads": 4,
  "latency": {"median_seconds": 0.5, "quartiles_seconds": [0.45, 0.5, 0.55], "interquartile_range_seconds": 0.1, "mean_seconds": 0.6,
              "mean_relative_error_ratio": null, "p50_seconds": 0.5, "p90_seconds": 0.7,
              "p99_seconds": 0.8, "quantiles_of_iterations": 1, "blocks": 12,
              "iterations_per_block": 1, "first_token_p50_seconds": 0.02,
              "first_token_p90_seconds": 0.03, "first_token_p99_seconds": 0.04,
              "inter_token_p50_seconds": 0.01, "inter_token_p90_seconds": 0.01,
              "inter_token_p99_seconds": 0.012},
  "reached_target": true, "macs": null, "macs_reason": "does more", "torch_timer":
  {"median_seconds": 0.51, "blocks": 3, "iterations_per_block": 1, "text": "a measurement",
   "compare_text": "[--- ---]"},
  "model": {"parameters": 10, "trainable_parameters": 8, "macs": 77, "macs_reason": null,
            "layers": [{"name": "", "class": "Net", "input_size": null, "output_size": [2, 3],
                        "parameters": 10, "trainable_parameters": 8, "macs": null}]}
})";

std::string document(const std::string& bench, const char* schema = "jouleprof.bench.workload/1") {
  return std::string(R"({"schema": ")") + schema +
         R"(", "versions": {"torch": "2.11", "cuda": null}, "cases": [)" + bench + "]}";
}

TEST(BenchDocument, IsRead) {
  const auto read = parse_bench_document(document(kCase));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->versions, (std::map<std::string, std::string>{{"torch", "2.11"}}));
  ASSERT_EQ(read->cases.size(), 1U);
  const auto& bench = read->cases[0];
  EXPECT_EQ(bench.window, "hf:x, generate, batch 2");
  EXPECT_EQ(bench.iterations, 12U);
  EXPECT_EQ(bench.energy_device, "gpu0");
  EXPECT_EQ(bench.phases.at(0).units.at(0).per_iteration, 14);
  EXPECT_FALSE(bench.steady);
  EXPECT_FALSE(bench.latency.mean_error);
  EXPECT_EQ(bench.latency.first_token_p99, 0.04);
  EXPECT_EQ(bench.torch_timer_median, 0.51);
  EXPECT_EQ(bench.torch_timer_text, "a measurement");
  EXPECT_EQ(bench.torch_compare_text, "[--- ---]");
  EXPECT_EQ(bench.threads, 4U);
  ASSERT_TRUE(bench.latency.quartiles);
  EXPECT_EQ(bench.latency.quartiles->upper, 0.55);
  EXPECT_FALSE(bench.macs);
  EXPECT_EQ(bench.forward_macs, 77U);
  EXPECT_TRUE(bench.layers.at(0).input_size.empty());
  EXPECT_FALSE(bench.layers.at(0).macs);
  EXPECT_EQ(bench.reached_target, true);
}

TEST(BenchDocument, OfAnotherVersionIsRefused) {
  const auto read = parse_bench_document(document(kCase, "jouleprof.bench.workload/9"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kUnsupported);
  EXPECT_THAT(read.error().message, HasSubstr("of one version"));
}

TEST(BenchDocument, ThatIsDamagedIsAnError) {
  EXPECT_EQ(parse_bench_document("").error().code, Errc::kCorrupt);
  EXPECT_EQ(parse_bench_document("{}").error().code, Errc::kCorrupt);
  EXPECT_EQ(parse_bench_document(document("{}")).error().code, Errc::kCorrupt);
  std::string none = kCase;
  none.replace(none.find("\"iterations\": 12"), 16, "\"iterations\": 0");
  EXPECT_THAT(parse_bench_document(document(none)).error().message, HasSubstr("without an iter"));
  std::string text = kCase;
  text.replace(text.find("\"batch\": 2"), 10, "\"batch\": \"\"");
  EXPECT_EQ(parse_bench_document(document(text)).error().code, Errc::kCorrupt);
  text.replace(text.find("\"batch\": \"\""), 11, "\"batch\": 1e300");
  EXPECT_EQ(parse_bench_document(document(text)).error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace jouleprof::cli
