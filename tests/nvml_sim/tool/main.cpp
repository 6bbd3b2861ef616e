// jouleprof-nvml-sim: checks scenarios, states their true energy, prints examples.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/text.h"
#include "nvml_sim/core/simulator.h"

namespace {

namespace sim = jouleprof::nvml_sim;
using jouleprof::shortest;

constexpr int kInvalidUsage = 2;

int complain(const std::string& message) {
  fmt::print(stderr, "jouleprof-nvml-sim: {}\n", message);
  return kInvalidUsage;
}

std::string sensors_of(const sim::SensorsSpec& sensors) {
  std::vector<std::string> list;
  const auto ms = [](double seconds) { return shortest(seconds * 1e3); };
  const auto add = [&](const char* name, const auto& spec) {
    if (spec) list.push_back(fmt::format("{} {}/{} ms", name, ms(spec->refresh), ms(spec->window)));
  };
  add("ring", sensors.ring);
  if (sensors.ring) list.back() += fmt::format(" x {}", sensors.ring->capacity);
  if (const auto& s = sensors.counter) list.push_back(fmt::format("counter {} ms", ms(s->refresh)));
  add("instant", sensors.instant);
  add("average", sensors.average);
  if (sensors.covers_module) list.emplace_back("of the module");
  return list.empty() ? "no sensor" : fmt::format("{}", fmt::join(list, ", "));
}

int check(const std::string& path) {
  const auto scenario = sim::load_scenario(path);
  if (!scenario) return complain(scenario.error().message);
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
  const auto opened = sim::Simulator::open(settings);
  if (!opened) return complain(opened.error().message);
  sim::Simulator& simulator = **opened;
  simulator.take_shared_settings();
  const auto any_part = [&](const auto& devices, auto property) {
    return std::any_of(devices.begin(), devices.end(), [&](const sim::DeviceSpec& device) {
      return std::any_of(device.power.begin(), device.power.end(), property) ||
             std::any_of(device.module_power.begin(), device.module_power.end(), property);
    });
  };
  const auto& devices = simulator.scenario().devices;
  if (any_part(devices, [](const auto& part) { return part.follows_processes; })) {
    return complain(fmt::format(
        "{}: the power follows processes, so only the process that loaded the library has its "
        "energy: call jouleprof_nvml_sim_energy_joules there",
        options.scenario));
  }
  if (options.device >= devices.size()) {
    return complain(fmt::format("{} has no device {}", options.scenario, options.device));
  }
  const bool fixed_start = simulator.scenario().start_unix_ns || !settings.epoch.empty();
  const auto& power = devices[options.device].power;
  const bool on_wall_clock =
      std::any_of(power.begin(), power.end(), [](const auto& part) { return part.on_wall_clock; });
  if ((options.unix_times || on_wall_clock) && !fixed_start) {
    return complain(
        fmt::format("{}: the start is unknown: set start_unix_seconds in the scenario, "
                    "or JOULEPROF_NVML_EPOCH",
                    options.scenario));
  }
  if (options.to < options.from) return complain("--to is before --from");
  const double shift = options.unix_times ? static_cast<double>(simulator.epoch_ns()) * 1e-9 : 0;
  fmt::print("{}\n", shortest(simulator.devices()[options.device]->joules(
                         options.scope, options.from - shift, options.to - shift)));
  return 0;
}

int example(const std::string& name) {
  static const std::map<std::string, std::string> kExamples{
#include "examples.inc"
  };
  if (name.empty()) {
    for (const auto& [known, text] : kExamples) fmt::print("{}\n", known);
    return 0;
  }
  const auto found = kExamples.find(name);
  if (found == kExamples.end()) {
    return complain(
        fmt::format("there is no example '{}'; 'jouleprof-nvml-sim example' lists them", name));
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
  auto* check_command = app.add_subcommand("check", "Check a scenario and list its devices");
  check_command->add_option("SCENARIO", path)->required();

  TruthOptions options;
  auto* truth_command =
      app.add_subcommand("truth", "Print the true energy between two times, in J");
  truth_command->add_option("SCENARIO", options.scenario)->required();
  truth_command->add_option("--from", options.from, "Seconds since the scenario's start")
      ->required();
  truth_command->add_option("--to", options.to, "Seconds since the scenario's start")->required();
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
    return app.exit(error) == 0 ? 0 : kInvalidUsage;
  }
  if (check_command->parsed()) return check(path);
  if (truth_command->parsed()) return truth(options);
  return example(name);
}
