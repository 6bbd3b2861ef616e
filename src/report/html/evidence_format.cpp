#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/device/sensor_table.h"
#include "model/profile.h"
#include "report/cells.h"
#include "report/costs/wall.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/json/values.h"
#include "report/quantity.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

// One meter at the supply, the BMC, or the sensors within the machine, over the same time.
struct Meter {
  std::string level;  // "wall", "bmc" or "in-band"
  std::string name;
  std::string refused;                     // why it is not used; the rest is then unknown
  model::WallLog log;                      // of a meter
  std::optional<WallComparison> compared;  // absent: in-band
  double joules = 0;
  std::optional<double> low, high;  // 95 %; absent: its error is not stated
};

// Two of them over their common time.
struct Agreement {
  const Meter* of;
  const Meter* with;
  double ratio = 0;                 // of their energies
  std::optional<double> low, high;  // 95 %, of both errors
  std::string verdict;
};

struct Evidence {
  const model::Profile* profile;
  std::vector<Meter> meters;  // the last one is in-band
  std::vector<Agreement> agreements;
  std::optional<double> low, high;  // of the machine's energy
  std::string bound;                // what it rests on
  std::vector<std::string> warnings;
};

constexpr double kUnstated = 0.1;  // of two meters, where an error is not stated. Chosen

std::string level_of(const model::WallLog& log) {
  const bool is_bmc = log.file.starts_with("ipmi") || log.file.starts_with("redfish") ||
                      log.format == "ipmi" || log.format == "redfish";
  return is_bmc ? "bmc" : "wall";
}

Meter measured(const analysis::Run& run, const analysis::Part& part, const model::WallLog& log) {
  Meter out;
  out.level = level_of(log);
  out.name = log.file;
  out.log = log;
  auto made = compare_wall(run, part, log);
  if (!made) {
    out.refused = made.error().message;
    return out;
  }
  out.joules = made->wall.energy.joules();
  out.log.error = made->log.error;
  if (out.log.error) {
    out.low = out.joules * (1 - *out.log.error);
    out.high = out.joules * (1 + *out.log.error);
  }
  out.compared = std::move(*made);
  return out;
}

// In-band sensors never see all of a machine, so that they agree with a meter while they stay below
// it and follow it.
Agreement with_sensors(const Meter& meter, const Meter& in_band) {
  Agreement out{&meter, &in_band, 0, {}, {}, "the sensors' energy in the common time is not known"};
  const auto& sum = meter.compared->components;
  if (!sum || meter.joules <= 0) return out;
  out.ratio = sum->energy.joules() / meter.joules;
  if (meter.low && *meter.low > 0) {
    out.low = sum->low().joules() / *meter.high;
    out.high = sum->high().joules() / *meter.low;
  }
  const double least = out.low.value_or(out.ratio);
  if (least > 1) {
    out.verdict = "disagrees: the sensors show more than the meter";
  } else if (const auto& slope = meter.compared->slope) {
    out.verdict = fmt::format("agrees: one more watt at the sensors is {:.2f} ± {:.2f} W here",
                              slope->ratio, slope->error);
  } else {
    out.verdict = "agrees: the sensors show no more than the meter; their power hardly changed";
  }
  return out;
}

Agreement of_two(const Meter& a, const Meter& b) {
  Agreement out{&a, &b, 0, {}, {}, "the meters have no common time"};
  const RealTime begin = std::max(a.compared->wall.begin, b.compared->wall.begin);
  const RealTime end = std::min(a.compared->wall.end, b.compared->wall.end);
  if (begin >= end) return out;
  const auto one = wall_energy(a.log, begin, end);
  const auto other = wall_energy(b.log, begin, end);
  if (!one || !other || one->energy <= Energy{}) return out;
  out.ratio = other->energy.joules() / one->energy.joules();
  double error = kUnstated;
  if (a.log.error && b.log.error) {
    error = std::hypot(*a.log.error, *b.log.error);
    out.low = out.ratio * (1 - error);
    out.high = out.ratio * (1 + error);
  }
  out.verdict =
      fmt::format("{} within {}", std::abs(out.ratio - 1) <= error ? "agrees" : "disagrees: not",
                  percent_text(error));
  return out;
}

Result<Evidence> evidence_of(const analysis::Run& run, const analysis::Part& part,
                             const FormatOptions& options) {
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  Evidence out{&*profile, {}, {}, {}, {}, "", profile->warnings};
  auto logs = recorded_walls(run);
  if (options.wall) logs.insert(logs.begin(), *options.wall);
  for (const auto& log : logs) out.meters.push_back(measured(run, part, log));
  // The wall comes first, whatever the order of the options.
  std::stable_partition(out.meters.begin(), out.meters.end(),
                        [](const Meter& m) { return m.level == "wall"; });
  const Total total = total_of(*profile);
  Meter in_band;
  in_band.level = "in-band";
  for (const auto* domain : total.summed) {
    if (!in_band.name.empty()) in_band.name += " + ";
    in_band.name += fmt::format("{}", model::to_string(domain->domain.kind));
  }
  if (total.energy) {
    in_band.joules = total.energy->energy.joules();
    in_band.low = total.energy->low().joules();
    if (!total.lost) in_band.high = total.energy->high().joules();
  } else {
    in_band.refused = "no sensor of the machine has a figure";
  }
  out.meters.push_back(std::move(in_band));
  const Meter& inside = out.meters.back();
  const Meter* first = nullptr;
  for (const Meter& meter : out.meters) {
    if (!meter.compared) continue;
    if (first != nullptr) out.agreements.push_back(of_two(*first, meter));
    if (first == nullptr) first = &meter;
    out.agreements.push_back(with_sensors(meter, inside));
  }
  if (first != nullptr) {
    out.low = first->low;
    out.high = first->high;
    out.bound = fmt::format("the {} meter{}", first->level,
                            first->low ? "" : ", whose error is not stated");
  } else if (inside.refused.empty()) {
    out.low = inside.low;
    out.bound = "the sensors: a machine draws more than they see, and no meter says how much";
  }
  return out;
}

Json range_json(const std::optional<double>& low, const std::optional<double>& high) {
  if (!low && !high) return nullptr;
  return Json::array({optional_json(low, number_json), optional_json(high, number_json)});
}

Json meter_json(const Meter& meter) {
  Json j = Json::object();
  j["level"] = meter.level;
  j["name"] = text_json(meter.name);
  j["refused"] = text_json(meter.refused);
  const bool known = meter.refused.empty();
  j["energy_joules"] = known ? number_json(meter.joules) : Json(nullptr);
  j["interval_joules"] = known ? range_json(meter.low, meter.high) : Json(nullptr);
  const auto* wall = meter.compared ? &meter.compared->wall : nullptr;
  j["readings"] = wall != nullptr ? Json(wall->readings) : Json(nullptr);
  j["longest_pause_seconds"] = wall != nullptr ? seconds_json(wall->longest_pause) : Json(nullptr);
  j["covered_seconds"] = wall != nullptr ? seconds_json(wall->end - wall->begin) : Json(nullptr);
  return j;
}

std::string device_of(const Evidence& evidence, const model::Sensor& sensor) {
  for (const auto& d : evidence.profile->domains) {
    if (d.domain.id == sensor.domain) return d.domain.device;
  }
  return "";
}

Json sensors_json(const analysis::Run& run, const Evidence& evidence) {
  Json all = Json::array();
  for (const auto& sensor : run.recording().sensors) {
    if (sensor.kind == model::SensorKind::kGauge) continue;
    const auto* row = model::row_of(sensor.name);
    const auto& scale = sensor.traits.scale;
    Json j = Json::object();
    j["device"] = text_json(device_of(evidence, sensor));
    j["sensor"] = sensor.name;
    j["provenance"] = model::to_string(sensor.provenance);
    j["covers"] = row != nullptr ? Json(row->covers) : Json(nullptr);
    j["unit"] = row != nullptr ? Json(row->unit) : Json(nullptr);
    j["gain_ratios"] = Json::array({number_json(scale.gain_low), number_json(scale.gain_high)});
    j["offset_watts"] = Json::array(
        {number_json(scale.offset_low.watts()), number_json(scale.offset_high.watts())});
    j["correction_ratio"] = number_json(sensor.traits.correction);
    j["scale_source"] = text_json(scale.source);
    all.push_back(std::move(j));
  }
  return all;
}

Json to_json(const analysis::Run& run, const Evidence& evidence, const FormatOptions& options) {
  const model::Profile& profile = *evidence.profile;
  Json j = Json::object();
  j["schema"] = "jouleprof.evidence/1";
  j["version"] = options.version;
  j["command"] = command_text(profile.run);
  j["host"] = text_json(profile.run.host);
  j["start_time"] =
      profile.start_time == RealTime{} ? Json(nullptr) : Json(utc_text(profile.start_time));
  j["duration_seconds"] = seconds_json(profile.duration());
  j["simulated"] = profile.simulated;
  j["meters"] = list_json(evidence.meters, meter_json);
  j["agreements"] = list_json(evidence.agreements, [](const Agreement& a) {
    Json row = Json::object();
    row["meter"] = a.of->name;
    row["with"] = a.with->level == "in-band" ? a.with->level : a.with->name;
    row["ratio"] = a.ratio > 0 ? number_json(a.ratio) : Json(nullptr);
    row["interval_ratios"] = range_json(a.low, a.high);
    const auto* slope =
        a.with->level == "in-band" && a.of->compared->slope ? &*a.of->compared->slope : nullptr;
    row["slope_ratio"] = slope != nullptr ? number_json(slope->ratio) : Json(nullptr);
    row["slope_error_ratio"] = slope != nullptr ? number_json(slope->error) : Json(nullptr);
    row["verdict"] = a.verdict;
    return row;
  });
  j["machine_interval_joules"] = range_json(evidence.low, evidence.high);
  j["machine_interval_from"] = text_json(evidence.bound);
  j["sensors"] = sensors_json(run, evidence);
  j["warnings"] = evidence.warnings;
  return j;
}

std::string joules_text(double joules) { return energy_text(Energy::joules(joules)); }

std::string range_text(const std::optional<double>& low, const std::optional<double>& high) {
  if (low && high) return joules_text(*low) + " to " + joules_text(*high);
  return low ? "at least " + joules_text(*low) : "not known";
}

std::string ratio_text(const Agreement& a) {
  if (a.ratio <= 0) return "-";
  const auto percent = percent_text(a.ratio);
  return a.low ? fmt::format("{} ({} to {})", percent, percent_text(*a.low), percent_text(*a.high))
               : percent;
}

std::string headline_of(const Evidence& evidence) {
  const model::Profile& profile = *evidence.profile;
  std::string html = element("h1", "", "Evidence of a measurement");
  html += element("p", "soft", command_text(profile.run));
  html += element("p", "soft", run_line(profile));
  if (profile.simulated) html += element("p", "alert", "SIMULATED: a device was not real.");
  html += hero(
      range_text(evidence.low, evidence.high), "", "",
      "energy of the machine, 95 %, from " + (evidence.bound.empty() ? "nothing" : evidence.bound));
  std::vector<std::vector<std::string>> rows;
  for (const Meter& m : evidence.meters) {
    const bool known = m.refused.empty();
    rows.push_back({m.level + ": " + m.name, known ? joules_text(m.joules) : "-",
                    known ? range_text(m.low, m.high) : "refused",
                    m.compared ? fmt::format("{}", m.compared->wall.readings) : "-",
                    m.compared ? duration_text(m.compared->wall.longest_pause) : "-"});
  }
  html += figure_table("Meters over the same time",
                       {"meter", "energy", "95 % interval", "readings", "longest pause"}, rows);
  for (const Meter& m : evidence.meters) {
    if (!m.refused.empty()) html += element("p", "alert", m.name + ": " + m.refused);
  }
  rows.clear();
  for (const Agreement& a : evidence.agreements) {
    rows.push_back(
        {fmt::format("{} against {}: {}", a.with->name, a.of->name, a.verdict), ratio_text(a)});
  }
  if (!rows.empty()) html += figure_table("Agreement", {"of", "ratio of energies"}, rows);
  for (const auto& warning : evidence.warnings) html += element("p", "soft", "warning: " + warning);
  return html;
}

Result<std::string> evidence_json(const analysis::Run& run, const analysis::Part& part,
                                  const FormatOptions& options) {
  const auto evidence = evidence_of(run, part, options);
  if (!evidence) return forward_error(evidence);
  return write_json(to_json(run, *evidence, options)) + '\n';
}

Result<std::string> evidence_page(const analysis::Run& run, const analysis::Part& part,
                                  const FormatOptions& options) {
  const auto evidence = evidence_of(run, part, options);
  if (!evidence) return forward_error(evidence);
  const Json document = to_json(run, *evidence, options);
  std::vector<std::vector<std::string>> rows;
  for (const auto& sensor : run.recording().sensors) {
    if (sensor.kind == model::SensorKind::kGauge) continue;
    std::string words = fmt::format("{}, {}", device_of(*evidence, sensor), sensor.name);
    if (const auto* row = model::row_of(sensor.name)) {
      words += fmt::format("; {}; {}", row->covers, row->unit);
    }
    if (!sensor.traits.scale.source.empty()) words += "; error: " + sensor.traits.scale.source;
    rows.push_back({std::move(words), scale_text(sensor.traits.scale)});
  }
  const PageOptions page{options.version, "", options.redact};
  Json data = page_head(page);
  data["evidence"] = document;
  return assemble_page({"Evidence",
                        headline_of(*evidence) + figure_table("Sensors", {"sensor", "95 %"}, rows),
                        page_foot(page), std::move(data)});
}

}  // namespace

extern constinit const Format evidence_format{
    .name = "evidence",
    .extension = ".evidence.json",
    .shows =
        "meters at the supply, the BMC and the sensors over the same time, their agreement, "
        "and what bounds the machine's energy",
    .write = write_made<evidence_json>};

extern constinit const Format evidence_page_format{.name = "evidence-page",
                                                   .extension = ".evidence.html",
                                                   .shows = "the same as a page",
                                                   .write = write_made<evidence_page>};

}  // namespace jouleprof::report
