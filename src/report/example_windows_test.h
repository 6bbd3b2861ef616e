// Profiles with windows that the tests render.
#pragma once

#include <string>
#include <utility>

#include "report/example_profiles_test.h"

namespace jouleprof::report {

inline model::WindowGroup window_group(const model::Profile& profile, std::string name,
                                       std::size_t count, double mean_seconds) {
  model::WindowGroup group;
  group.name = std::move(name);
  group.count = count;
  group.total_time = duration_of(mean_seconds) * static_cast<std::int64_t>(count);
  for (const auto& d : profile.domains) group.energies.emplace_back().domain = d.domain.id;
  return group;
}

// The GPU machine, whose program named its work: epochs of many steps, one of which came too late,
// and a name that would drive a terminal.
inline model::Profile windowed_profile() {
  model::Profile profile = gpu_profile();
  const auto add = [&](std::string name, std::size_t count, double mean_seconds, double gpu_joules,
                       double package_joules) {
    auto group = window_group(profile, std::move(name), count, mean_seconds);
    group.energies[0].count = count;
    group.energies[0].energy = measured(gpu_joules, 0.05 * gpu_joules, 0.002 * gpu_joules,
                                        profile.domains[0].energy->sensor, "fused");
    group.energies[1].count = count;
    group.energies[1].energy =
        measured(package_joules, 0.06 * package_joules, 0.03 * package_joules,
                 profile.domains[1].energy->sensor, "counter");
    for (const std::size_t i : {2u, 3u}) group.energies[i].reason = "no readings of its sensor";
    profile.windows.push_back(std::move(group));
  };
  add("load data", 1, 3.25, 612.5, 871.25);
  add("epoch", 3, 26.5, 24'011.0, 10'110.0);
  add("step", 30'000, 0.0025, 21'750.25, 7'512.0);
  add("\x1b[2Jevaluate \xC2\xB5", 3, 1.125, 1'312.0, 604.75);
  auto& late = profile.windows[2].energies[0];
  --late.count;
  late.reason = "readings of nvmlDeviceGetSamples end 0.214 s before the end of the window";
  return profile;
}

// A table of runs under power limits, as Zeus writes it: neither readings nor times.
inline model::Profile sweep_profile(std::size_t runs) {
  model::Profile profile;
  profile.run.source = "import:zeus-sweep";
  profile.run.complete = true;
  profile.domains.push_back(domain(0, model::DomainKind::kGpu, "gpu0", "GPU of the table"));
  profile.domains[0].reason = "the file holds the energy of whole epochs, not the course of power";
  for (std::size_t i = 0; i < runs; ++i) {
    const std::string limit = std::to_string(100 + 25 * (i % 7));
    const std::string batch = std::to_string(32 << (i / 7 % 5));
    auto group = window_group(profile, "squad bert " + batch, 1,
                              512.5 / (1 + 0.1 * static_cast<double>(i % 7)));
    group.imported = true;
    group.labels = {{"dataset", "squad"},
                    {"network", "bert"},
                    {"batch_size", batch},
                    {"power_limit_watts", limit}};
    group.energies[0].count = 1;
    group.energies[0].reported = Energy::joules(40'000 + 750.5 * static_cast<double>(i % 7));
    profile.windows.push_back(std::move(group));
  }
  return profile;
}

}  // namespace jouleprof::report
