// jouleprof-nvml-sim: checks scenarios, states their true energy, prints examples.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/nvml_sim/core/simulator.h"
#include "apps/nvml_sim/tool/examples.h"
#include "base/text.h"

namespace {

namespace sim = jouleprof::nvml_sim;
using jouleprof::Error;
using jouleprof::Result;

constexpr int kBadInput = 2;

int complain(const Error& error) {
  fmt::print(stderr, "jouleprof-nvml-sim: {}\n", error.message);
  return kBadInput;
}

std::string sensors_of(const sim::SensorsSpec& sensors) {
  std::string list;
  const auto add = [&](bool present, const std::string& text) {
    if (present) list += (list.empty() ? "" : ", ") + text;
  };
  const auto ms = [](double seconds) { return jouleprof::shortest(seconds * 1e3); };
  if (const auto& s = sensors.ring) {
    add(true, fmt::format("ring {}/{} ms x {}", ms(s->refresh), ms(s->window), s->capacity));
  }
  if (const auto& s = sensors.counter) add(true, fmt::format("counter {} ms", ms(s->refresh)));
  if (const auto& s = sensors.instant) {
    add(true, fmt::format("instant {}/{} ms", ms(s->refresh), ms(s->window)));
  }
  if (const auto& s = sensors.average) {
    add(true, fmt::format("average {}/{} ms", ms(s->refresh), ms(s->window)));
  }
  add(sensors.covers_module, "of the module");
  return list.empty() ? "no sensor" : list;
}

int check(const std::string& path) {
  auto scenario = sim::load_scenario(path);
  if (!scenario) return complain(scenario.error());
  unsigned index = 0;
  for (const auto& device : scenario->devices) {
    fmt::print("gpu{}: {}, {}, idle {} W, limit {} W; {}; {} MIG devices\n", index++, device.name,
               device.uuid, device.idle_watts, device.limit.default_watts,
               sensors_of(device.sensors), device.mig.size());
  }
  fmt::print("{} devices, {} faults: ok\n", scenario->devices.size(), scenario->faults.size());
  return 0;
}

struct TruthOptions {
  std::string scenario;
  double from = 0;
  double to = 0;
  unsigned device = 0;
  bool unix_times = false;
  sim::Scope scope = sim::Scope::kGpu;
};

int truth(const TruthOptions& options) {
  sim::Settings settings = sim::Settings::from_environment();
  settings.scenario = options.scenario;
  auto simulator = sim::Simulator::open(settings);
  if (!simulator) return complain(simulator.error());
  (*simulator)->take_shared_limits();
  const auto bad = [](std::string message) {
    return complain({jouleprof::Errc::kInvalidArgument, std::move(message)});
  };
  if ((*simulator)->follows()) {
    return bad(
        fmt::format("{}: its power follows processes, so that only the process that loaded "
                    "the library knows it: ask jouleprof_nvml_sim_energy_joules there",
                    options.scenario));
  }
  if (options.device >= (*simulator)->devices().size()) {
    return bad(fmt::format("{} has no device {}", options.scenario, options.device));
  }
  const bool fixed = (*simulator)->scenario().start_unix_ns.has_value() || !settings.epoch.empty();
  const bool on_wall_clock = [&] {
    for (const auto& part : (*simulator)->devices()[options.device]->spec().power) {
      if (part.wall_clock) return true;
    }
    return false;
  }();
  if ((options.unix_times || on_wall_clock) && !fixed) {
    return bad(
        fmt::format("{} needs a start for this: start_unix_seconds in the scenario, or "
                    "JOULEPROF_NVML_EPOCH",
                    options.scenario));
  }
  const double shift =
      options.unix_times ? static_cast<double>((*simulator)->epoch_ns()) * 1e-9 : 0;
  if (options.to < options.from) return bad("--to is before --from");
  const double joules = (*simulator)
                            ->devices()[options.device]
                            ->joules(options.scope, options.from - shift, options.to - shift);
  fmt::print("{}\n", jouleprof::shortest(joules));
  return 0;
}

int example(const std::string& name) {
  if (name.empty()) {
    for (const auto& [known, text] : sim::examples()) fmt::print("{}\n", known);
    return 0;
  }
  const auto found = sim::examples().find(name);
  if (found == sim::examples().end()) {
    return complain(
        {jouleprof::Errc::kNotFound,
         fmt::format("there is no example '{}'; 'jouleprof-nvml-sim example' lists them", name)});
  }
  fmt::print("{}", found->second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "A simulated NVML for tests: load libjouleprof_nvml_sim.so in place of "
      "libnvidia-ml.so.1, with the scenario's file in JOULEPROF_NVML_SCENARIO."};
  app.set_version_flag("--version", JOULEPROF_VERSION);
  app.require_subcommand(1);

  std::string path;
  auto* check_command = app.add_subcommand("check", "Read a scenario and say what is in it");
  check_command->add_option("SCENARIO", path)->required();

  TruthOptions options;
  auto* truth_command = app.add_subcommand("truth", "Print the true joules between two times");
  truth_command->add_option("SCENARIO", options.scenario)->required();
  truth_command->add_option("--from", options.from, "Seconds since the scenario's start")
      ->required();
  truth_command->add_option("--to", options.to, "The same")->required();
  truth_command->add_option("--device", options.device, "Index of the GPU");
  truth_command->add_flag("--unix", options.unix_times, "The times are seconds since 1970");
  truth_command->add_option("--scope", options.scope, "gpu, module or memory")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, sim::Scope>{{"gpu", sim::Scope::kGpu},
                                            {"module", sim::Scope::kModule},
                                            {"memory", sim::Scope::kMemory}}));

  std::string name;
  auto* example_command =
      app.add_subcommand("example", "Print an example scenario, or the names of all");
  example_command->add_option("NAME", name);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }
  if (check_command->parsed()) return check(path);
  if (truth_command->parsed()) return truth(options);
  return example(name);
}
