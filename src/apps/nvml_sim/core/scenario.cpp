#include "apps/nvml_sim/core/scenario.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "apps/nvml_sim/core/generations.h"
#include "apps/nvml_sim/core/json_object.h"
#include "apps/nvml_sim/core/scenario_parts.h"
#include "base/file.h"

namespace jouleprof::nvml_sim {
namespace {

constexpr double kMaxWatts = 1e6;
constexpr double kMaxSeconds = 1e9;
constexpr double kMiB = 1048576;

void read_mib(JsonObject& o, const char* key, std::uint64_t& bytes) {
  double mib = static_cast<double>(bytes) / kMiB;
  o.number(key, mib, 0, 1e9);
  bytes = static_cast<std::uint64_t>(std::llround(mib * kMiB));
}

void read_limit(JsonObject o, LimitSpec& limit) {
  o.number("minimum_watts", limit.minimum_watts, 0, kMaxWatts);
  o.number("default_watts", limit.default_watts, 0, kMaxWatts);
  o.number("maximum_watts", limit.maximum_watts, 0, kMaxWatts);
  o.flag("settable", limit.settable);
  o.number("speed_exponent", limit.speed_exponent, 0, 10);
  o.number("minimum_speed_ratio", limit.minimum_speed, 0, 1);
  if (limit.minimum_watts > limit.default_watts || limit.default_watts > limit.maximum_watts) {
    o.error("default_watts", "must lie between minimum_watts and maximum_watts");
  }
  o.finish();
}

void read_clocks(JsonObject o, ClocksSpec& clocks) {
  o.unsigned_integer("sm_max_mhz", clocks.sm_max_mhz, 100'000);
  o.unsigned_integer("sm_idle_mhz", clocks.sm_idle_mhz, 100'000);
  o.unsigned_integer("memory_mhz", clocks.memory_mhz, 100'000);
  o.finish();
}

void read_temperature(JsonObject o, TemperatureSpec& temperature) {
  o.number("ambient_celsius", temperature.ambient_celsius, -100, 200);
  o.number("celsius_per_watt", temperature.celsius_per_watt, 0, 100);
  o.number("response_seconds", temperature.response, 0.001, 3600);
  o.finish();
}

ProcessSpec read_process(JsonObject o) {
  ProcessSpec process;
  if (const auto* pid = o.raw("pid"); pid != nullptr && pid->is_string() && *pid == "self") {
    process.pid = 0;
  } else if (pid != nullptr) {
    std::int64_t number = 0;
    o.integer("pid", number, 1, 1 << 30);
    process.pid = static_cast<pid_t>(number);
  }
  if (o.has("tree")) process.tree = read_tree(o);
  if (process.pid.has_value() == process.tree.has_value()) {
    o.error("pid", "a process needs either pid or tree");
  }
  if (o.has("sm_utilisation_ratio")) {
    double ratio = 0;
    o.number("sm_utilisation_ratio", ratio, 0, 1);
    process.utilisation = ratio;
  } else if (process.pid) {
    process.utilisation = 0;
  }
  o.number("cpus", process.cpus, 0.001, 10'000);
  read_milliseconds(o, "sample_ms", process.sample, 1, 60'000);
  read_mib(o, "memory_mib", process.memory_bytes);
  if (const int type = o.word("type", {"compute", "graphics"}); type == 1) process.graphics = true;
  o.finish();
  return process;
}

MigSpec read_mig(JsonObject o, const DeviceSpec& device, std::size_t number) {
  MigSpec mig;
  mig.profile = "1g";
  mig.gpu_instance_id = static_cast<unsigned>(7 + number);
  mig.memory_bytes = device.memory_total_bytes / 8;
  mig.uuid = fmt::format("MIG-{}", device.uuid.substr(4, device.uuid.size() - 6)) +
             fmt::format("{:02x}", number + 0xa0);
  o.require("profile");
  o.text("profile", mig.profile);
  o.text("uuid", mig.uuid);
  o.unsigned_integer("gpu_instance_id", mig.gpu_instance_id, 1000);
  o.unsigned_integer("compute_instance_id", mig.compute_instance_id, 1000);
  read_mib(o, "memory_mib", mig.memory_bytes);
  o.finish();
  return mig;
}

void name_device(DeviceSpec& device, std::size_t index) {
  device.uuid = fmt::format("GPU-51a10000-0000-4000-8000-{:012x}", index);
  device.serial = fmt::format("{:013}", 1'650'000'000'000ULL + index);
  device.pci_bus_id = fmt::format("00000000:{:02X}:00.0", index + 1);
}

DeviceSpec read_device(JsonObject o, std::size_t index, const std::filesystem::path& folder) {
  const int generation = o.word("generation", generation_names());
  DeviceSpec device = preset(generation_names()[static_cast<std::size_t>(std::max(0, generation))]);
  o.require("generation");
  name_device(device, index);
  o.text("name", device.name);
  o.text("uuid", device.uuid);
  o.text("serial", device.serial);
  o.text("pci_bus_id", device.pci_bus_id);
  if (!device.uuid.starts_with("GPU-") || device.uuid.size() < 8) {
    o.error("uuid", "must begin with GPU- and be longer");
    device.uuid = "GPU-00000000";
  }
  read_mib(o, "memory_total_mib", device.memory_total_bytes);
  device.memory_used_bytes = std::uint64_t{512} << 20U;
  read_mib(o, "memory_used_mib", device.memory_used_bytes);
  if (device.memory_used_bytes > device.memory_total_bytes) {
    o.error("memory_used_mib", "is more than memory_total_mib");
  }
  o.number("idle_watts", device.idle_watts, 0, kMaxWatts);
  if (o.has("full_watts")) {
    double full = device.limit.default_watts;
    o.number("full_watts", full, 0, kMaxWatts);
    device.full_watts = full;
  }
  if (auto limit = o.object("power_limit")) read_limit(*limit, device.limit);
  if (auto clocks = o.object("clocks")) read_clocks(*clocks, device.clocks);
  if (auto temperature = o.object("temperature")) {
    read_temperature(*temperature, device.temperature);
  }
  for (auto& part : o.objects("power")) {
    device.power.push_back(read_part(part, device.idle_watts, device.full(), folder));
  }
  for (auto& part : o.objects("module_power")) {
    device.module_power.push_back(read_part(part, device.idle_watts, device.full(), folder));
  }
  if (auto memory = o.object("memory_power")) {
    memory->number("idle_watts", device.memory_idle_watts, 0, kMaxWatts);
    memory->number("share_ratio", device.memory_share, 0, 1);
    memory->finish();
  }
  if (auto sensors = o.object("sensors")) read_sensors(*sensors, device.sensors);
  for (auto& process : o.objects("processes")) device.processes.push_back(read_process(process));
  for (auto& mig : o.objects("mig")) {
    device.mig.push_back(read_mig(mig, device, device.mig.size()));
  }
  if (device.full() <= device.idle_watts) {
    o.error("full_watts", "(by default the power limit) must be more than idle_watts");
  }
  o.finish();
  return device;
}

Fault read_fault(JsonObject o, std::size_t devices) {
  static const std::vector<std::string> kKinds{"gpu_lost", "fail",     "counter_reset", "frozen",
                                               "hang",     "sentinel", "driver_reload"};
  Fault fault;
  o.require("kind");
  fault.kind = static_cast<FaultKind>(std::max(0, o.word("kind", kKinds)));
  o.number("at_seconds", fault.begin, 0, kMaxSeconds);
  if (o.has("for_seconds")) {
    double length = 0;
    o.number("for_seconds", length, 0, kMaxSeconds);
    fault.end = fault.begin + length;
  }
  if (o.has("device")) {
    unsigned device = 0;
    o.unsigned_integer("device", device, static_cast<unsigned>(devices - 1));
    fault.device = device;
  }
  const bool has_call = fault.kind == FaultKind::kFail || fault.kind == FaultKind::kHang ||
                        fault.kind == FaultKind::kSentinel;
  if (has_call) {
    o.require("call");
    o.text("call", fault.call);
    if (!fault.call.empty() && !fault.call.starts_with("nvml")) {
      o.error("call", "must be a function's name, such as nvmlDeviceGetPowerUsage");
    }
  }
  if (fault.kind == FaultKind::kFail) read_code(o, fault.code);
  if (fault.kind == FaultKind::kFrozen) {
    o.require("sensor");
    const int sensor = o.word("sensor", {"ring", "energy_counter", "instant", "average"});
    fault.sensor = static_cast<SensorName>(std::max(0, sensor));
  }
  if (fault.kind == FaultKind::kSentinel) {
    if (const auto* value = o.raw("value"); value != nullptr && !value->is_number_unsigned()) {
      o.error("value", "must be a whole number, not negative");
    } else if (value != nullptr) {
      fault.value = value->get<std::uint64_t>();
    }
  }
  if (fault.kind == FaultKind::kDriverReload && !o.has("for_seconds")) {
    fault.end = fault.begin + 1;
  }
  o.finish();
  return fault;
}

void read_costs(JsonObject o, Scenario& scenario) {
  for (const auto& [call, cost] : o.value().items()) {
    double microseconds = 0;
    if (!call.starts_with("nvml")) o.error(call, "is not the name of an NVML function");
    o.number(call.c_str(), microseconds, 0, 1e6);
    scenario.call_costs[call] = microseconds * 1e-6;
  }
}

void check_devices(JsonObject& o, const Scenario& scenario) {
  std::set<std::string> uuids;
  for (const auto& device : scenario.devices) {
    if (!uuids.insert(device.uuid).second) o.error("devices", "have the same uuid " + device.uuid);
    for (const auto& mig : device.mig) {
      if (!uuids.insert(mig.uuid).second) o.error("devices", "have the same uuid " + mig.uuid);
    }
  }
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& path) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{0} is not JSON; 'python3 -m json.tool {0}' shows where it breaks off",
                            path.string()));
  }
  JsonErrors errors{path.string(), std::nullopt};
  JsonObject o(json, "", errors);
  Scenario scenario;
  std::string description;
  o.text("description", description);
  if (o.has("start_unix_seconds")) {
    double start = 0;
    o.number("start_unix_seconds", start, 0, 4e9);
    scenario.start_unix_ns = std::llround(start * 1e6) * 1000;
  }
  std::int64_t seed = 1;
  o.integer("seed", seed, 0, std::int64_t{1} << 53U);
  scenario.seed = static_cast<std::uint64_t>(seed);
  o.text("driver_version", scenario.driver_version);
  double cuda = scenario.cuda_version / 1000.0;
  o.number("cuda_version", cuda, 1, 100);
  scenario.cuda_version = static_cast<int>(std::lround(cuda * 100)) * 10;
  if (auto costs = o.object("call_costs_us")) read_costs(*costs, scenario);
  o.require("devices");
  for (auto& device : o.objects("devices")) {
    scenario.devices.push_back(read_device(device, scenario.devices.size(), path.parent_path()));
  }
  check_devices(o, scenario);
  if (o.has("faults") && scenario.devices.empty()) o.error("faults", "need a device to befall");
  for (auto& fault : o.objects("faults")) {
    if (scenario.devices.empty()) break;
    scenario.faults.push_back(read_fault(fault, scenario.devices.size()));
  }
  o.finish();
  if (errors.first) return tl::unexpected(*errors.first);
  return scenario;
}

Result<Scenario> load_scenario(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  return parse_scenario(*text, path);
}

Scenario default_scenario() {
  Scenario scenario;
  scenario.devices.push_back(preset("hopper"));
  name_device(scenario.devices.front(), 0);
  return scenario;
}

}  // namespace jouleprof::nvml_sim
