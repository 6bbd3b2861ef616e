#include "recording/sweep_json.h"

#include <optional>
#include <type_traits>
#include <vector>

#include "base/json/json_reader.h"

namespace jouleprof::recording {
namespace {

using nlohmann::json;

// Calls `field(key, member, required)` for each member.
template <typename Plan, typename Field>
void visit_plan(Plan& plan, const Field& field) {
  field("command", plan.command, true);
  field("knob", plan.knob, true);
  field("observe", plan.observe, false);
  field("settings", plan.settings, true);
  field("reference", plan.reference, true);
  field("found", plan.found, false);
  field("devices", plan.devices, true);
  field("window", plan.window, false);
  field("throughput", plan.throughput, false);
  field("bench", plan.bench, false);
  field("objective", plan.objective, true);
  field("eta", plan.eta, true);
  field("max_slowdown_ratio", plan.max_slowdown, false);
  field("max_watts", plan.max_watts, false);
  field("seed", plan.seed, true);
  field("fewest_blocks", plan.fewest_blocks, true);
  field("most_blocks", plan.most_blocks, true);
  field("tolerance_ratio", plan.tolerance, true);
  field("max_seconds", plan.max_seconds, false);
  field("most_celsius", plan.most_celsius, false);
}

template <typename Run, typename Field>
void visit_run(Run& run, const Field& field) {
  field("number", run.number, true);
  field("block", run.block, true);
  field("setting", run.setting, true);
  field("started_unix_ns", run.started_unix_ns, true);
  field("wall_seconds", run.wall_seconds, true);
  field("exit_status", run.exit_status, false);
  field("seconds", run.seconds, false);
  field("joules", run.joules, false);
  field("total_joules", run.total_joules, false);
  field("units", run.units, false);
  field("requested", run.requested, false);
  field("requested_after", run.requested_after, false);
  field("enforced_watts", run.enforced_watts, false);
  field("start_celsius", run.start_celsius, false);
  field("end_celsius", run.end_celsius, false);
  field("mean_watts", run.mean_watts, false);
  field("peak_watts", run.peak_watts, false);
  field("sm_megahertz", run.sm_megahertz, false);
  field("memory_megahertz", run.memory_megahertz, false);
  field("sm_utilisation_ratio", run.sm_utilisation, false);
  field("memory_utilisation_ratio", run.memory_utilisation, false);
  field("limited_by_power_ratio", run.limited_by_power, false);
  field("limited_by_heat_ratio", run.limited_by_heat, false);
  field("simulated", run.simulated, false);
  field("unranked", run.unranked, false);
  field("remark", run.remark, false);
}

template <typename T>
constexpr bool is_list = false;
template <typename T>
constexpr bool is_list<std::vector<T>> = true;
template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

// An absent member is left out.
constexpr auto writer(json& object) {
  return [&object](const char* key, const auto& member, bool) {
    using Member = std::decay_t<decltype(member)>;
    if constexpr (is_optional<Member>) {
      if (member) object[key] = *member;
    } else {
      object[key] = member;
    }
  };
}

template <typename T>
void read_list(JsonReader& reader, const char* key, std::vector<T>& out) {
  const json* list = reader.raw(key);
  if (list == nullptr || !list->is_array()) return reader.error(key, "must be a list");
  for (const auto& item : *list) {
    if (std::is_same_v<T, std::string> ? !item.is_string() : !item.is_number()) {
      return reader.error(key, "has an item of a wrong type");
    }
    out.push_back(item.get<T>());
  }
}

constexpr auto member_reader(JsonReader& reader) {
  return [&reader](const char* key, auto& member, bool required) {
    using Member = std::decay_t<decltype(member)>;
    constexpr JsonRange kAny{-1e19, 1e19};
    if constexpr (is_list<Member>) {
      read_list(reader, key, member);
    } else if (required) {
      reader.require(key, member, kAny);
    } else {
      reader.read(key, member, kAny);
    }
  };
}

template <typename T, typename Visit>
Result<T> from_json(const std::string& text, const std::string& file, const Visit& visit) {
  const auto document = parse_json(text, file, Errc::kCorrupt);
  if (!document) return forward_error(document);
  JsonErrors errors{file, {}, Errc::kCorrupt};
  JsonReader reader(*document, "", errors);
  T value;
  visit(value, member_reader(reader));
  if (errors.first) return tl::unexpected(*errors.first);
  return value;
}

}  // namespace

std::string plan_to_json(const model::SweepPlan& plan) {
  json object = json::object();
  visit_plan(plan, writer(object));
  return object.dump();
}

std::string run_to_json(const model::SweepRun& run) {
  json object = json::object();
  visit_run(run, writer(object));
  return object.dump();
}

Result<model::SweepPlan> plan_from_json(const std::string& text, const std::string& file) {
  return from_json<model::SweepPlan>(
      text, file, [](auto& plan, const auto& field) { visit_plan(plan, field); });
}

Result<model::SweepRun> run_from_json(const std::string& text, const std::string& file) {
  return from_json<model::SweepRun>(text, file,
                                    [](auto& run, const auto& field) { visit_run(run, field); });
}

}  // namespace jouleprof::recording
