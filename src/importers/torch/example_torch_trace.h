// A trace of torch.profiler: for tests.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "model/recording.h"

namespace jouleprof::importers {

inline constexpr std::int64_t kBase = 1'790'857'026'000'000'000;

// In Kineto's format, with its white space and unusual numbers: an operator on thread 11 launches a
// gemm and a copy, one on thread 12 a gemm; one kernel has no launch, and one is later than the
// readings.
inline std::string trace_text() {
  return R"json( {
    "schemaVersion": 1,
    "deviceProperties": [
    { "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85045149696 }
    ],
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1790857026000000000,
    "traceEvents": [

  {
    "ph": "M",  "name": "process_name", "ts": 1000000.000, "pid": 0, "tid": 0,
    "args": { "name": "python }]\"" }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::linear \u00e4", "pid": 10, "tid": 11,
    "ts": 1000000.000, "dur": 100.0
    ,
    "args": {
      "External id": 5,"Input Dims": [[64, 64], [1.50e3, -0.0]], "Ev Idx": 4
    }
  },
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11,
   "ts": 1000010.000, "dur": 5.000, "args": {"External id": 5, "correlation": 70}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 10, "tid": 11,
   "ts": 1000100.000, "dur": 5.000, "args": {"External id": 5, "correlation": 71}},
  {"ph": "X", "cat": "user_annotation", "name": "backward", "pid": 10, "tid": 12,
   "ts": 1000200, "dur": 300},
  {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 10, "tid": 12,
   "ts": 1000250.250, "dur": 5.000, "args": { "correlation": 72 }},
  {"ph": "X", "cat": "kernel", "name": "gemm<float, 4>(float*)", "pid": 0, "tid": 7,
   "ts": 1000500.500, "dur": 2000.000,
   "args": {
     "External id": 5, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 70,
     "grid": [16, 4, 1], "block": [256, 1, 1], "est. achieved occupancy %": 50
   }
  },
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "pid": 0, "tid": 7,
   "ts": 1002500.500, "dur": 1000,
   "args": {"device": 0, "stream": 7, "correlation": 71, "bytes": 1500}},
  {"ph": "X", "cat": "kernel", "name": "gemm<float, 4>(float*)", "pid": 0, "tid": 8,
   "ts": 1003500.500, "dur": 1000.000, "args": {"device": 0, "stream": 8, "correlation": 72,
     "grid": [16, 4, 1], "block": [256, 1, 1]}},
  {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 8,
   "ts": 1004500.500, "dur": 1.000, "args": {}},
  {"ph": "s", "id": 70, "pid": 10, "tid": 11, "ts": 1000010.000, "cat": "ac2g", "name": "ac2g"},
  {"ph": "X", "cat": "kernel", "name": "late", "pid": 0, "tid": 7,
   "ts": 9000000, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 99,
     "grid": [1, 1, 1], "block": [1, 1, 1]}}
  ],
  "traceName": "/tmp/trace.json" })json"
         "\n";
}

// A recording of one GPU at 300 W, over four seconds around the trace.
inline model::Recording torch_power() {
  model::Recording r;
  model::Domain domain;
  domain.device = "gpu0";
  domain.name = "GPU";
  domain.uuid = "GPU-5";
  r.domains = {domain};
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kPowerRing;
  r.sensors = {sensor};
  // The machine started a thousand seconds earlier.
  const RealTime real{Duration{kBase}};
  r.clock_points = {{HostTime{std::chrono::seconds{1000}}, real, {}}};
  for (int i = 0; i < 200; ++i) {
    r.readings.powers.push_back(
        {sensor.id, HostTime{std::chrono::seconds{1000} + i * std::chrono::milliseconds{20}},
         Power::watts(300)});
  }
  return r;
}

}  // namespace jouleprof::importers
