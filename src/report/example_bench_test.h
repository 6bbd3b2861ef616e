// A benchmark that the tests render.
#pragma once

#include "report/example_profiles_test.h"
#include "report/results/bench.h"

namespace jouleprof::report {

// DeiT-B at batch 4 on a GPU at 300 W for 10 s: 1000 iterations.
inline BenchResult bench_result() {
  model::BenchCase bench;
  bench.window = "deit-b, eager, batch 4";
  bench.workload = "deit-b";
  bench.mode = "eager";
  bench.batch = 4;
  bench.dtype = "amp";
  bench.device = "cuda:0";
  bench.device_name = "NVIDIA H100";
  bench.energy_device = "gpu0";
  bench.inputs = "pixels, normal(0, 1), seed 0";
  bench.input_size = {4, 3, 224, 224};
  bench.iterations = 1000;
  bench.units = {{"sample", 4}};
  bench.warm_up_seconds = 3.5;
  bench.warm_up_iterations = 350;
  bench.steady = true;
  bench.compared = {"time", "power", "sm_clock_hertz"};
  bench.threads = 8;
  bench.latency = {.median = 0.01,
                   .quartiles = model::BenchLatency::Quartiles{0.00996, 0.01004},
                   .mean = 0.01,
                   .mean_error = 0.001,
                   .p50 = 0.00999,
                   .p90 = 0.0101,
                   .p99 = 0.0105,
                   .quantiles_of = 1,
                   .blocks = 100,
                   .iterations_per_block = 10,
                   .first_token_p50 = {},
                   .first_token_p99 = {},
                   .inter_token_p50 = {},
                   .inter_token_p99 = {}};
  bench.macs = 4 * 17'563'834'368;
  bench.forward_macs = bench.macs;
  bench.parameters = 86'567'656;
  bench.trainable_parameters = 86'567'656;
  bench.layers = {{"", "DeiT", {4, 3, 224, 224}, {4, 1000}, 86'567'656, bench.macs},
                  {"head", "Linear", {4, 768}, {4, 1000}, 769'000, 3'072'000}};
  bench.document = R"({"workload": "deit-b", "iterations": 1000})";

  analysis::BenchEnergy energy;
  energy.profile.begin = at(100);
  energy.profile.end = at(110);
  auto gpu = domain(0, model::DomainKind::kGpu, "gpu0", "NVIDIA H100");
  gpu.energy = measured(3000, 150, 3, "nvml", "fused");
  gpu.levels.rest = measured(800, 40, 1, "nvml", "fused");
  gpu.levels.held = measured(400, 20, 2, "nvml", "fused");
  gpu.levels.active = measured(1800, 90, 4, "nvml", "fused");
  gpu.levels.idle = Energy::joules(1200);
  gpu.idle_part = gpu.levels.rest->energy;
  gpu.rest_power = model::PowerLevel{Power::watts(80), Power::watts(0.1), "observed", true, {}};
  gpu.held_power = model::PowerLevel{Power::watts(120), Power::watts(0.2), "observed", true, {}};
  gpu.mean_power = Power::watts(300);
  gpu.peak_power = Power::watts(320);
  auto package = domain(1, model::DomainKind::kCpu, "package-0", "a CPU");
  package.energy = measured(500, 15, 5, "rapl", "counter");
  package.mean_power = Power::watts(50);
  energy.profile.domains = {gpu, package};
  energy.device = 0;
  energy.sm_clock = analysis::GaugeSummary{1.98e9, 1.965e9, 1.98e9};
  energy.temperature = analysis::GaugeSummary{45, 44, 46};
  energy.limits = {{{"power_limit", 0.125}}};
  return {bench, energy};
}

}  // namespace jouleprof::report
