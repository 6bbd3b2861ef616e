// Loads on a GPU whose kernels and sensors are known, with what may be wrong about them: the known
// answers of coverage.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "analysis/synthetic_run_test.h"

namespace jouleprof::analysis::simulated {

struct KernelLoad {
  struct Launch {
    double begin = 0;
    double length = 0;
    std::uint32_t kernel = 0;
    bool recorded = true;
  };
  struct Burst {
    double begin = 0;
    double end = 0;
    double watts = 0;
  };
  std::vector<double> watts;     // above idle, by kernel
  std::vector<Launch> launches;  // in order, one at a time
  std::vector<Burst> others;     // of another program, in order
  std::function<double(double)> idle = [](double) { return 120.0; };
  double end = 0;            // of the work; it begins after a second
  double late = 0;           // seconds by which recorded times are
  double noise = 0;          // watts of a sample
  double supposed_lag = -1;  // what is believed of the sensor; -1: its lag
  bool pauses = true;        // before and after the work, in which the context exists
  bool states_idle = false;  // the recording states an idle span before the work
  bool counts_lost = true;   // the recording says how many launches it lacks
  GpuSensors sensors{.window = 0.0038, .lag = 0.0025, .rise = 0.0132, .sums_every = 0.02};
  unsigned seed = 1;

  void launch(double begin, double length, std::uint32_t kernel, bool recorded = true) {
    launches.push_back({begin, length, kernel, recorded});
    end = std::max(end, begin + length);
  }
};

// A loop at a fixed rate: in each frame kernel k runs for its share of the period, in launches of
// about a millisecond.
struct FixedRate {
  double period = 0.02;
  std::vector<double> shares{0.4, 0.4};
  std::vector<double> watts{400, 90};
  double jitter = 0.0005;  // relative, of a frame's begin
  double seconds = 30;
  double phase = 0;
};

inline KernelLoad fixed_rate(const FixedRate& loop, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  KernelLoad load;
  load.seed = load.sensors.seed = seed;
  load.watts = loop.watts;
  const auto frames = static_cast<long>(loop.seconds / loop.period);
  for (long i = 0; i < frames; ++i) {
    double t = 1 + loop.phase + loop.period * static_cast<double>(i) +
               loop.jitter * loop.period * normal(random);
    for (std::uint32_t k = 0; k < loop.shares.size(); ++k) {
      const double length = loop.shares[k] * loop.period;
      const auto pieces = static_cast<long>(std::max(std::round(length / 1e-3), 1.0));
      for (long n = 0; n < pieces; ++n) {
        load.launch(t, 0.999 * length / static_cast<double>(pieces), k);
        t += length / static_cast<double>(pieces);
      }
    }
  }
  return load;
}

struct Bursts {
  std::size_t kernels = 6;
  double shortest = 5e-3;
  double longest = 80e-3;
  double seconds = 30;
  double pause_share = 0.2;  // of bursts after which there is one ...
  double pause = 0.02;       // ... of at most so long
  double missing = 0;        // share of launches without a record
};

inline KernelLoad bursts(const Bursts& of, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  KernelLoad load;
  load.seed = load.sensors.seed = seed;
  for (std::size_t k = 0; k < of.kernels; ++k) load.watts.push_back(100 + 400 * uniform(random));
  double t = 1;
  while (t < 1 + of.seconds) {
    const auto k = static_cast<std::uint32_t>(uniform(random) * static_cast<double>(of.kernels));
    const double end = t + of.shortest * std::pow(of.longest / of.shortest, uniform(random));
    for (; t < end; t += 3.05e-4) load.launch(t, 3e-4, k, uniform(random) >= of.missing);
    t += 3e-4 + (uniform(random) < of.pause_share ? of.pause * uniform(random) : 0.0);
  }
  return load;
}

// `count` kernels in turn without a pause, each launch of one length.
inline KernelLoad alternating(std::size_t count, double length, double seconds, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  KernelLoad load;
  load.seed = load.sensors.seed = seed;
  for (std::size_t k = 0; k < count; ++k) load.watts.push_back(100 + 400 * uniform(random));
  std::uint32_t k = 0;
  for (double t = 1; t < 1 + seconds; t += length + 5e-6) {
    load.launch(t, length, k++ % static_cast<std::uint32_t>(count));
    if (uniform(random) < 0.003) t += 0.02 * uniform(random);
  }
  return load;
}

// Many signatures, one burst of one kernel after the other: a decode loop, dynamic shapes.
inline KernelLoad many_signatures(std::size_t count, double seconds, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  KernelLoad load;
  load.seed = load.sensors.seed = seed;
  for (std::size_t k = 0; k < count; ++k) load.watts.push_back(100 + 500 * uniform(random));
  for (double t = 1; t < 1 + seconds; t += 5e-4) {
    const auto k = static_cast<std::uint32_t>(uniform(random) * static_cast<double>(count));
    for (const double end = t + 0.1 + 0.2 * uniform(random); t < end; t += 2.02e-3) {
      load.launch(t, 2e-3, k);
    }
  }
  return load;
}

inline Synthesised synthesise(const KernelLoad& load) {
  Synthesised out;
  out.joules.assign(load.watts.size(), 0);
  out.busy.assign(load.watts.size(), 0);
  model::Trace trace;
  trace.pid = 7;
  trace.program = "synthetic";
  trace.devices.push_back({0, "GPU-synthetic", "Synthetic"});
  for (std::uint32_t k = 0; k < load.watts.size(); ++k) {
    model::KernelClass& kernel = trace.classes.emplace_back();
    kernel.name = "kernel " + std::to_string(k);
    kernel.grid = {k + 1, 1, 1};
  }
  model::ActivityBins bins({},
                           [&](model::ActivityChunk c) { trace.chunks.push_back(std::move(c)); });
  // Every time at which power may change; idle power does so every 50 ms.
  struct Step {
    double at;
    double watts;
  };
  std::vector<Step> steps;
  for (const auto& launch : load.launches) {
    const double joules = load.watts[launch.kernel] * launch.length;
    if (launch.recorded) {
      const double begin = launch.begin + load.late;
      bins.add({at(begin), at(begin + launch.length), launch.kernel, model::kNone, 0});
      out.joules[launch.kernel] += joules;
      out.busy[launch.kernel] += launch.length;
    }
    steps.push_back({launch.begin, load.watts[launch.kernel]});
    steps.push_back({launch.begin + launch.length, -load.watts[launch.kernel]});
  }
  bins.finish();
  for (const auto& other : load.others) {
    steps.push_back({other.begin, other.watts});
    steps.push_back({other.end, -other.watts});
  }
  const double length = load.end + 1.5;
  for (double t = 0.05; t < length; t += 0.05) steps.push_back({t, 0});
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.at < b.at; });
  Truth truth;
  double above = 0;
  for (const Step& step : steps) {
    const double t = truth.end();
    if (step.at > t) truth.hold(load.idle(0.5 * (t + step.at)) + above, step.at - t);
    above += step.watts;
  }

  auto& r = out.recording;
  r.run.source = "import:csv";  // its traces are complete
  r.run.complete = true;
  r.domains.push_back(
      {kGpu0, model::DomainKind::kGpu, "gpu0", "Synthetic", "GPU-synthetic", {}, true, ""});
  r.sensors = {load.sensors.counter(), load.sensors.ring()};
  if (load.supposed_lag >= 0) r.sensors[1].traits.lag = duration_of(load.supposed_lag);
  r.readings.powers = load.sensors.samples(truth, 0.1, truth.end());
  std::mt19937 random(load.seed + 77);
  std::normal_distribution<double> normal;
  for (auto& reading : r.readings.powers) {
    const double watts = reading.power.watts() + load.noise * normal(random);
    reading.power = Power::milliwatts(std::llround(1e3 * watts));
  }
  r.readings.counters = load.sensors.reads(truth, 0.1, truth.end());
  if (!load.pauses) {
    std::erase_if(r.readings.powers, [&](const auto& p) { return p.at < at(1.05); });
    std::erase_if(r.readings.counters, [&](const auto& c) { return c.after < at(1.05); });
  }
  if (load.states_idle) r.idle_spans.push_back({at(0.2), at(0.9)});
  for (const auto& launch : load.launches) {
    trace.status.dropped += launch.recorded || !load.counts_lost ? 0 : 1;
  }
  r.traces.push_back(std::move(trace));
  return out;
}

}  // namespace jouleprof::analysis::simulated
