// A flame graph for speedscope.app (speedscope.app/file-format-schema.json), "sampled" profiles:
// one of energy and one of time for each device.
#include <fmt/format.h>

#include <unordered_map>

#include "report/activity/activity.h"
#include "report/format/format.h"
#include "report/json/json_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

class Frames {
 public:
  std::size_t number(const std::string& name) {
    const auto [at, is_new] = numbers_.try_emplace(name, list_.size());
    if (is_new) list_.push_back({{"name", name}});
    return at->second;
  }
  Json take() { return std::move(list_); }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  Json list_ = Json::array();
};

struct Column {
  const char* name;
  const char* unit;
  std::int64_t (*weight)(const EnergyStack& stack);
};
constexpr Column kColumns[] = {
    {"energy in microjoules", "none", [](const EnergyStack& s) { return s.energy.microjoules(); }},
    {"time", "nanoseconds", [](const EnergyStack& s) { return std::int64_t{s.time.count()}; }}};

// The format has no negative weights: energy that is negative is left out, and named.
Json profile_json(const model::ActivityProfile& device, const std::vector<EnergyStack>& stacks,
                  const Column& column, Frames& frames) {
  Json samples = Json::array();
  Json weights = Json::array();
  std::int64_t sum = 0;
  Energy left_out;
  for (const auto& stack : stacks) {
    const std::int64_t weight = column.weight(stack);
    if (stack.energy < Energy{}) left_out += stack.energy;
    if (weight <= 0) continue;
    Json path = Json::array();
    for (const auto& frame : stack.frames) path.push_back(frames.number(frame));
    samples.push_back(std::move(path));
    weights.push_back(weight);
    sum += weight;
  }
  std::string name = fmt::format("{}: {}", device.domain.device, column.name);
  if (left_out != Energy{}) {
    name += fmt::format(", without {} unattributed", energy_text(left_out));
  }
  if (device.measured.provenance != model::Provenance::kMeasured) {
    name += ", " + provenance_word(device.measured.provenance);
  }
  return {{"type", "sampled"}, {"name", name},       {"unit", column.unit}, {"startValue", 0},
          {"endValue", sum},   {"samples", samples}, {"weights", weights}};
}

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const auto activity = traced_activity(run, part);
  if (!activity) return tl::unexpected(activity.error());
  Frames frames;
  Json profiles = Json::array();
  for (const auto& device : **activity) {
    const auto stacks = energy_stacks(device);
    for (const Column& column : kColumns) {
      profiles.push_back(profile_json(device, stacks, column, frames));
    }
  }
  Json document = Json::object();
  document["$schema"] = "https://www.speedscope.app/file-format-schema.json";
  document["exporter"] = "jouleprof " + options.version;
  document["name"] = "energy";
  document["shared"]["frames"] = frames.take();
  document["profiles"] = std::move(profiles);
  out << write_json(document, 0) << '\n';
  return {};
}

}  // namespace

extern const Format speedscope_format;
constinit const Format speedscope_format{.name = "speedscope",
                                         .extension = ".speedscope.json",
                                         .shows = "the same flame graph, for speedscope.app",
                                         .write = write};

}  // namespace jouleprof::report
