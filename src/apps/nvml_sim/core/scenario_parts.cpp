#include "apps/nvml_sim/core/scenario_parts.h"

#include <fmt/format.h>

#include "apps/nvml_sim/core/return_names.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::nvml_sim {
namespace {

constexpr double kMaxWatts = 1e6;
constexpr double kMaxSeconds = 1e9;

Result<Corners> read_trace(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected(text.error());
  Corners corners;
  std::size_t number = 0;
  for (const auto line : split(*text, '\n')) {
    ++number;
    const auto content = trim(line);
    if (content.empty() || content.starts_with('#')) continue;
    const auto fields = split(content, ',');
    if (corners.empty() && fields.size() == 2 && trim(fields[0]) == "t_seconds" &&
        trim(fields[1]) == "power_watts") {
      continue;
    }
    const auto t = fields.size() == 2 ? parse_number(trim(fields[0])) : std::nullopt;
    const auto watts = fields.size() == 2 ? parse_number(trim(fields[1])) : std::nullopt;
    if (!t || !watts || *watts < 0 || (!corners.empty() && *t < corners.back().first)) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{}:{}: '{}' is not t_seconds,power_watts with times that don't fall",
                              path.string(), number, content));
    }
    corners.emplace_back(*t, *watts);
  }
  if (corners.empty()) {
    return fail(Errc::kInvalidArgument, fmt::format("{} has no rows", path.string()));
  }
  return corners;
}

void read_trace_part(JsonObject& o, PowerPart& part, const std::filesystem::path& folder) {
  std::string file;
  o.require("file");
  o.text("file", file);
  o.flag("repeat", part.repeat);
  auto trace = read_trace(folder / file);
  if (!trace) return o.error("file", trace.error().message);
  part.trace = std::move(*trace);
  if (part.repeat && part.trace.front().first >= part.trace.back().first) {
    o.error("repeat", "needs a trace that has a length");
  }
}

void read_period(JsonObject& o, PowerPart& part) {
  o.require("period_seconds");
  o.number("period_seconds", part.period, 1e-4, kMaxSeconds);
  o.number("phase_seconds", part.phase, -kMaxSeconds, kMaxSeconds);
  part.wall_clock = o.word("phase_from", {"start", "wall_clock"}) == 1;
}

void read_shape(JsonObject& o, PowerPart& part, double idle, double full,
                const std::filesystem::path& folder) {
  static const std::vector<std::string> kShapes{"constant", "square", "ramp",
                                                "sine",     "trace",  "follow"};
  o.require("shape");
  part.shape = static_cast<Shape>(std::max(0, o.word("shape", kShapes)));
  const auto watts = [&o](const char* key, double& out) {
    o.require(key);
    o.number(key, out, 0, kMaxWatts);
  };
  switch (part.shape) {
    case Shape::kConstant:
      watts("watts", part.watts);
      break;
    case Shape::kSquare:
      watts("low_watts", part.low);
      watts("high_watts", part.high);
      read_period(o, part);
      o.number("duty_ratio", part.duty, 0, 1);
      break;
    case Shape::kRamp:
      watts("from_watts", part.low);
      watts("to_watts", part.high);
      o.number("begin_seconds", part.ramp_begin, -kMaxSeconds, kMaxSeconds);
      o.require("duration_seconds");
      o.number("duration_seconds", part.ramp_duration, 1e-6, kMaxSeconds);
      break;
    case Shape::kSine:
      watts("mean_watts", part.mean);
      watts("amplitude_watts", part.amplitude);
      read_period(o, part);
      if (part.amplitude > part.mean) o.error("amplitude_watts", "is more than mean_watts");
      break;
    case Shape::kTrace:
      read_trace_part(o, part, folder);
      break;
    case Shape::kFollow:
      part.low = idle;
      part.high = full;
      o.number("idle_watts", part.low, 0, kMaxWatts);
      o.number("full_watts", part.high, 0, kMaxWatts);
      o.require("tree");
      part.tree = read_tree(o);
      o.number("cpus", part.cpus, 0.001, 10'000);
      read_milliseconds(o, "sample_ms", part.sample, 1, 60'000);
      break;
  }
}

void read_ring(JsonObject o, RingSpec& ring) {
  read_milliseconds(o, "refresh_ms", ring.refresh, 0.1, 60'000);
  read_milliseconds(o, "window_ms", ring.window, 0.01, 60'000);
  read_milliseconds(o, "lag_ms", ring.lag, 0, 60'000);
  read_milliseconds(o, "rise_ms", ring.rise, 0, 60'000);
  read_milliseconds(o, "jitter_ms", ring.jitter, 0, 60'000);
  read_milliseconds(o, "phase_ms", ring.phase, -60'000, 60'000);
  std::int64_t capacity = ring.capacity;
  o.integer("capacity", capacity, 1, 100'000);
  ring.capacity = static_cast<int>(capacity);
  o.number("noise_watts", ring.noise_watts, 0, kMaxWatts);
  o.number("gain_error_ratio", ring.gain_error, -0.5, 0.5);
  if (ring.jitter >= ring.refresh / 2) {
    o.error("jitter_ms", "must be less than half of refresh_ms, so that stamps stay in order");
  }
  o.finish();
}

void read_counter(JsonObject o, CounterSpec& counter) {
  read_milliseconds(o, "refresh_ms", counter.refresh, 0.1, 60'000);
  read_milliseconds(o, "rise_ms", counter.rise, 0, 60'000);
  read_milliseconds(o, "phase_ms", counter.phase, -60'000, 60'000);
  read_milliseconds(o, "delay_min_ms", counter.delay_min, 0, 60'000);
  read_milliseconds(o, "delay_max_ms", counter.delay_max, 0, 60'000);
  o.number("quantum_mj", counter.quantum_mj, 1, 1e9);
  o.number("gain_error_ratio", counter.gain_error, -0.5, 0.5);
  o.number("initial_joules", counter.initial_joules, 0, 1e15);
  if (counter.delay_max >= counter.refresh || counter.delay_min > counter.delay_max) {
    o.error("delay_max_ms", "must be at least delay_min_ms and less than refresh_ms");
  }
  o.finish();
}

void read_polled(JsonObject o, PolledSpec& polled) {
  read_milliseconds(o, "refresh_ms", polled.refresh, 0.1, 60'000);
  read_milliseconds(o, "window_ms", polled.window, 0.01, 60'000);
  read_milliseconds(o, "lag_ms", polled.lag, 0, 60'000);
  read_milliseconds(o, "phase_ms", polled.phase, -60'000, 60'000);
  o.number("noise_watts", polled.noise_watts, 0, kMaxWatts);
  o.number("gain_error_ratio", polled.gain_error, -0.5, 0.5);
  o.finish();
}

// A sensor whose object changes the preset's and whose null removes it.
template <typename Spec>
void read_sensor(JsonObject& o, const char* key, std::optional<Spec>& spec,
                 void (*read)(JsonObject, Spec&)) {
  if (o.is_null(key)) {
    o.raw(key);
    spec.reset();
  } else if (auto object = o.object(key)) {
    if (!spec) spec.emplace();
    read(*object, *spec);
  }
}

}  // namespace

PowerPart read_part(JsonObject& o, double idle, double full, const std::filesystem::path& folder) {
  PowerPart part;
  read_shape(o, part, idle, full, folder);
  o.number("from_seconds", part.begin, -kMaxSeconds, kMaxSeconds);
  o.number("to_seconds", part.end, -kMaxSeconds, kMaxSeconds);
  if (part.begin >= part.end) o.error("to_seconds", "must be more than from_seconds");
  o.finish();
  return part;
}

void read_sensors(JsonObject& o, SensorsSpec& sensors) {
  read_sensor(o, "ring", sensors.ring, read_ring);
  read_sensor(o, "energy_counter", sensors.counter, read_counter);
  read_sensor(o, "instant", sensors.instant, read_polled);
  if (!sensors.average && o.has("average")) sensors.average = PolledSpec{.window = 1};
  read_sensor(o, "average", sensors.average, read_polled);
  o.flag("gpu_scope", sensors.gpu_scope);
  o.flag("memory_scope", sensors.memory_scope);
  o.flag("module_scope", sensors.module_scope);
  o.flag("covers_module", sensors.covers_module);
  if (const int usage = o.word("power_usage", {"instant", "average"}); usage >= 0) {
    sensors.power_usage_is_average = usage == 1;
  }
  o.finish();
}

TreeTarget read_tree(JsonObject& o) {
  TreeTarget target;
  const auto* value = o.raw("tree");
  if (value != nullptr && value->is_string()) {
    if (*value != "own")
      o.error("tree", R"(must be "own", {"pid": N} or {"environment": "NAME=value"})");
    return target;
  }
  if (auto tree = o.object("tree")) {
    std::int64_t pid = 0;
    tree->integer("pid", pid, 1, 1 << 30);
    target.pid = static_cast<pid_t>(pid);
    tree->text("environment", target.environment);
    if ((pid != 0) == !target.environment.empty()) {
      tree->error("pid", "give either pid or environment");
    }
    tree->finish();
  }
  return target;
}

void read_code(JsonObject& o, abi::Return& code) {
  std::string name = "NVML_ERROR_NOT_SUPPORTED";
  o.text("code", name);
  if (const auto found = parse_return_name(name); found && *found != abi::Return::kSuccess) {
    code = *found;
  } else {
    o.error("code", fmt::format("'{}' is not an NVML error, such as NVML_ERROR_UNKNOWN", name));
  }
}

void read_milliseconds(JsonObject& o, const char* key, double& seconds, double min_ms,
                       double max_ms) {
  if (!o.has(key)) {
    o.raw(key);
    return;
  }
  double ms = seconds * 1e3;
  o.number(key, ms, min_ms, max_ms);
  seconds = ms * 1e-3;
}

}  // namespace jouleprof::nvml_sim
