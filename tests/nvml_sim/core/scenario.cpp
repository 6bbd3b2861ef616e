#include "nvml_sim/core/scenario.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/file.h"
#include "base/json/json_reader.h"
#include "nvml_sim/core/return_names.h"
#include "nvml_sim/core/scenario_parts.h"

namespace jouleprof::nvml_sim {
namespace {

ProcessSpec read_process(JsonReader& o) {
  ProcessSpec process;
  if (const auto* pid = o.raw("pid"); pid != nullptr && *pid == "self") {
    process.pid = 0;
  } else {
    o.read("pid", process.pid, kPid);
  }
  const TreeSpec tree = read_tree(o, false);
  if (o.has("tree")) process.tree = tree;
  if (process.pid.has_value() == process.tree.has_value()) {
    o.error("pid", "a process needs either pid or tree");
  }
  o.read("from_seconds", process.begin, kSeconds);
  o.read("to_seconds", process.end, kSeconds);
  if (process.begin >= process.end) o.error("to_seconds", "must be more than from_seconds");
  o.read("sm_utilisation_ratio", process.utilisation, kRatio);
  if (process.pid && !process.utilisation) process.utilisation = 0;
  o.read("memory_mib", process.memory_bytes, kMebibytes);
  process.graphics = o.word("type", {"compute", "graphics"}) == 1;
  o.read("mig", process.mig, kInstance);
  return process;
}

MigSpec read_mig(JsonReader& o, const DeviceSpec& device) {
  const std::size_t number = device.mig.size();
  MigSpec mig;
  mig.gpu_instance_id = static_cast<unsigned>(7 + number);
  mig.memory_bytes = device.memory_total_bytes / 8;
  mig.uuid =
      fmt::format("MIG-{}{:02x}", device.uuid.substr(4, device.uuid.size() - 6), number + 0xa0);
  o.require("profile", mig.profile);
  o.read("uuid", mig.uuid);
  o.read("gpu_instance_id", mig.gpu_instance_id, kInstance);
  o.read("compute_instance_id", mig.compute_instance_id, kInstance);
  o.read("memory_mib", mig.memory_bytes, kMebibytes);
  return mig;
}

void name_device(DeviceSpec& device, std::size_t index) {
  device.uuid = fmt::format("GPU-51a10000-0000-4000-8000-{:012x}", index);
  device.serial = fmt::format("{:013}", 1'650'000'000'000ULL + index);
  device.pci_bus_id = fmt::format("00000000:{:02X}:00.0", index + 1);
}

void read_board(JsonReader& o, DeviceSpec& device) {
  o.read("name", device.name);
  o.read("uuid", device.uuid);
  o.read("serial", device.serial);
  o.read("pci_bus_id", device.pci_bus_id);
  if (!device.uuid.starts_with("GPU-") || device.uuid.size() < 8) {
    o.error("uuid", "must begin with GPU- and be longer");
    device.uuid = "GPU-00000000";
  }
  o.read("memory_total_mib", device.memory_total_bytes, kMebibytes);
  o.read("memory_used_mib", device.memory_used_bytes, kMebibytes);
  if (device.memory_used_bytes > device.memory_total_bytes) {
    o.error("memory_used_mib", "is more than memory_total_mib");
  }
  o.read("idle_watts", device.idle_watts, kWatts);
  o.read("full_watts", device.full_watts, kWatts);
  o.object("power_limit", [&limit = device.limit](JsonReader& l) {
    l.read("minimum_watts", limit.minimum_watts, kWatts);
    l.read("default_watts", limit.default_watts, kWatts);
    l.read("maximum_watts", limit.maximum_watts, kWatts);
    l.read("settable", limit.settable);
    l.read("other_limit_watts", limit.other_limit_watts, kWatts);
    l.read("clamp_watts", limit.clamp_watts, kWatts);
    l.read("step_watts", limit.step_watts, kWatts);
    l.read("speed_exponent", limit.speed_exponent, {0, 10});
    l.read("minimum_speed_ratio", limit.minimum_speed, kRatio);
    if (limit.minimum_watts > limit.default_watts || limit.default_watts > limit.maximum_watts) {
      l.error("default_watts", "must lie between minimum_watts and maximum_watts");
    }
  });
  o.object("clocks", [&clocks = device.clocks](JsonReader& c) {
    c.read("sm_max_mhz", clocks.sm_max_mhz, kMegahertz);
    c.read("sm_idle_mhz", clocks.sm_idle_mhz, kMegahertz);
    c.read("memory_mhz", clocks.memory_mhz, kMegahertz);
    c.read("lock_step_mhz", clocks.lock_step_mhz, {1, 1000});
  });
  o.object("temperature", [&temperature = device.temperature](JsonReader& t) {
    t.read("ambient_celsius", temperature.ambient_celsius, {-100, 200});
    t.read("slowdown_celsius", temperature.slowdown_celsius, {-100, 200});
    t.read("celsius_per_watt", temperature.celsius_per_watt, {0, 100});
    t.read("response_seconds", temperature.response, {0.001, 3600});
  });
}

void read_context_power(JsonReader& o, DeviceSpec& device) {
  o.read("held_watts", device.held_watts, kWatts);
  device.after_context_watts = device.idle_watts;
  o.object("after_context", [&](JsonReader& after) {
    after.require("watts", device.after_context_watts, kWatts);
    after.read("decay_seconds", device.after_context_decay, {0.001, 3600});
    if (!device.held_watts) after.error("watts", "needs held_watts of the device");
    if (device.after_context_watts < device.idle_watts) {
      after.error("watts", "is less than idle_watts");
    }
  });
  if (device.held() < device.idle_watts) o.error("held_watts", "is less than idle_watts");
}

DeviceSpec read_device(JsonReader& o, std::size_t index, const std::filesystem::path& folder) {
  const int generation = o.word("generation", generation_names(), true);
  DeviceSpec device = preset(static_cast<std::size_t>(std::max(0, generation)));
  name_device(device, index);
  read_board(o, device);
  read_context_power(o, device);
  const auto part_of = [&](std::vector<PowerPart>& parts) {
    return [&](JsonReader& part) { parts.push_back(read_part(part, device, folder)); };
  };
  o.each("power", part_of(device.power));
  o.each("module_power", part_of(device.module_power));
  o.object("memory_power", [&](JsonReader& memory) {
    memory.read("idle_watts", device.memory_idle_watts, kWatts);
    memory.read("share_ratio", device.memory_share, kRatio);
  });
  o.object("sensors", [&](JsonReader& sensors) { read_sensors(sensors, device.sensors); });
  o.each("processes", [&](JsonReader& p) { device.processes.push_back(read_process(p)); });
  o.each("mig", [&](JsonReader& mig) { device.mig.push_back(read_mig(mig, device)); });
  if (device.full() <= device.held()) {
    o.error("full_watts",
            "(by default the power limit) must be more than idle_watts and held_watts");
  }
  return device;
}

Fault read_fault(JsonReader& o, std::size_t devices) {
  Fault fault;
  const int kind = o.word(
      "kind", {"gpu_lost", "fail", "counter_reset", "frozen", "hang", "sentinel", "driver_reload"},
      true);
  fault.kind = static_cast<FaultKind>(std::max(0, kind));
  o.read("at_seconds", fault.begin, {0, kMaxSeconds});
  std::optional<double> length;
  o.read("for_seconds", length, {0, kMaxSeconds});
  if (fault.kind == FaultKind::kDriverReload && !length) length = 1;
  if (length) fault.end = fault.begin + *length;
  o.read("device", fault.device, {0, static_cast<double>(devices - 1)});
  if (fault.kind == FaultKind::kFail || fault.kind == FaultKind::kHang ||
      fault.kind == FaultKind::kSentinel) {
    o.require("call", fault.call);
    if (!fault.call.empty() && !fault.call.starts_with("nvml")) {
      o.error("call", "must be a function's name, such as nvmlDeviceGetPowerUsage");
    }
  }
  if (fault.kind == FaultKind::kFail) {
    std::string name = "NVML_ERROR_NOT_SUPPORTED";
    o.read("code", name);
    fault.code = parse_return_name(name).value_or(abi::Return::kSuccess);
    if (fault.code == abi::Return::kSuccess) {
      o.error("code", fmt::format("'{}' is not an NVML error, such as NVML_ERROR_UNKNOWN", name));
    }
  } else if (fault.kind == FaultKind::kFrozen) {
    const int sensor = o.word("sensor", {"ring", "energy_counter", "instant", "average"}, true);
    fault.sensor = static_cast<SensorName>(std::max(0, sensor));
  } else if (fault.kind == FaultKind::kSentinel) {
    if (const auto* value = o.raw("value"); value != nullptr && !value->is_number_unsigned()) {
      o.error("value", "must be a whole number, not negative");
    } else if (value != nullptr) {
      fault.value = value->get<std::uint64_t>();
    }
  }
  return fault;
}

void check_devices(JsonReader& o, const Scenario& scenario) {
  std::set<std::string> uuids;
  const auto check = [&](const std::string& uuid) {
    if (!uuids.insert(uuid).second) o.error("devices", "have the same uuid " + uuid);
  };
  for (const auto& device : scenario.devices) {
    check(device.uuid);
    for (const auto& mig : device.mig) check(mig.uuid);
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
  JsonReader o(json, "", errors);
  Scenario scenario;
  std::string description;
  o.read("description", description);
  std::optional<double> start;
  o.read("start_unix_seconds", start, {0, 4e9});
  if (start) scenario.start_unix_ns = std::llround(*start * 1e6) * 1000;
  o.read("seed", scenario.seed, {0, static_cast<double>(std::int64_t{1} << 53U)});
  o.read("driver_version", scenario.driver_version);
  double cuda = scenario.cuda_version / 1000.0;
  o.read("cuda_version", cuda, {1, 100});
  scenario.cuda_version = static_cast<int>(std::lround(cuda * 100)) * 10;
  o.object("call_costs_us", [&](JsonReader& costs) {
    for (const auto& [call, cost] : costs.value().items()) {
      if (!call.starts_with("nvml")) costs.error(call, "is not the name of an NVML function");
      costs.read(call.c_str(), scenario.call_costs[call], {0, 1e6, 1e-6});
    }
  });
  o.each(
      "devices",
      [&](JsonReader& device) {
        scenario.devices.push_back(
            read_device(device, scenario.devices.size(), path.parent_path()));
      },
      true);
  check_devices(o, scenario);
  if (scenario.devices.empty() && o.raw("faults") != nullptr) {
    o.error("faults", "need a device");
  } else {
    o.each("faults", [&](JsonReader& fault) {
      scenario.faults.push_back(read_fault(fault, scenario.devices.size()));
    });
  }
  o.finish();
  if (errors.first) return tl::unexpected(*errors.first);
  return scenario;
}

Result<Scenario> load_scenario(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return forward_error(text);
  return parse_scenario(*text, path);
}

Scenario default_scenario() {
  return *parse_scenario(R"({"devices": {"generation": "hopper"}})", "");
}

}  // namespace jouleprof::nvml_sim
