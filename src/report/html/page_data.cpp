#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/activity/activity_profile.h"
#include "model/process/process.h"
#include "model/profile.h"
#include "model/record_fields.h"
#include "report/activity/activity.h"
#include "report/html/page.h"
#include "report/json/json_format.h"
#include "report/quantity.h"
#include "report/results/redaction.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using model::ActivityProfile;
using model::ActivityStack;

// --- Energies of kernels, layers, ranges and phases by time ---

constexpr std::int64_t kMostUnits = 100'000;  // five digits of the greatest slice
constexpr double kMainPart = 0.1;             // of the greatest slice: decides the ratio
constexpr double kLittle = 0.02;              // of the sum

// Errors of most rows are proportional to their energies, which takes one number.
struct Errors {
  double ratio = 0;
  double more = 0;  // of all slices that exceed it
};

Errors errors_of(const model::ActivitySlices::Row& row, double greatest) {
  Errors out;
  for (std::size_t i = 0; i < row.energies.size(); ++i) {
    const double energy = std::abs(row.energies[i].joules());
    if (energy < kMainPart * greatest || energy <= 0) continue;
    out.ratio = std::max(out.ratio, row.errors[i].joules() / energy);
  }
  out.ratio = std::ceil(1000 * out.ratio) / 1000;
  for (std::size_t i = 0; i < row.energies.size(); ++i) {
    const double covered = out.ratio * std::abs(row.energies[i].joules());
    out.more += std::max(row.errors[i].joules() - covered, 0.0);
  }
  return out;
}

Json row_json(const model::ActivitySlices::Row& row) {
  double greatest = 0;
  double sum = 0;
  for (const Energy e : row.energies) {
    greatest = std::max(greatest, std::abs(e.joules()));
    sum += std::abs(e.joules());
  }
  std::int64_t unit = 1;
  while (greatest * 1e6 >= static_cast<double>(kMostUnits * unit)) unit *= 10;
  const auto units = [&](Energy e) { return e.joules() * 1e6 / static_cast<double>(unit); };
  Json energies = list_json(row.energies, [&](Energy e) { return std::llround(units(e)); });
  const Errors errors = errors_of(row, greatest);
  Json list = nullptr;
  if (errors.more > kLittle * sum) {
    list = list_json(row.errors,
                     [&](Energy e) { return static_cast<std::int64_t>(std::ceil(units(e))); });
  }
  return {row.row,
          unit,
          std::move(energies),
          decimal(fixed_decimal(errors.ratio, 3)),
          static_cast<std::int64_t>(std::ceil(units(Energy::joules(errors.more)))),
          std::move(list)};
}

// One object for each device: id (of the domain), begin_seconds (since `origin`), step_seconds,
// count, and for each table ("kernel", "layer", "range", "phase") its rows as arrays:
//   [number, microjoules of one unit, energies in units, error ratio, error more, errors]
// Half of the 95 % interval of the sum of some slices is at most
//   the sum of their `errors`, in units, where these are present; else
//   ratio x the sum of the absolute energies + more (units).
Json slices_json(const std::vector<model::ActivitySlices>& slices, HostTime origin) {
  return list_json(slices, [origin](const model::ActivitySlices& s) -> Json {
    return {{"id", static_cast<std::uint32_t>(s.domain)},
            {"begin_seconds", seconds_json(s.begin - origin)},
            {"step_seconds", seconds_json(s.step)},
            {"count", s.count},
            {"kernel", list_json(s.by_kernel, row_json)},
            {"layer", list_json(s.by_layer, row_json)},
            {"range", list_json(s.by_range, row_json)},
            {"phase", list_json(s.by_phase, row_json)}};
  });
}

// Energies and CPU time of processes by time.
//
// An object: begin_seconds (since `origin`), step_seconds, count, and rows as arrays, whose values
// are those of slices from `first` on:
//   energy: [process, domain, microjoules of one unit, first, energies in units]
//   cpu: [process, first, milliseconds]
// A process is its place in the profile's list.
Json process_slices_json(const model::ProcessSlices& slices, const model::Profile& profile,
                         HostTime origin) {
  Json j = Json::object();
  j["begin_seconds"] = seconds_json(slices.begin - origin);
  j["step_seconds"] = seconds_json(slices.step);
  j["count"] = slices.count;
  j["energy"] = Json::array();
  j["cpu"] = Json::array();
  std::map<model::ProcessId, std::size_t> places;
  for (const auto& p : profile.processes) places.try_emplace(p.process.id, places.size());
  for (const auto& row : slices.rows) {
    const auto place = places.find(row.process);
    if (place == places.end()) continue;
    std::int64_t greatest = 0;
    for (const Energy e : row.energies) greatest = std::max(greatest, std::abs(e.microjoules()));
    std::int64_t unit = 1;
    while (greatest >= kMostUnits * unit) unit *= 10;
    Json energies = list_json(row.energies, [unit](Energy e) {
      return std::llround(static_cast<double>(e.microjoules()) / static_cast<double>(unit));
    });
    j["energy"].push_back({place->second, static_cast<std::uint32_t>(row.domain), unit, row.first,
                           std::move(energies)});
  }
  for (const auto& row : slices.cpu_times) {
    const auto place = places.find(row.process);
    if (place == places.end()) continue;
    Json times = list_json(row.times, [](Duration t) { return std::llround(1e3 * seconds(t)); });
    j["cpu"].push_back({place->second, row.first, std::move(times)});
  }
  return j;
}

// --- All data of a page ---

// Bounds that keep an hour of training below 3 MB.
constexpr std::size_t kMostSteps = 3000;
constexpr std::size_t kMostGaugePoints = 800;
constexpr std::size_t kMostWindowBlocks = 3000;
constexpr std::size_t kMostRows = 2000;
constexpr std::size_t kMostStacks = 12'000;
constexpr std::size_t kMostGroups = 3000;

Json activity_data(const std::vector<ActivityProfile>& profiles) {
  Json tables;
  for (const ActivityDimension& table : activity_dimensions()) {
    ActivityOptions options;
    options.by = table.by;
    options.top = kMostRows;
    Json document = activity_document(profiles, options);
    for (Json& device : document["devices"]) {
      device["rows"] = packed_rows(device["rows"], {"symbol"});
      device.erase("uuid");
    }
    tables[std::string(table.word)] = std::move(document["devices"]);
  }
  return tables;
}

Json index_json(std::uint32_t index) { return index == model::kNone ? Json(nullptr) : Json(index); }

// Those with the most energy; what is left out is one stack of its phase.
std::vector<ActivityStack> main_stacks(std::vector<ActivityStack> stacks) {
  if (stacks.size() <= kMostStacks) return stacks;
  std::ranges::stable_sort(stacks, std::ranges::greater{}, &ActivityStack::energy);
  std::array<ActivityStack, 256> others{};
  for (std::size_t i = kMostStacks; i < stacks.size(); ++i) {
    auto& other = others[static_cast<std::uint8_t>(stacks[i].phase)];
    other.phase = stacks[i].phase;
    other.launches += stacks[i].launches;
    other.busy += stacks[i].busy;
    other.energy += stacks[i].energy;
  }
  stacks.resize(kMostStacks);
  for (const auto& other : others) {
    if (other.launches > 0 || other.energy != Energy{}) stacks.push_back(other);
  }
  return stacks;
}

bool several_processes(const std::vector<ActivityProfile>& devices) {
  std::set<std::uint32_t> traces;
  for (const auto& device : devices) {
    for (const auto& p : device.by_process) traces.insert(p.trace);
  }
  return traces.size() > 1;
}

Json process_stacks(const ActivityProfile& profile, const model::Recording& recording) {
  Json list = Json::array();
  for (const auto& p : profile.by_process) {
    Json& process = list.emplace_back();
    process["pid"] = p.pid;
    process["rank"] = optional_json(recording.traces.at(p.trace).rank.global);
    process["idle_between_microjoules"] = p.idle_between.microjoules();
    // kernel, launches, busy nanoseconds, microjoules
    process["kernels"] = list_json(p.by_kernel, [](const auto& k) -> Json {
      return {index_json(k.kernel), k.launches, k.busy.count(), k.energy.microjoules()};
    });
  }
  return list;
}

Json stacks_data(const ActivityProfile& profile) {
  Json j = Json::object();
  j["id"] = static_cast<std::uint32_t>(profile.domain.id);
  j["device"] = profile.domain.device;
  j["phases"] = list_json(std::array{model::Phase::kNone, model::Phase::kForward,
                                     model::Phase::kBackward, model::Phase::kOptimizer},
                          model::phase_name);
  // phase, layer, range, kernel, launches, busy nanoseconds, microjoules
  j["stacks"] = list_json(main_stacks(profile.stacks), [](const ActivityStack& s) -> Json {
    return {static_cast<unsigned>(s.phase), index_json(s.layer), index_json(s.range),
            index_json(s.kernel),           s.launches,          s.busy.count(),
            s.energy.microjoules()};
  });
  return j;
}

Json profile_data(const model::Profile& profile, const Costs* costs) {
  Json j = profile_document(profile, costs);
  // A table of so many names is read with `report --json`.
  if (j["windows"].size() > kMostGroups) {
    j["windows_left_out"] = j["windows"].size() - kMostGroups;
    j["windows"].erase(j["windows"].begin() + static_cast<std::ptrdiff_t>(kMostGroups),
                       j["windows"].end());
  }
  return j;
}

// The document of `--by request`, with the requests of most energy. Null without requests.
Json serving_data(const model::ServingProfile& profile, const FormatOptions& options,
                  bool being_written) {
  if (profile.requests.empty()) return nullptr;
  model::ServingProfile shown = profile;
  std::ranges::stable_sort(shown.requests,
                           [](const auto& a, const auto& b) { return a.energy > b.energy; });
  const std::size_t kept = std::min(shown.requests.size(), kMostRows);
  shown.requests.resize(kept);
  if (options.redact) {
    std::map<std::string, std::string> names;
    for (auto& t : shown.tenants) {
      const auto name = t.tenant.empty() ? "" : "tenant " + std::to_string(names.size() + 1);
      t.tenant = names.try_emplace(t.tenant, name).first->second;
    }
    for (std::size_t i = 0; i < kept; ++i) {
      auto& r = shown.requests[i];
      r.id = "request " + std::to_string(i + 1);
      r.tenant = names[r.tenant];
      r.model.clear();
      r.filler.clear();
    }
  }
  Json j = serving_document(shown, being_written);
  j["requests_left_out"] = profile.requests.size() - kept;
  j["requests"] = packed_rows(j["requests"]);
  return j;
}

// Where readings that are stamped far ahead have made the span long, the end of the others.
HostTime end_of(const std::vector<PowerTrack>& tracks, HostTime end) {
  HostTime shown = HostTime::min();
  bool is_left_out = false;
  for (const auto& track : tracks) {
    shown = std::max(shown, track.end);
    is_left_out = is_left_out || (track.left_out && *track.left_out >= end);
  }
  return is_left_out ? std::min(end, shown) : end;
}

}  // namespace

Result<Json> page_data(const analysis::Run& run, const analysis::Part& part,
                       const FormatOptions& options, const model::Profile& profile,
                       const Costs* costs) {
  const auto& slices = run.activity_slices(kMostSliceCells, part);
  Json j = Json::object();
  j["schema"] = "jouleprof.page/1";
  j["version"] = options.version;
  j["file"] = text_json(options.text.recording_path);
  j["redacted"] = options.redact;
  j["labels"] = labels_of(profile);
  j["profile"] = profile_data(profile, costs);
  const auto wall = wall_of(run, part, options.wall);
  if (!wall) return forward_error(wall);
  if (*wall) {
    Json& shown = j["profile"]["wall"] = wall_json(**wall);
    if (options.redact) shown["file"] = "(redacted)";
  }
  const auto& activity = run.activity(part);
  if (!activity) return tl::unexpected(activity.error());
  std::vector<ActivityProfile> without_names;
  if (options.redact) without_names = redacted(*activity, run.recording());
  const auto& rows = options.redact ? without_names : *activity;
  j["activity"] = rows.empty() ? Json(nullptr) : activity_data(rows);
  j["stacks"] = Json::array();
  const bool several = several_processes(*activity);
  for (const auto& device : *activity) {
    Json& stacks = j["stacks"].emplace_back(stacks_data(device));
    stacks["processes"] = several ? process_stacks(device, run.recording()) : Json::array();
  }
  const auto& serving = run.serving(part);
  j["serving"] =
      serving ? serving_data(*serving, options, run.recording().run.being_written) : Json(nullptr);
  const auto span = run.span(part);
  j["slices"] = Json::array();
  j["process_slices"] = nullptr;
  if (!span) {  // imported windows without a time
    j["timeline"] = nullptr;
    return j;
  }
  analysis::PartSpan shown = *span;
  if (part.is_whole()) shown = {HostTime::min(), HostTime::max()};
  const HostTime origin = run.recording().run.work_begin.value_or(span->begin);
  Json timeline = Json::object();
  timeline["begin_seconds"] = seconds_json(span->begin - origin);
  const auto tracks = power_tracks(run, part, origin, kMostSteps);
  timeline["end_seconds"] = seconds_json(end_of(tracks, span->end) - origin);
  timeline["power"] = power_json(tracks, origin);
  timeline["gauges"] = gauge_tracks(run, shown, origin, kMostGaugePoints);
  timeline["clock_limits"] = clock_limit_tracks(run, shown, origin);
  timeline["windows"] = window_track(run, *span, origin, kMostWindowBlocks);
  auto replays = replay_track(run, shown, origin);
  if (!replays) return tl::unexpected(replays.error());
  timeline["replays"] = std::move(*replays);
  j["timeline"] = std::move(timeline);
  if (slices) j["slices"] = slices_json(*slices, origin);
  if (const auto& by_time = run.process_slices(kMostSliceCells, part)) {
    j["process_slices"] = process_slices_json(*by_time, profile, origin);
  }
  return j;
}

}  // namespace jouleprof::report
