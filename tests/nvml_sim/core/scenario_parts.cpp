#include "nvml_sim/core/scenario_parts.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::nvml_sim {
namespace {

Result<Corners> read_trace(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return forward_error(text);
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

// A periodic part's period and phase.
struct Period {
  double seconds = 1;
  double phase = 0;
  bool on_wall_clock = false;

  explicit Period(JsonReader& o) {
    o.require("period_seconds", seconds, {1e-4, kMaxSeconds});
    o.read("phase_seconds", phase, kSeconds);
    on_wall_clock = o.word("phase_from", {"start", "wall_clock"}) == 1;
  }
  // As counted from the scenario's start.
  double phase_since(std::int64_t epoch_ns) const {
    if (!on_wall_clock) return phase;
    // long double: a double of the seconds since 1970 resolves 0.2 us only.
    return phase - static_cast<double>(std::fmod(static_cast<long double>(epoch_ns) * 1e-9L,
                                                 static_cast<long double>(seconds)));
  }
};

PowerPart read_shape(JsonReader& o, const DeviceSpec& device, const std::filesystem::path& folder) {
  const auto watts = [&o](const char* key) {
    double value = 0;
    o.require(key, value, kWatts);
    return value;
  };
  switch (o.word("shape", {"constant", "square", "ramp", "sine", "trace", "follow"}, true)) {
    case 1: {
      const double low = watts("low_watts");
      const double high = watts("high_watts");
      const Period period(o);
      double duty = 0.5;
      o.read("duty_ratio", duty, kRatio);
      return {[=](const Samplers& start) {
                return square(low, high, period.seconds, duty,
                              period.phase_since(start.epoch_ns()));
              },
              false, period.on_wall_clock};
    }
    case 2: {
      const double from = watts("from_watts");
      const double to = watts("to_watts");
      double begin = 0;
      double duration = 1;
      o.read("begin_seconds", begin, kSeconds);
      o.require("duration_seconds", duration, {1e-6, kMaxSeconds});
      return {[=](const Samplers&) {
        return piecewise({{begin, from}, {begin + duration, to}}, false);
      }};
    }
    case 3: {
      const double mean = watts("mean_watts");
      const double amplitude = watts("amplitude_watts");
      const Period period(o);
      if (amplitude > mean) o.error("amplitude_watts", "is more than mean_watts");
      return {[=](const Samplers& start) {
                return sine(mean, amplitude, period.seconds, period.phase_since(start.epoch_ns()));
              },
              false, period.on_wall_clock};
    }
    case 4: {
      std::string file;
      bool repeat = false;
      o.require("file", file);
      o.read("repeat", repeat);
      const auto trace = read_trace(folder / file);
      if (!trace) {
        o.error("file", trace.error().message);
        return {};
      }
      if (repeat && trace->front().first >= trace->back().first) {
        o.error("repeat", "needs a trace that has a length");
      }
      return {[=](const Samplers&) { return piecewise(*trace, repeat); }};
    }
    case 5: {
      double idle = device.idle_watts;
      // With a context the device then draws its full power at a use of 1.
      double full = device.full() - (device.held() - device.idle_watts);
      o.read("idle_watts", idle, kWatts);
      o.read("full_watts", full, kWatts);
      const TreeSpec tree = read_tree(o, true);
      return {[=](Samplers& start) { return follow(start.get(tree), idle, full); }, true};
    }
    default: {
      const double power = watts("watts");
      return {[=](const Samplers&) { return constant(power); }};
    }
  }
}

void read_polled(JsonReader& o, PolledSpec& spec) {
  o.read("refresh_ms", spec.refresh, kRefresh);
  o.read("window_ms", spec.window, kWindow);
  o.read("lag_ms", spec.lag, kMilliseconds);
  o.read("phase_ms", spec.phase, kPhase);
  o.read("noise_watts", spec.noise_watts, kWatts);
  o.read("gain_error_ratio", spec.gain_error, kGain);
}

void read_ring(JsonReader& o, RingSpec& ring) {
  read_polled(o, ring);
  o.read("rise_ms", ring.rise, kMilliseconds);
  o.read("jitter_ms", ring.jitter, kMilliseconds);
  o.read("capacity", ring.capacity, {1, 100'000});
  if (ring.jitter >= ring.refresh / 2) {
    o.error("jitter_ms", "must be less than half of refresh_ms, so that stamps stay in order");
  }
}

void read_counter(JsonReader& o, CounterSpec& counter) {
  o.read("refresh_ms", counter.refresh, kRefresh);
  o.read("rise_ms", counter.rise, kMilliseconds);
  o.read("phase_ms", counter.phase, kPhase);
  o.read("delay_min_ms", counter.delay_min, kMilliseconds);
  o.read("delay_max_ms", counter.delay_max, kMilliseconds);
  o.read("quantum_mj", counter.quantum_mj, {1, 1e9});
  o.read("gain_error_ratio", counter.gain_error, kGain);
  o.read("initial_joules", counter.initial_joules, {0, 1e15});
  if (counter.delay_max >= counter.refresh || counter.delay_min > counter.delay_max) {
    o.error("delay_max_ms", "must be at least delay_min_ms and less than refresh_ms");
  }
}

}  // namespace

TreeSpec read_tree(JsonReader& o, bool required) {
  TreeSpec spec;
  const auto* value = o.raw("tree");
  if (value == nullptr) {
    if (required) o.error("tree", "is missing");
  } else if (value->is_string()) {
    if (*value != "own") {
      o.error("tree", R"(must be "own", {"pid": N} or {"environment": "NAME=value"})");
    }
  } else {
    o.object("tree", [&](JsonReader& tree) {
      tree.read("pid", spec.target.pid, kPid);
      tree.read("environment", spec.target.environment);
      if ((spec.target.pid != 0) == !spec.target.environment.empty()) {
        tree.error("pid", "give either pid or environment");
      }
    });
  }
  o.read("cpus", spec.cpus, {0.001, 10'000});
  o.read("sample_ms", spec.period, {1, 60'000, 1e-3});
  return spec;
}

PowerPart read_part(JsonReader& o, const DeviceSpec& device, const std::filesystem::path& folder) {
  PowerPart part = read_shape(o, device, folder);
  double begin = -kForever;
  double end = kForever;
  o.read("from_seconds", begin, kSeconds);
  o.read("to_seconds", end, kSeconds);
  if (begin >= end) o.error("to_seconds", "must be more than from_seconds");
  if (begin == -kForever && end == kForever) return part;
  part.make_curve = [make = part.make_curve, begin, end](Samplers& start) {
    return between(make(start), begin, end);
  };
  return part;
}

void read_sensors(JsonReader& o, SensorsSpec& sensors) {
  // An object changes the preset's sensor, or adds one; null removes it.
  const auto sensor = [&o](const char* key, auto& spec, auto reader, auto added) {
    const auto* value = o.raw(key);
    if (value == nullptr) return;
    if (value->is_null()) return spec.reset();
    if (!spec) spec = added;
    o.object(key, [&](JsonReader& child) { reader(child, *spec); });
  };
  sensor("ring", sensors.ring, read_ring, RingSpec{});
  sensor("energy_counter", sensors.counter, read_counter, CounterSpec{});
  sensor("instant", sensors.instant, read_polled, PolledSpec{});
  sensor("average", sensors.average, read_polled, PolledSpec{.window = 1});
  o.read("gpu_scope", sensors.gpu_scope);
  o.read("memory_scope", sensors.memory_scope);
  o.read("module_scope", sensors.module_scope);
  o.read("covers_module", sensors.covers_module);
  const int usage = o.word("power_usage", {"instant", "average"});
  if (usage >= 0) sensors.power_usage_is_average = usage == 1;
}

}  // namespace jouleprof::nvml_sim
