#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analysis/timeline/timeline.h"
#include "apps/cli/doctor/doctor.h"
#include "apps/cli/measuring.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "model/device/sensor_table.h"
#include "report/headline_text.h"
#include "report/quantity.h"

namespace jouleprof::cli {
namespace {

using model::Sensor;
using model::SensorKind;
using nlohmann::ordered_json;

std::string time_text(Duration d) {
  const double s = seconds(d);
  if (s >= 1) return fmt::format("{:g} s", s);
  if (s >= 1e-3) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.3g} us", s * 1e6);
}

std::string traits_text(const Sensor& sensor) {
  const auto& t = sensor.traits;
  std::string text;
  const auto add = [&](std::string part) { text += (text.empty() ? "" : ", ") + part; };
  if (t.refresh) add("a new value every " + time_text(*t.refresh));
  if (t.window) add("mean over " + time_text(*t.window));
  if (t.rise) add("time constant " + time_text(*t.rise));
  if (t.lag) add("lag " + time_text(*t.lag));
  if (t.read_cost) add("a read costs " + time_text(*t.read_cost) + " of CPU");
  if (t.wrap) add(fmt::format("wraps after {:.4g} kJ", t.wrap->joules() / 1e3));
  add(report::scale_text(t.scale));
  if (t.correction != 1) add(fmt::format("readings are multiplied by {:.4f}", t.correction));
  return text;
}

// What the table of sensors has of it, in lines of the report.
std::string row_text(const Sensor& sensor) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view words) {
    if (!words.empty()) text += fmt::format("      {}: {}\n", name, words);
  };
  const auto* row = model::row_of(sensor.name);
  if (row != nullptr) {
    add("covers", row->contains.empty() ? std::string(row->covers)
                                        : fmt::format("{}; in it: {}", row->covers, row->contains));
    add("unit", row->unit);
    add("time", fmt::format("{}; stamp: {}", row->filter, row->stamp));
    add("no value", row->no_value);
    if (row->privilege != "none") add("needs", row->privilege);
  }
  add("scale by", sensor.traits.scale.source);
  return text;
}

ordered_json row_json(const Sensor& sensor) {
  const auto* row = model::row_of(sensor.name);
  if (row == nullptr) return nullptr;
  return {{"covers", row->covers},  {"contains", row->contains}, {"unit", row->unit},
          {"time", row->filter},    {"no_value", row->no_value}, {"stamp", row->stamp},
          {"needs", row->privilege}};
}

ordered_json optional_seconds(const std::optional<Duration>& d) {
  return d ? ordered_json(seconds(*d)) : ordered_json(nullptr);
}

// What a sensor is used for, in a few words.
std::string use_of(const Sensor& sensor) {
  switch (sensor.kind) {
    case SensorKind::kEnergyCounter:
      return "the amount of energy";
    case SensorKind::kPowerRing:
      return "the power curve";
    case SensorKind::kPowerInstant:
      return sensor.provenance == model::Provenance::kEstimated ? "an estimate of the energy"
                                                                : "the power curve";
    case SensorKind::kPowerAverage:
      return "a check; energy only where no better sensor exists";
    case SensorKind::kGauge:
      return "shown with the power";
  }
  return "";
}

ordered_json sensor_json(const Sensor& sensor) {
  const auto& t = sensor.traits;
  return {{"kind", to_string(sensor.kind)},
          {"name", sensor.name},
          {"provenance", to_string(sensor.provenance)},
          {"refresh_seconds", optional_seconds(t.refresh)},
          {"window_seconds", optional_seconds(t.window)},
          {"rise_seconds", optional_seconds(t.rise)},
          {"lag_seconds", optional_seconds(t.lag)},
          {"read_cost_seconds", optional_seconds(t.read_cost)},
          {"gain_error_ratio", t.scale.gain_half()},
          {"gain_ratios", {t.scale.gain_low, t.scale.gain_high}},
          {"offset_watts", {t.scale.offset_low.watts(), t.scale.offset_high.watts()}},
          {"correction_ratio", t.correction},
          {"scale_source", t.scale.source},
          {"row", row_json(sensor)},
          {"use", use_of(sensor)}};
}

ordered_json level_json(const std::optional<model::KnownLevel>& level) {
  if (!level) return nullptr;
  const auto& celsius = level->temperature_celsius;
  return {{"power_watts", level->power.watts()},
          {"spread_watts", level->spread.watts()},
          {"temperature_celsius", celsius ? ordered_json(*celsius) : ordered_json(nullptr)},
          {"observed_time", report::utc_text(level->observed)}};
}

// What is stored of a board, in lines.
std::string levels_text(const model::KnownLevels& levels) {
  std::string text;
  for (const auto& [name, level] : {std::pair{kAtRest, &levels.rest}, {kHeld, &levels.held}}) {
    if (*level) text += fmt::format("    power {}\n", level_text(name, **level));
  }
  return text;
}

std::string remembered_text(const RememberedKernels& remembered) {
  if (remembered.path.empty()) return "";
  if (!remembered.state) {
    return fmt::format("\nRemembered kernels\n  {}\n", remembered.state.error().message);
  }
  const auto& state = *remembered.state;
  if (state.rows == 0) return "";
  return fmt::format("\nRemembered kernels\n  {} of {} GPU(s), by runs from {} to {}\n  {}, {}\n",
                     state.kernels, state.boards, report::utc_text(*state.first).substr(0, 10),
                     report::utc_text(*state.last).substr(0, 10), remembered.path.string(),
                     report::bytes_text(state.bytes));
}

ordered_json remembered_json(const RememberedKernels& remembered) {
  if (remembered.path.empty()) return nullptr;
  ordered_json json = {{"path", remembered.path.string()},
                       {"kernels", nullptr},
                       {"rows", nullptr},
                       {"boards", nullptr},
                       {"bytes", nullptr},
                       {"first_run_time", nullptr},
                       {"last_run_time", nullptr},
                       {"reason", nullptr}};
  if (!remembered.state) {
    json["reason"] = remembered.state.error().message;
    return json;
  }
  const auto& state = *remembered.state;
  json["kernels"] = state.kernels;
  json["rows"] = state.rows;
  json["boards"] = state.boards;
  json["bytes"] = state.bytes;
  if (state.first) json["first_run_time"] = report::utc_text(*state.first);
  if (state.last) json["last_run_time"] = report::utc_text(*state.last);
  return json;
}

// Null where none was requested.
ordered_json calibration_json(const std::optional<Result<void>>& calibration) {
  if (!calibration) return nullptr;
  ordered_json json = {{"done", calibration->has_value()}, {"kind", nullptr}, {"reason", nullptr}};
  if (!*calibration) {
    json["kind"] = to_string(calibration->error().code);
    json["reason"] = calibration->error().message;
  }
  return json;
}

constexpr Duration kTime = std::chrono::milliseconds{2600};
constexpr Duration kCounterPeriod = std::chrono::milliseconds{100};  // each of its updates

struct Looked {
  meters::Meter* meter;
  model::DomainId domain;
  analysis::EnergyTimeline timeline;
};

std::vector<Looked> both_sensors(meters::MeterSet& meters) {
  std::vector<Looked> out;
  for (const auto& meter : meters.meters) {
    const std::vector<bool> all(meter->sensors().size(), true);
    for (const auto& domain : meter->domains()) {
      const auto chosen = analysis::choose_sensors(meter->sensors(), domain.id, all);
      if (!chosen || !chosen->counter || !chosen->power) continue;
      out.push_back({meter.get(), domain.id, analysis::EnergyTimeline(*chosen)});
    }
  }
  return out;
}

}  // namespace

RememberedKernels remembered() {
  const auto path = kernel_store_path();
  return {path, path.empty() ? recording::KernelStoreState{} : recording::kernel_store_state(path)};
}

std::string doctor_text(const meters::MeterSet& found, const RememberedKernels& remembered,
                        const UnitLooks& units) {
  std::string out;
  for (const auto& meter : found.meters) {
    for (const auto& domain : meter->domains()) {
      std::string sensors;
      std::string gauges;
      for (const auto& sensor : meter->sensors()) {
        if (sensor.domain != domain.id) continue;
        if (sensor.kind == SensorKind::kGauge) {
          gauges += (gauges.empty() ? "" : ", ") + sensor.name;
          continue;
        }
        const bool measured = sensor.provenance == model::Provenance::kMeasured;
        sensors += fmt::format("    {}{}\n      {}\n      for {}\n{}", sensor.name,
                               measured ? "" : fmt::format("  [{}]", to_string(sensor.provenance)),
                               traits_text(sensor), use_of(sensor), row_text(sensor));
        const auto look = units.find({meter.get(), domain.id});
        if (sensor.kind == SensorKind::kEnergyCounter && look != units.end()) {
          sensors += fmt::format("      {}\n", look->second);
        }
      }
      if (sensors.empty() && gauges.empty()) continue;
      out += fmt::format("  {} {}  {}{}\n{}", to_string(domain.kind), domain.device, domain.name,
                         domain.uuid.empty() ? "" : "  " + domain.uuid, sensors);
      if (!gauges.empty()) out += fmt::format("    gauges: {}\n", gauges);
      out += levels_text(domain.known_levels);
    }
  }
  if (!out.empty()) out = "Found\n" + out;
  if (!found.missing.empty()) {
    out += fmt::format("{}Not available\n", out.empty() ? "" : "\n");
    for (const auto& missing : found.missing) {
      out += fmt::format("  {}\n    {}\n", missing.what, missing.error.message);
      if (!missing.fix.empty()) out += fmt::format("    fix: {}\n", missing.fix);
    }
  }
  out += remembered_text(remembered);
  out += found.can_measure() ? "\nNext: jouleprof run -- COMMAND\n"
                             : "\nNothing can be measured here; jouleprof can only estimate the "
                               "energy of this machine.\n";
  return out;
}

std::string doctor_json(const meters::MeterSet& found,
                        const std::optional<Result<void>>& calibration,
                        const RememberedKernels& remembered) {
  ordered_json domains = ordered_json::array();
  for (const auto& meter : found.meters) {
    for (const auto& domain : meter->domains()) {
      ordered_json sensors = ordered_json::array();
      for (const auto& sensor : meter->sensors()) {
        if (sensor.domain == domain.id) sensors.push_back(sensor_json(sensor));
      }
      const auto text = [](const std::string& s) {
        return s.empty() ? ordered_json(nullptr) : ordered_json(s);
      };
      domains.push_back({{"domain", to_string(domain.kind)},
                         {"device", domain.device},
                         {"name", text(domain.name)},
                         {"uuid", text(domain.uuid)},
                         {"meter", meter->name()},
                         {"reason", text(domain.unavailable_reason)},
                         {"rest", level_json(domain.known_levels.rest)},
                         {"held", level_json(domain.known_levels.held)},
                         {"sensors", std::move(sensors)}});
    }
  }
  ordered_json missing = ordered_json::array();
  for (const auto& m : found.missing) {
    missing.push_back({{"what", m.what},
                       {"kind", to_string(m.error.code)},
                       {"reason", m.error.message},
                       {"fix", m.fix.empty() ? ordered_json(nullptr) : ordered_json(m.fix)}});
  }
  const ordered_json document = {
      {"schema", "jouleprof.doctor/1"},     {"tool_version", JOULEPROF_VERSION},
      {"can_measure", found.can_measure()}, {"calibration", calibration_json(calibration)},
      {"domains", std::move(domains)},      {"remembered_kernels", remembered_json(remembered)},
      {"missing", std::move(missing)}};
  return json_text(document, 2) + "\n";
}

std::string level_text(std::string_view name, const model::KnownLevel& level) {
  std::string text = fmt::format("{} {:.1f} W ± {:.2g} W, observed {}", name, level.power.watts(),
                                 level.spread.watts(), report::utc_seconds_text(level.observed));
  if (level.temperature_celsius) text += fmt::format(" at {:.0f} °C", *level.temperature_celsius);
  return text;
}

UnitLooks look_at_units(meters::MeterSet& meters) {
  auto looked = both_sensors(meters);
  std::vector<meters::Meter*> read;
  for (const Looked& l : looked) {
    if (std::ranges::find(read, l.meter) != read.end()) continue;
    meters::Demand demand;
    demand.counter_period = kCounterPeriod;
    l.meter->set_demand(demand);
    read.push_back(l.meter);
  }
  if (read.empty()) return {};
  const auto append = [&](meters::Meter& meter, const model::Readings& readings) {
    for (Looked& l : looked) {
      if (l.meter == &meter) l.timeline.append(readings);
    }
  };
  read_for(read, kTime, append);
  read_for(read, Duration{}, append);  // the buffers' last samples
  UnitLooks out;
  for (Looked& l : looked) out[{l.meter, l.domain}] = analysis::unit_text(l.timeline.unit());
  return out;
}

}  // namespace jouleprof::cli
