// Runs of kernels whose watts are known, as a recording: the known answers of attribution.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "analysis/timeline/simulated_sensors_test.h"
#include "model/activity/activity_codec.h"
#include "model/activity/device_timeline.h"
#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis::simulated {

inline constexpr model::SensorId kClockReasons{9};
inline constexpr model::SensorId kClock{10};
inline constexpr double kFullClock = 1.98e9;  // hertz

struct KernelSpec {
  double watts = 300;     // above idle, while it runs
  double length = 20e-6;  // seconds of one launch
  double pause = 2e-6;    // to the next launch of its burst
};

struct SyntheticRun {
  std::vector<KernelSpec> kernels;
  double seconds = 30;     // of bursts; a second of idle on either side
  double shortest = 5e-3;  // bursts
  double longest = 80e-3;
  double idle = 120;
  double wander = 0;         // of a burst's power: one sigma of what its kernel's differs by
  double cap = 0;            // power limit of the board in watts; 0: none
  double reasons_every = 2;  // seconds between two readings of the clock reasons, where capped
  double waiting = 0;        // watts above idle between a burst's launches
  bool together = false;     // all kernels in each burst, in turn: collinear
  double overlapped =
      0;  // the share of bursts that another kernel's overlap, on a second stream ...
  double overlapped_watts = 1;  // ... where both draw so many times the mean of their powers
  double alone = 0;             // seconds for which each kernel is replayed afterwards ...
  double alone_watts = 1;       // ... where each draws so many times its power
  double alone_pause = -1;      // ... with such pauses between launches, in seconds; -1: its own
  std::vector<double> alone_longer;  // ... where its launches take so many times as long
  // Seconds for which each kernel is tried before its loop, at the highest clock; its loop then has
  // the program's mean clock. 0: it is not tried.
  double tried = 0;
  GpuSensors sensors{.window = 0.003, .lag = 0.0027, .rise = 0.014};
  unsigned seed = 1;
};

// A board that reduces its clocks while its mean power exceeds the cap: kernels then take longer
// and draw less.
class Clocks {
 public:
  explicit Clocks(double cap) : cap_(cap) {}
  bool can_be_held() const { return cap_ > 0; }
  double now() const { return now_; }           // of the highest
  double power() const { return now_ * now_; }  // of a kernel, against that at the highest
  void follow(double watts, double length) {
    if (cap_ <= 0) return;
    mean_ += (watts - mean_) * (1 - std::exp(-length / 0.05));
    now_ = mean_ > cap_ ? std::max(now_ * std::exp(-length / 0.3), 0.5)
                        : std::min(now_ * std::exp(length / 0.6), 1.0);
  }

 private:
  double cap_;
  double now_ = 1;
  double mean_ = 0;
};

struct Synthesised {
  model::Recording recording;
  std::vector<double> joules;  // above idle, by kernel
  std::vector<double> busy;    // seconds, by kernel
  double replay_joules = 0;    // above idle, in isolated re-runs; in none of the above
};

// Two kernels at once, from `begin` until about `end`, each on its stream: where both run, each has
// half of the time. Calls launch(index, begin, end, stream) and busy(index, seconds, both); returns
// when the last launch has ended.
template <class OnLaunch, class OnBusy>
double two_streams(const std::vector<KernelSpec>& kernels, std::array<std::size_t, 2> which,
                   double begin, double end, OnLaunch launch, OnBusy busy) {
  std::array<double, 2> next{begin, begin + 0.3 * kernels[which[0]].length};
  std::array<bool, 2> runs{};
  for (double now = begin;;) {
    const double edge = std::min(next[0], next[1]);
    if (edge >= 1e300) return now;
    const bool both = runs[0] && runs[1];
    const double share = (edge - now) / (both ? 2 : 1);
    now = edge;
    for (std::size_t i = 0; i < 2; ++i) {
      const KernelSpec& kernel = kernels[which[i]];
      if (runs[i]) busy(which[i], share, both);
      if (next[i] > edge) continue;
      runs[i] = !runs[i] && edge < end;
      if (runs[i]) launch(which[i], edge, edge + kernel.length, i);
      next[i] = runs[i] ? edge + kernel.length : edge < end ? edge + kernel.pause : 1e300;
    }
  }
}

inline model::Layer a_layer(std::string name, std::uint32_t parent = model::kNone) {
  model::Layer layer;
  layer.name = std::move(name);
  layer.type = "Layer";
  layer.parent = parent;
  return layer;
}

// Kernel i is signature i, named "kernel i"; layer i of the trace launched it.
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
  Clocks clocks(run.cap);
  std::vector<model::GaugeReading> reported_gauges;
  double next_look = 0;
  double clock_sum = 0;  // of the work: relative clock x seconds
  double clock_time = 0;
  truth.hold(run.idle, 1.0);
  while (truth.end() < 1.0 + run.seconds) {
    const double length = run.shortest * std::pow(run.longest / run.shortest, uniform(random));
    const auto one =
        static_cast<std::size_t>(uniform(random) * static_cast<double>(run.kernels.size()));
    const double factor = 1 + run.wander * normal(random);
    const std::size_t kinds = run.together ? run.kernels.size() : 1;
    double period = 0;
    for (std::size_t n = 0; n < kinds; ++n) {
      const auto& k = run.kernels[run.together ? n : one];
      period += k.length + k.pause;
    }
    auto turns = static_cast<long>(std::max(length / period, 1.0));
    const auto start = static_cast<std::size_t>(uniform(random) * static_cast<double>(kinds));
    double t = truth.end();
    double joules = 0;  // above idle, since truth.end()
    const auto reported = [&] {
      const double span = t - truth.end();
      if (span <= 0) return;
      truth.hold(run.idle + joules / span, span);
      clocks.follow(run.idle + joules / span, span);
      joules = 0;
    };
    if (run.overlapped > 0 && uniform(random) < run.overlapped) {
      const auto other =
          static_cast<std::size_t>(uniform(random) * static_cast<double>(run.kernels.size()));
      t = two_streams(
          run.kernels, {one, other}, t, t + length,
          [&](std::size_t which, double from, double to, std::size_t stream) {
            const auto id = static_cast<std::uint32_t>(which);
            bins.add({at(from), at(to), id, id, static_cast<std::uint32_t>(stream)});
          },
          [&](std::size_t which, double share, bool both) {
            const double watts =
                factor * run.kernels[which].watts * (both ? run.overlapped_watts : 1);
            out.busy[which] += share;
            out.joules[which] += watts * share;
            joules += watts * share;
          });
      turns = 0;
    }
    for (long i = 0; i < turns; ++i) {
      for (std::size_t n = 0; n < kinds; ++n) {
        const std::size_t which = run.together ? (start + n) % kinds : one;
        const auto& k = run.kernels[which];
        const auto id = static_cast<std::uint32_t>(which);
        const double taken = k.length / clocks.now();
        const double energy = factor * k.watts * clocks.power() * taken;
        bins.add({at(t), at(t + taken), id, id, 0});
        t += taken + k.pause;
        out.busy[which] += taken;
        clock_sum += clocks.now() * taken;
        clock_time += taken;
        out.joules[which] += energy;
        joules += energy + run.waiting * k.pause;
      }
      if (clocks.can_be_held() && t - truth.end() > 0.002) reported();
    }
    reported();
    const bool look = clocks.can_be_held() && truth.end() > next_look;
    if (look)
      reported_gauges.push_back({kClock, at(truth.end() - 5e-4), kFullClock * clocks.now()});
    const double pause = 0.0003 + (uniform(random) < 0.2 ? 0.02 * uniform(random) : 0.0);
    truth.hold(run.idle, pause);
    clocks.follow(run.idle, pause);
    if (look) {
      next_look += run.reasons_every;
      reported_gauges.push_back({kClockReasons, at(truth.end()), clocks.now() < 0.99 ? 4.0 : 0.0});
    }
  }
  bins.finish();
  if (run.alone > 0) {
    truth.hold(run.idle, 0.3);
    for (std::uint32_t k = 0; k < run.kernels.size(); ++k) {
      const auto replayed = [&](double from, std::string bytes) {
        trace.chunks.push_back(
            {model::ChunkKind::kReplay, model::kNone, at(from), at(truth.end()), std::move(bytes)});
      };
      double t = truth.end();
      const auto& kernel = run.kernels[k];
      if (run.tried > 0) {
        const double period = kernel.length + 1e-6;
        const double tries = std::floor(run.tried / period);
        for (double i = 0; i < tries; ++i) {
          bins.add({at(t + i * period), at(t + i * period + kernel.length), k, k, 0});
        }
        truth.hold(run.idle + kernel.watts * kernel.length / period, tries * period);
      }
      truth.hold(run.idle, 0.15);
      replayed(t, {});
      const double clock = run.tried > 0 ? clock_sum / clock_time : 1;
      const double longer = (run.alone_longer.empty() ? 1 : run.alone_longer[k]) / clock;
      const double length = longer * kernel.length;
      const double period = length + (run.alone_pause < 0 ? kernel.pause : run.alone_pause);
      const auto calls = static_cast<std::uint64_t>(run.alone / period);
      t = truth.end();
      for (std::uint64_t i = 0; i < calls; ++i) {
        const double start = t + static_cast<double>(i) * period;
        bins.add({at(start), at(start + length), k, k, 0});
      }
      const double span = static_cast<double>(calls) * period;
      if (clocks.can_be_held()) {
        reported_gauges.push_back({kClock, at(t + span / 2), clock * kFullClock});
      }
      const double watts = clock * clock * run.alone_watts * kernel.watts;
      truth.hold(run.idle + watts * length / period, span);
      out.replay_joules += static_cast<double>(calls) * watts * length;
      model::ActivityEncoder encoder;
      const auto kilohertz = static_cast<std::uint64_t>(clock * kFullClock / 1e3);
      encoder.add(run.tried > 0 ? model::KernelRerun{1, kilohertz} : model::KernelRerun{});
      replayed(t, encoder.take());
    }
    bins.finish();
  }
  truth.hold(run.idle, 1.5);

  auto& r = out.recording;
  r.run.source = "import:csv";  // its traces are complete
  r.run.complete = true;
  r.domains.push_back(
      {kGpu0, model::DomainKind::kGpu, "gpu0", "Synthetic", "GPU-synthetic", {}, true, ""});
  r.sensors = {run.sensors.counter(), run.sensors.ring()};
  if (run.cap > 0) {
    r.sensors.push_back({kClockReasons,
                         kGpu0,
                         model::SensorKind::kGauge,
                         std::string(model::gauge::kClockEventReasons),
                         {},
                         {}});
    r.sensors.push_back(
        {kClock, kGpu0, model::SensorKind::kGauge, std::string(model::gauge::kSmClock), {}, {}});
    r.readings.gauges = std::move(reported_gauges);
  }
  r.readings.powers = run.sensors.samples(truth, 0.1, truth.end());
  r.readings.counters = run.sensors.reads(truth, 0.1, truth.end());
  r.traces.push_back(std::move(trace));
  return out;
}

// Kernels of very different power and length.
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
