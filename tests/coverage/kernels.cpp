// How often the 95 % intervals of kernels hold the truth, on simulated loads, as a Markdown table.
//
//     kernel_coverage [WORDS] [RUNS]     only the rows whose names contain these words
//
// Each row is several runs of a load whose kernels and sensors are known (kernel_loads_test.h). The
// sensors follow power with a lag of 13.2 ms; the counter adds up samples 20 ms apart. Nothing is
// measured.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "analysis/kernel_loads_test.h"
#include "analysis/run.h"

namespace {

using namespace jouleprof;
using namespace jouleprof::analysis;
using namespace jouleprof::analysis::simulated;

struct Case {
  std::string name;
  std::function<KernelLoad(unsigned)> make;
  unsigned runs = 17;
};

double drift(double t, double watts) { return watts * 0.5 * (1 + std::sin(t / 5)); }

KernelLoad beside_others(unsigned seed) {
  KernelLoad load = bursts({}, seed);
  std::mt19937 random(seed + 5);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (double t = 1; t < load.end; t += 0.05 + 0.5 * uniform(random)) {
    const double length = 0.02 + 0.2 * uniform(random);
    load.others.push_back({t, t + length, 50 + 150 * uniform(random)});
    t += length;
  }
  return load;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"bursts of 5-80 ms", [](unsigned s) { return bursts({}, s); }});
  out.push_back({"bursts of 5-80 ms, an integrating counter", [](unsigned s) {
                   KernelLoad load = bursts({}, s);
                   load.sensors.sums_every = 0;
                   return load;
                 }});
  out.push_back({"bursts of 0.3-6 ms",
                 [](unsigned s) { return bursts({.shortest = 0.3e-3, .longest = 6e-3}, s); }});
  for (const double ms : {10.0, 50.0 / 3, 20.0, 25.0, 100.0 / 3, 40.0, 50.0, 100.0}) {
    for (const bool jitter : {false, true}) {
      out.push_back({fmt::format("loop of {:.1f} ms, jitter {} %", ms, jitter ? 0.2 : 0.02),
                     [=](unsigned s) {
                       FixedRate loop;
                       loop.period = ms / 1e3;
                       loop.jitter = jitter ? 2e-3 : 2e-4;
                       loop.phase = 0.02 * 0.137 * s;
                       if (s % 3 == 1) loop.shares = {0.1, 0.3};
                       if (s % 3 == 2) loop.shares = {0.2, 0.2, 0.2};
                       if (s % 3 == 2) loop.watts = {100, 500, 250};
                       if (s % 2 == 1) std::swap(loop.watts[0], loop.watts[1]);
                       KernelLoad load = fixed_rate(loop, s);
                       load.sensors.sums_phase = 0.003 + 1e-3 * (s % 17);
                       load.supposed_lag = 0.0025 + 1e-3 * (static_cast<int>(s % 3) - 1);
                       return load;
                     },
                     42});
    }
  }
  // Other periods and duties than those by which the constants were chosen, and other sensors.
  for (const double ms : {12.5, 30.0, 60.0, 200.0 / 3, 200.0}) {
    out.push_back({fmt::format("another loop, of {:.1f} ms", ms), [=](unsigned s) {
                     std::mt19937 random(s + 900);
                     std::uniform_real_distribution<double> uniform(0, 1);
                     FixedRate loop;
                     loop.period = ms / 1e3;
                     loop.jitter = s % 2 == 0 ? 2e-4 : 2e-3;
                     loop.phase = 0.02 * uniform(random);
                     const double busy = 0.1 + 0.85 * uniform(random);
                     const double first = busy * (0.1 + 0.8 * uniform(random));
                     loop.shares = {first, busy - first};
                     loop.watts = {80 + 450 * uniform(random), 80 + 450 * uniform(random)};
                     KernelLoad load = fixed_rate(loop, s);
                     load.sensors.sums_phase = 0.02 * uniform(random);
                     return load;
                   }});
  }
  for (const double ms : {10.0, 50.0, 100.0}) {
    out.push_back({fmt::format("bursts of 5-80 ms, samples and their windows of {:.0f} ms", ms),
                   [=](unsigned s) {
                     KernelLoad load = bursts({}, s);
                     load.sensors.sample_every = load.sensors.window = ms / 1e3;
                     load.sensors.sums_every = 0;
                     return load;
                   }});
  }
  for (const double watts : {6.0, 10.0, 20.0}) {
    out.push_back({fmt::format("idle drifts by {:.0f} W", watts), [=](unsigned s) {
                     KernelLoad load = bursts({}, s);
                     load.idle = [=](double t) { return 120 + drift(t + s, watts); };
                     return load;
                   }});
    out.push_back({fmt::format("idle rises by {:.0f} W", watts), [=](unsigned s) {
                     KernelLoad load = bursts({}, s);
                     const double end = load.end;
                     load.idle = [=](double t) {
                       return 120 + watts * std::clamp((t - 1) / (end - 1), 0.0, 1.0);
                     };
                     return load;
                   }});
  }
  for (const double watts : {10.0, 20.0, 45.0}) {
    out.push_back({fmt::format("a context holds {:.0f} W more, no pause", watts),
                   [=](unsigned s) {
                     KernelLoad load = bursts({.pause_share = 0}, s);
                     const double end = load.end;
                     load.idle = [=](double t) {
                       return t > 0.95 && t < end + 0.05 ? 100 + watts : 100;
                     };
                     load.states_idle = true;
                     return load;
                   },
                   50});
  }
  for (const double ms : {-10.0, 10.0, 20.0, 30.0, 50.0}) {
    out.push_back({fmt::format("kernel times late by {:.0f} ms", ms), [=](unsigned s) {
                     KernelLoad load = bursts({}, s);
                     load.late = ms / 1e3;
                     return load;
                   }});
  }
  for (const double watts : {8.0, 15.0}) {
    out.push_back({fmt::format("samples' noise {:.0f} W", watts), [=](unsigned s) {
                     KernelLoad load = bursts({}, s);
                     load.noise = watts;
                     return load;
                   }});
    out.push_back(
        {fmt::format("samples' noise {:.0f} W, an integrating counter", watts), [=](unsigned s) {
           KernelLoad load = bursts({}, s);
           load.noise = watts;
           load.sensors.sums_every = 0;
           return load;
         }});
  }
  out.push_back({"bursts of another program", beside_others});
  out.push_back(
      {"a tenth of the launches missing", [](unsigned s) { return bursts({.missing = 0.1}, s); }});
  for (const double share : {0.05, 0.1, 0.3}) {
    out.push_back({fmt::format("{:.0f} % of the launches missing, not counted", 100 * share),
                   [=](unsigned s) {
                     KernelLoad load = bursts({.missing = share}, s);
                     load.counts_lost = false;
                     return load;
                   }});
  }
  out.push_back({"two kernels of 0.3 ms in alternation",
                 [](unsigned s) { return alternating(2, 0.3e-3, 30, s); }, 50});
  for (const double ms : {5.0, 60.0}) {
    out.push_back({fmt::format("two kernels of {:.0f} ms in alternation", ms),
                   [=](unsigned s) { return alternating(2, ms / 1e3, 30, s); }});
  }
  out.push_back(
      {"six kernels of 0.3 ms in turn", [](unsigned s) { return alternating(6, 0.3e-3, 30, s); }});
  for (const std::size_t count : {150, 400}) {
    out.push_back({fmt::format("{} signatures, 240 s", count),
                   [=](unsigned s) { return many_signatures(count, 240, s); }, 1});
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  const unsigned most = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1000;
  fmt::print(
      "| load (simulated) | rows | resolvable | inside | not resolvable: below the upper bound | "
      "median half-width | all kernels: inside | half-width | worst "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Case& one : cases()) {
    if (one.name.find(wanted) == std::string::npos) continue;
    int rows = 0, resolvable = 0, inside = 0, below = 0, sums = 0, runs = 0;
    double worst = 0;
    std::vector<double> widths, sum_widths;
    for (unsigned seed = 1; seed <= std::min(one.runs, most); ++seed) {
      const auto made = synthesise(one.make(seed));
      const analysis::Run analysed(made.recording);
      const auto& profiles = analysed.activity();
      if (!profiles || profiles->empty()) {
        fmt::print(stderr, "{}: nothing attributed\n", one.name);
        return 1;
      }
      double all = 0;
      for (const double j : made.joules) all += j;
      const auto& p = profiles->front();
      for (const auto& row : p.by_kernel) {
        const double truth = made.joules[static_cast<std::size_t>(std::stoul(row.name.substr(7)))];
        const double joules = row.energy->energy.joules();
        const double half = row.energy->repeatability.joules();
        ++rows;
        if (row.resolvable) {
          ++resolvable;
          inside += std::abs(joules - truth) <= half;
          widths.push_back(half / joules);
        } else {
          below += truth <= joules + half;
        }
        if (std::getenv("JOULEPROF_ROWS")) {
          fmt::print("  {} {} {:.1f} of {:.1f} +- {:.1f} J, {:.0f} of {:.0f} W{}\n", seed, row.name,
                     joules, truth, half, joules / seconds(row.busy), truth / seconds(row.busy),
                     row.resolvable ? "" : ", not resolvable");
        }
      }
      ++runs;
      const auto& whole = p.by_phase.front();
      const double half = whole.inclusive->repeatability.joules();
      sums += std::abs(p.kernels.joules() - all) <= half;
      sum_widths.push_back(half / p.kernels.joules());
      worst = std::max(worst, std::abs(p.kernels.joules() / all - 1));
      if (std::getenv("JOULEPROF_ROWS")) {
        fmt::print("  {} R2 {:.3f} idle {:.1f} +- {:.1f} W\n", seed, p.explained,
                   p.idle_power->watts(), p.idle_error->watts());
        for (const auto& w : p.warnings) fmt::print("    {}\n", w);
      }
    }
    const auto middle = [](std::vector<double>& v) {
      if (v.empty()) return 0.0;
      std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
      return v[v.size() / 2];
    };
    fmt::print("| {} | {} | {} | {} | {} of {} | {:.1f} % | {}/{} | {:.1f} % | {:.1f} % |\n",
               one.name, rows, resolvable, inside, below, rows - resolvable, 100 * middle(widths),
               sums, runs, 100 * middle(sum_widths), 100 * worst);
    std::fflush(stdout);
  }
  return 0;
}
