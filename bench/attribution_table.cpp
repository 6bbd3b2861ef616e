// The error of attribution on synthetic runs of known power, as a Markdown table.
//
//     attribution_table [WORDS]     only the rows whose names contain these words
//
// Each row is several runs of 15 kernels with random watts (120 to 520 above an idle of 120),
// lengths (5 to 125 us) and idle times between launches (1 to 20 us). Simulated sensors observe
// the power; nothing is measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "analysis/run.h"
#include "analysis/synthetic_run_test.h"

namespace {

using namespace jouleprof;
using namespace jouleprof::analysis;
using namespace jouleprof::analysis::simulated;

struct Case {
  const char* name;
  SyntheticRun run;
};

std::vector<Case> cases() {
  SyntheticRun usual;
  usual.wander = 0.03;
  std::vector<Case> out;
  const auto add = [&](const char* name, auto change) {
    SyntheticRun run = usual;
    change(run);
    out.push_back({name, run});
  };
  add("bursts 5-80 ms, 10 s", [](auto& r) { r.seconds = 10; });
  add("bursts 5-80 ms, 30 s", [](auto&) {});
  add("bursts 5-80 ms, 60 s", [](auto& r) { r.seconds = 60; });
  add("bursts 5-80 ms, 120 s", [](auto& r) { r.seconds = 120; });
  const auto brief = [](auto& r) {
    r.shortest = 0.3e-3;
    r.longest = 6e-3;
  };
  add("bursts 0.3-6 ms, 30 s", brief);
  add("bursts 0.3-6 ms, 60 s", [&](auto& r) {
    brief(r);
    r.seconds = 60;
  });
  add("no jitter of stamps", [](auto& r) { r.sensors.jitter = false; });
  add("each burst 10 % off", [](auto& r) { r.wander = 0.1; });
  add("power capped at 450 W", [](auto& r) { r.cap = 450; });
  add("power capped at 350 W", [](auto& r) { r.cap = 350; });
  add("two streams at once", [](auto& r) { r.overlapped = 0.5; });
  add("two streams, 1.5 times the mean of their powers", [](auto& r) {
    r.overlapped = 0.5;
    r.overlapped_watts = 1.5;
  });
  add("plain mean of 25 ms, no rise", [](auto& r) {
    r.sensors.rise = 0;
    r.sensors.window = 0.025;
    r.sensors.lag = 0.0025;
  });
  add("samples 3 % high", [](auto& r) { r.sensors.gain = 1.03; });
  add("all kernels in every burst", [](auto& r) { r.together = true; });
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  fmt::print(
      "| run (simulated) | energy-weighted error | worst class of 2 % or more | covered | mean 95 "
      "% "
      "half-width | not resolvable |\n|---|---|---|---|---|---|\n");
  for (auto& [name, run] : cases()) {
    if (std::string_view(name).find(wanted) == std::string_view::npos) continue;
    constexpr unsigned kRuns = 5;
    double joules = 0, off = 0, width = 0, worst = 0;
    int covered = 0, classes = 0, unresolved = 0;
    for (unsigned seed = 1; seed <= kRuns; ++seed) {
      run.seed = run.sensors.seed = seed;
      run.kernels = various_kernels(15, 100 + seed);
      const auto made = synthesise(run);
      const analysis::Run analysed(made.recording);
      const auto& profiles = analysed.activity();
      if (!profiles || profiles->empty()) {
        fmt::print(stderr, "{}: nothing attributed\n", name);
        return 1;
      }
      double all = 0;
      for (const double j : made.joules) all += j;
      for (const auto& row : profiles->front().by_kernel) {
        const auto index = static_cast<std::size_t>(std::stoul(row.name.substr(7)));
        const double truth = made.joules[index];
        const double error = std::abs(row.energy->energy.joules() - truth);
        const double half = row.energy->repeatability.joules();
        joules += truth;
        off += error;
        width += half;
        if (truth >= 0.02 * all) worst = std::max(worst, error / truth);
        covered += error <= half;
        unresolved += !row.resolvable;
        ++classes;
      }
    }
    fmt::print("| {} | {:.2f} % | {:.1f} % | {}/{} | {:.1f} % | {} |\n", name, 100 * off / joules,
               100 * worst, covered, classes, 100 * width / joules, unresolved);
    std::fflush(stdout);
  }
  return 0;
}
