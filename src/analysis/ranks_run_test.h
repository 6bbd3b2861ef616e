// Ranks of a data-parallel job whose times and watts are known, as a recording.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"
#include "model/activity/device_timeline.h"
#include "model/recording.h"

namespace jouleprof::analysis::simulated {

inline constexpr const char* kAllReduce =
    "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";

struct RanksRun {
  std::vector<double> slower{1, 1.4};  // by rank: compute times, against the first's
  int steps = 160;
  double compute = 0.04;  // seconds of a step; random, half to one and a half times
  double transfer = 0.01;
  double compute_watts = 400;  // above idle
  double collective_watts = 150;
  double idle = 120;
  double clock_offset = 0;  // seconds, of the second rank's clock
};

struct SimulatedRanks {
  model::Recording recording;
  std::vector<double> waiting;      // seconds, by rank
  std::vector<double> transfer;     // seconds, by rank
  std::vector<std::uint64_t> last;  // calls, by rank
  std::vector<double> waited_for;   // seconds, by rank
  std::vector<double> collective_joules;
};

// Rank r has GPU r; all have the same steps: a kernel, then an all-reduce that ends when the last
// rank has begun and the data are transferred.
inline SimulatedRanks simulate(const RanksRun& run) {
  const std::size_t ranks = run.slower.size();
  SimulatedRanks out;
  for (auto* sums : {&out.waiting, &out.transfer, &out.waited_for, &out.collective_joules}) {
    sums->assign(ranks, 0);
  }
  out.last.assign(ranks, 0);
  auto& r = out.recording;
  r.run.complete = true;
  r.run.work_begin = at(1);
  std::vector<Truth> powers(ranks);
  std::vector<model::ActivityBins> bins;
  r.traces.resize(ranks);
  for (std::uint32_t k = 0; k < ranks; ++k) {
    auto& trace = r.traces[k];
    trace.pid = static_cast<pid_t>(100 + k);
    trace.program = "python3";
    trace.rank.global = trace.rank.local = k;
    trace.rank.world_size = static_cast<std::uint32_t>(ranks);
    trace.devices.push_back({0, "GPU-" + std::to_string(k), "Simulated"});
    trace.classes.resize(2);
    trace.classes[0].name = "gemm";
    trace.classes[0].grid = {8, 1, 1};
    trace.classes[1].name = kAllReduce;
    trace.classes[1].grid = {16, 1, 1};
    trace.status.ended = true;
    bins.emplace_back(model::ActivityBins::Options{},
                      [&trace](model::ActivityChunk c) { trace.chunks.push_back(std::move(c)); });
    powers[k].hold(run.idle, 1);
  }
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  double now = 1;
  for (int step = 0; step < run.steps; ++step) {
    std::vector<double> begins;
    for (std::size_t k = 0; k < ranks; ++k) {
      begins.push_back(now + run.compute * run.slower[k] * uniform(random));
    }
    const auto latest = std::max_element(begins.begin(), begins.end());
    const auto slowest = static_cast<std::size_t>(latest - begins.begin());
    const double end = *latest + run.transfer;
    ++out.last[slowest];
    for (std::size_t k = 0; k < ranks; ++k) {
      const double offset = k == 1 ? run.clock_offset : 0;
      bins[k].add({at(now + offset), at(begins[k] + offset), 0, model::kNone, 7, false});
      bins[k].add({at(begins[k] + offset), at(end + offset), 1, model::kNone, 20, true});
      powers[k].hold(run.idle + run.compute_watts, begins[k] - now);
      powers[k].hold(run.idle + run.collective_watts, end - begins[k]);
      powers[k].hold(run.idle, 0.005);
      out.waiting[k] += *latest - begins[k];
      out.transfer[k] += run.transfer;
      out.waited_for[slowest] += *latest - begins[k];
      out.collective_joules[k] += run.collective_watts * (end - begins[k]);
    }
    now = end + 0.005;
  }
  r.run.work_end = at(now);
  for (std::uint32_t k = 0; k < ranks; ++k) {
    bins[k].finish();
    powers[k].hold(run.idle, 2);
    const auto id = model::DomainId{k};
    const std::string number = std::to_string(k);
    r.domains.push_back(
        {id, model::DomainKind::kGpu, "gpu" + number, "Simulated", "GPU-" + number, {}, true, ""});
    GpuSensors sensors;
    sensors.seed = k + 1;
    auto counter = sensors.counter();
    auto ring = sensors.ring();
    counter.id = model::SensorId{2 * k};
    ring.id = model::SensorId{2 * k + 1};
    counter.domain = ring.domain = id;
    r.sensors.push_back(counter);
    r.sensors.push_back(ring);
    for (auto reading : sensors.samples(powers[k], 0.1, powers[k].end())) {
      reading.sensor = ring.id;
      r.readings.powers.push_back(reading);
    }
    for (auto reading : sensors.reads(powers[k], 0.1, powers[k].end())) {
      reading.sensor = counter.id;
      r.readings.counters.push_back(reading);
    }
    model::Process process;
    process.id = model::ProcessId{k};
    process.pid = static_cast<pid_t>(100 + k);
    process.name = "python3";
    process.in_tree = true;
    process.start = at(1);
    process.end = at(now);
    r.processes.push_back(process);
  }
  r.idle_spans = {{at(0.1), at(0.95)}};
  return out;
}

}  // namespace jouleprof::analysis::simulated
