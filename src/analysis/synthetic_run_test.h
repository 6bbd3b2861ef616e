// Runs of kernels whose watts are known, as a recording: the known answers of attribution.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "analysis/simulated_sensors_test.h"
#include "model/activity_bins.h"
#include "model/recording.h"

namespace jouleprof::analysis::simulated {

struct KernelSpec {
  double watts = 300;     // above idle, while it runs
  double length = 20e-6;  // seconds of one launch
  double gap = 2e-6;      // to the next launch of its burst
};

struct SyntheticRun {
  std::vector<KernelSpec> kernels;
  double seconds = 30;     // of bursts; a second of idle on either side
  double shortest = 5e-3;  // bursts
  double longest = 80e-3;
  double idle = 120;
  double wander = 0;      // of a burst's power: one sigma of what its kernel's differs by
  double cap = 1e9;       // watts that power never exceeds
  bool together = false;  // all kernels in each burst, in turn: nothing separates them
  GpuSensors sensors{.window = 0.003, .lag = 0.0027, .rise = 0.014};
  unsigned seed = 1;
};

struct Synthesised {
  model::Recording recording;
  std::vector<double> joules;  // above idle, by kernel
  std::vector<double> busy;    // seconds, by kernel
};

inline model::Layer a_layer(std::string name, std::uint32_t parent = model::kNone) {
  model::Layer layer;
  layer.name = std::move(name);
  layer.type = "Layer";
  layer.parent = parent;
  return layer;
}

// Kernel i is class i, named "kernel i"; layer i of the trace launched it.
inline Synthesised synthesise(const SyntheticRun& run) {
  std::mt19937 random(run.seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  Synthesised out;
  out.joules.assign(run.kernels.size(), 0);
  out.busy.assign(run.kernels.size(), 0);

  model::Trace trace;
  trace.pid = 7;
  trace.program = "synthetic";
  trace.devices.push_back({0, "GPU-synthetic", "Synthetic"});
  for (std::uint32_t k = 0; k < run.kernels.size(); ++k) {
    model::KernelClass& kernel = trace.classes.emplace_back();
    kernel.name = "kernel " + std::to_string(k);
    kernel.grid = {k + 1, 1, 1};
    trace.layers.push_back(a_layer("layer" + std::to_string(k)));
    trace.scopes.push_back({k, model::kNone, model::Phase::kForward});
  }
  model::ActivityBins bins({},
                           [&](model::ActivityChunk c) { trace.chunks.push_back(std::move(c)); });

  Truth truth;
  truth.hold(run.idle, 1.0);
  while (truth.end() < 1.0 + run.seconds) {
    const double length = run.shortest * std::pow(run.longest / run.shortest, uniform(random));
    const auto one =
        static_cast<std::size_t>(uniform(random) * static_cast<double>(run.kernels.size()));
    const double factor = 1 + run.wander * normal(random);
    const std::size_t kinds = run.together ? run.kernels.size() : 1;
    double period = 0;
    double joules = 0;
    for (std::size_t n = 0; n < kinds; ++n) {
      const auto& k = run.kernels[run.together ? n : one];
      period += k.length + k.gap;
      joules += factor * k.watts * k.length;
    }
    const double above = std::min(joules / period, run.cap - run.idle);
    const auto turns = static_cast<long>(std::max(length / period, 1.0));
    double t = truth.end();
    const auto start = static_cast<std::size_t>(uniform(random) * static_cast<double>(kinds));
    for (long i = 0; i < turns; ++i) {
      for (std::size_t n = 0; n < kinds; ++n) {
        const std::size_t which = run.together ? (start + n) % kinds : one;
        const auto& k = run.kernels[which];
        const auto id = static_cast<std::uint32_t>(which);
        bins.add({at(t), at(t + k.length), id, id, 0});
        t += k.length + k.gap;
        out.busy[which] += k.length;
        out.joules[which] += factor * k.watts * k.length * above / (joules / period);
      }
    }
    truth.hold(run.idle + above, static_cast<double>(turns) * period);
    truth.hold(run.idle, 0.0003 + (uniform(random) < 0.2 ? 0.02 * uniform(random) : 0.0));
  }
  truth.hold(run.idle, 1.5);
  bins.finish();

  auto& r = out.recording;
  r.run.source = "import:csv";  // all that ran is told
  r.domains.push_back(
      {kGpu0, model::DomainKind::kGpu, "gpu0", "Synthetic", "GPU-synthetic", {}, true, ""});
  r.sensors = {run.sensors.counter(), run.sensors.ring()};
  r.readings.powers = run.sensors.samples(truth, 0.1, truth.end());
  r.readings.counters = run.sensors.reads(truth, 0.1, truth.end());
  r.traces.push_back(std::move(trace));
  return out;
}

// Classes of very different power and length.
inline std::vector<KernelSpec> various_kernels(std::size_t count, unsigned seed = 5) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<KernelSpec> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({120 + 400 * uniform(random), 5e-6 * std::pow(25, uniform(random)),
                   1e-6 * std::pow(20, uniform(random))});
  }
  return out;
}

}  // namespace jouleprof::analysis::simulated
