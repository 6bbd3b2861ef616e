#include "nvml_sim/core/scenario.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/file.h"
#include "base/json/json.h"

namespace jouleprof::nvml_sim {
namespace {

using Range = JsonRange;

constexpr double kMaxSeconds = 1e9;
constexpr Range kWatts{0, 1e6};
constexpr Range kSeconds{-kMaxSeconds, kMaxSeconds};
constexpr Range kRatio{0, 1};
constexpr Range kMebibytes{0, 1e9, 1048576};
constexpr Range kPid{1, 1 << 30};
constexpr Range kInstance{0, 1000};
constexpr Range kCelsius{-100, 200};

using abi::Architecture;

// clang-format off
constexpr Board kBoards[]{
  {"pascal", Architecture::kPascal, 6, 0, "Tesla P100-PCIE-16GB", 16, 27, 125, 250,
   {1328, 405, 715}, {0.02, 0.01, 0, 0}, false, {0.02, 0.01}, false},
  {"volta", Architecture::kVolta, 7, 0, "Tesla V100-SXM2-16GB", 16, 40, 150, 300,
   {1530, 135, 877}, {0.02, 0.01, 0, 0}, true, {0.02, 0.01}, false},
  {"turing", Architecture::kTuring, 7, 5, "Tesla T4", 16, 10, 60, 70,
   {1590, 300, 5001}, {0.1, 0.1, 0, 0}, true, {0.1, 0.1}, false},
  {"ampere", Architecture::kAmpere, 8, 0, "NVIDIA A100-SXM4-80GB", 80, 60, 100, 400,
   {1410, 210, 1593}, {0.02, 0.025, 0, 0}, true, {0.1, 0.025}, false},
  {"hopper", Architecture::kHopper, 9, 0, "NVIDIA H100 80GB HBM3", 80, 70, 200, 700,
   {1980, 345, 2619}, {0.02, 0.003, 0.0027, 0.014}, true, {0.1, 0.025}, true, true},
  {"grace_hopper", Architecture::kHopper, 9, 0, "NVIDIA GH200 480GB", 95, 80, 100, 900,
   {1980, 345, 2619}, {0.02, 0.025, 0.0025, 0}, true, {0.1, 0.02}, true, false, true}};
// clang-format on

DeviceSpec preset(const Board& board, std::size_t index) {
  DeviceSpec device;
  device.board = &board;
  device.gpu_scope = !board.is_superchip;
  device.name = board.name;
  device.uuid = fmt::format("GPU-51a10000-0000-4000-8000-{:012x}", index);
  device.memory_total_bytes = board.memory_gib << 30U;
  device.idle_watts = board.idle_watts;
  device.limit.minimum_watts = board.minimum_watts;
  device.limit.default_watts = device.limit.maximum_watts = board.default_watts;
  device.clocks = board.clocks;
  device.temperature.celsius_per_watt = 45 / board.default_watts;
  return device;
}

double watts(JsonReader& o, const char* key) {
  double value = 0;
  o.require(key, value, kWatts);
  return value;
}

PowerPart read_square(JsonReader& o) {
  const double low = watts(o, "low_watts");
  const double high = watts(o, "high_watts");
  double period = 1, phase = 0, duty = 0.5;
  o.require("period_seconds", period, {1e-4, kMaxSeconds});
  o.read("phase_seconds", phase, kSeconds);
  const bool on_wall_clock = o.word("phase_from", {"start", "wall_clock"}) == 1;
  o.read("duty_ratio", duty, kRatio);
  return [=](std::int64_t epoch_ns) {
    // long double: a double of the seconds since 1970 resolves 0.2 us only.
    const double past =
        on_wall_clock ? static_cast<double>(std::fmod(static_cast<long double>(epoch_ns) * 1e-9L,
                                                      static_cast<long double>(period)))
                      : 0;
    return square(low, high, period, duty, phase - past);
  };
}

PowerPart read_shape(JsonReader& o) {
  switch (o.word("shape", {"constant", "square", "ramp"}, true)) {
    case 1:
      return read_square(o);
    case 2: {
      const double from = watts(o, "from_watts");
      const double to = watts(o, "to_watts");
      double duration = 1;
      o.require("duration_seconds", duration, {1e-6, kMaxSeconds});
      return [=](std::int64_t) { return ramp(from, to, duration); };
    }
    default: {
      const double power = watts(o, "watts");
      return [=](std::int64_t) { return constant(power); };
    }
  }
}

// "from_seconds" and "to_seconds".
void read_span(JsonReader& o, double& begin, double& end) {
  o.read("from_seconds", begin, kSeconds);
  o.read("to_seconds", end, kSeconds);
  if (begin >= end) o.error("to_seconds", "must be more than from_seconds");
}

PowerPart read_part(JsonReader& o) {
  PowerPart part = read_shape(o);
  double begin = -kForever, end = kForever;
  read_span(o, begin, end);
  if (begin == -kForever && end == kForever) return part;
  return [=](std::int64_t epoch_ns) { return between(part(epoch_ns), begin, end); };
}

ProcessSpec read_process(JsonReader& o) {
  ProcessSpec process;
  if (const auto* pid = o.raw("pid"); pid != nullptr && *pid == "self") {
    process.pid = 0;
  } else {
    o.read("pid", process.pid, kPid);
  }
  o.object("tree", [&](JsonReader& tree) { tree.require("environment", process.environment); });
  o.read("sample_ms", process.sample_period, {1, 60'000, 1e-3});
  if (process.pid.has_value() == !process.environment.empty()) {
    o.error("pid", "a process needs either pid or tree");
  }
  read_span(o, process.begin, process.end);
  o.read("sm_utilisation_ratio", process.utilisation, kRatio);
  o.read("memory_mib", process.memory_bytes, kMebibytes);
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
  o.read("gpu_instance_id", mig.gpu_instance_id, kInstance);
  return mig;
}

void read_limits(JsonReader& o, DeviceSpec& device) {
  o.object("power_limit", [&limit = device.limit](JsonReader& l) {
    l.read("minimum_watts", limit.minimum_watts, kWatts);
    l.read("default_watts", limit.default_watts, kWatts);
    l.read("maximum_watts", limit.maximum_watts, kWatts);
    l.read("settable", limit.settable);
    l.read("other_limit_watts", limit.other_limit_watts, kWatts);
    l.read("clamp_watts", limit.clamp_watts, kWatts);
    l.read("step_watts", limit.step_watts, kWatts);
    if (limit.minimum_watts > limit.default_watts || limit.default_watts > limit.maximum_watts) {
      l.error("default_watts", "must lie between minimum_watts and maximum_watts");
    }
  });
  o.object("clocks", [&clocks = device.clocks](JsonReader& c) {
    c.read("sm_idle_mhz", clocks.sm_idle_mhz, {0, 100'000});
    c.read("lock_step_mhz", clocks.lock_step_mhz, {1, 1000});
  });
  o.object("temperature", [&temperature = device.temperature](JsonReader& t) {
    t.read("ambient_celsius", temperature.ambient_celsius, kCelsius);
    t.read("slowdown_celsius", temperature.slowdown_celsius, kCelsius);
    t.read("celsius_per_watt", temperature.celsius_per_watt, {0, 100});
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

DeviceSpec read_device(JsonReader& o, std::size_t index) {
  std::vector<std::string> generations;
  for (const Board& board : kBoards) generations.emplace_back(board.generation);
  const int generation = o.word("generation", generations, true);
  DeviceSpec device = preset(kBoards[std::max(0, generation)], index);
  o.read("name", device.name);
  o.read("uuid", device.uuid);
  if (!device.uuid.starts_with("GPU-") || device.uuid.size() < 8) {
    o.error("uuid", "must begin with GPU- and be longer");
    device.uuid = "GPU-00000000";
  }
  o.read("gpu_scope", device.gpu_scope);
  o.read("idle_watts", device.idle_watts, kWatts);
  read_limits(o, device);
  read_context_power(o, device);
  o.each("power", [&](JsonReader& part) { device.power.push_back(read_part(part)); });
  o.each("module_power", [&](JsonReader& part) { device.module_power.push_back(read_part(part)); });
  o.each("processes", [&](JsonReader& p) { device.processes.push_back(read_process(p)); });
  o.each("mig", [&](JsonReader& mig) { device.mig.push_back(read_mig(mig, device)); });
  if (device.limit.default_watts <= device.held()) {
    o.error("power_limit", "must be more than idle_watts and held_watts");
  }
  return device;
}

Fault read_fault(JsonReader& o, std::size_t devices) {
  Fault fault;
  const int kind = o.word("kind", {"gpu_lost", "fail", "hang", "driver_reload"}, true);
  fault.kind = static_cast<FaultKind>(std::max(0, kind));
  o.read("at_seconds", fault.begin, {0, kMaxSeconds});
  std::optional<double> length;
  o.read("for_seconds", length, {0, kMaxSeconds});
  if (fault.kind == FaultKind::kDriverReload && !length) length = 1;
  if (length) fault.end = fault.begin + *length;
  o.read("device", fault.device, {0, static_cast<double>(devices - 1)});
  if (fault.kind == FaultKind::kFail || fault.kind == FaultKind::kHang) {
    o.require("call", fault.call);
    if (!fault.call.empty() && !fault.call.starts_with("nvml")) {
      o.error("call", "must be a function's name, such as nvmlDeviceGetPowerUsage");
    }
  }
  return fault;
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::filesystem::path& path) {
  const auto json = json_value(text);
  if (json.is_discarded()) {
    return fail(Errc::kInvalidArgument, fmt::format("{} is not JSON", path.string()));
  }
  JsonErrors errors{path.string(), std::nullopt};
  JsonReader o(json, "", errors);
  Scenario scenario;
  std::string description;
  o.read("description", description);
  o.object("call_costs_us", [&](JsonReader& costs) {
    for (const auto& [call, cost] : costs.value().items()) {
      if (!call.starts_with("nvml")) costs.error(call, "is not the name of an NVML function");
      costs.read(call.c_str(), scenario.call_costs[call], {0, 1e6, 1e-6});
    }
  });
  std::set<std::string> uuids;
  o.each(
      "devices",
      [&](JsonReader& device) {
        scenario.devices.push_back(read_device(device, scenario.devices.size()));
        const std::string& uuid = scenario.devices.back().uuid;
        if (!uuids.insert(uuid).second) device.error("uuid", uuid + " is another device's");
      },
      true);
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
