// Flame graphs: for pprof and for speedscope.

#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/gzip/gzip.h"
#include "report/activity/activity.h"
#include "report/format/format.h"
#include "report/json/values.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

// Texts, and one function and one location for each frame's text, numbered from 1.
class Names {
 public:
  Names() { text(""); }

  std::int64_t text(const std::string& words) {
    const auto [at, is_new] = numbers_.try_emplace(words, texts_.size());
    if (is_new) texts_.push_back(words);
    return static_cast<std::int64_t>(at->second);
  }
  std::uint64_t location(const std::string& frame) {
    const auto [at, is_new] = locations_.try_emplace(text(frame), locations_.size() + 1);
    if (is_new) frames_.push_back(at->first);
    return at->second;
  }

  void write(protozero::pbf_writer& profile) const {
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      protozero::pbf_writer location(profile, 4);
      location.add_uint64(1, i + 1);
      protozero::pbf_writer line(location, 4);
      line.add_uint64(1, i + 1);  // the function
    }
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      protozero::pbf_writer function(profile, 5);
      function.add_uint64(1, i + 1);
      function.add_int64(2, frames_[i]);
    }
    for (const auto& words : texts_) profile.add_string(6, words);
  }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::unordered_map<std::int64_t, std::uint64_t> locations_;
  std::vector<std::int64_t> frames_;  // by location
};

void add_value_type(protozero::pbf_writer& profile, Names& names, const char* type,
                    const char* unit) {
  protozero::pbf_writer value_type(profile, 1);
  value_type.add_int64(1, names.text(type));
  value_type.add_int64(2, names.text(unit));
}

Result<void> write_pprof(const analysis::Run& run, const analysis::Part& part,
                         const FormatOptions& options, std::ostream& out) {
  const auto activity = traced_activity(run, part);
  if (!activity) return tl::unexpected(activity.error());
  std::string bytes;
  protozero::pbf_writer profile(bytes);
  Names names;
  add_value_type(profile, names, "energy", "microjoules");
  add_value_type(profile, names, "time", "nanoseconds");
  std::vector<std::int64_t> comments{names.text("jouleprof " + options.version)};
  Duration longest{};
  for (const auto& device : **activity) {
    longest = std::max(longest, device.length());
    for (const auto& stack : energy_stacks(device)) {
      protozero::pbf_writer sample(profile, 2);
      std::vector<std::uint64_t> path;  // the leaf first
      for (auto f = stack.frames.rbegin(); f != stack.frames.rend(); ++f) {
        path.push_back(names.location(*f));
      }
      sample.add_packed_uint64(1, path.begin(), path.end());
      const std::int64_t values[] = {stack.energy.microjoules(), stack.time.count()};
      sample.add_packed_int64(2, std::begin(values), std::end(values));
    }
    comments.push_back(names.text(
        fmt::format("{}: {:.6g} J, 95 % interval {:.6g} to {:.6g} J, {}", device.domain.device,
                    device.measured.energy.joules(), device.measured.low().joules(),
                    device.measured.high().joules(), to_string(device.measured.provenance))));
  }
  const std::int64_t energy = names.text("energy");
  names.write(profile);
  const ClockMap clocks(run.recording().clock_points);
  if (!run.recording().clock_points.empty()) {
    profile.add_int64(9, clocks.to_real((*activity)->front().begin).time_since_epoch().count());
  }
  profile.add_int64(10, longest.count());
  profile.add_packed_int64(13, comments.begin(), comments.end());
  profile.add_int64(14, energy);
  GzipStream packed(out);
  packed << bytes;
  packed.finish();
  return {};
}

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

Result<void> write_speedscope(const analysis::Run& run, const analysis::Part& part,
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

// Google's profile.proto (github.com/google/pprof/blob/main/proto/profile.proto), gzip: for
// `pprof -http` and Grafana's flame graphs. Its messages are written by their field numbers.
extern constinit const Format pprof_format{
    .name = "pprof",
    .extension = ".pb.gz",
    .shows = "joules by phase, layer and kernel, for pprof and Grafana",
    .is_packed = true,
    .write = write_pprof};

// A flame graph for speedscope.app (speedscope.app/file-format-schema.json), "sampled" profiles:
// one of energy and one of time for each device.
extern constinit const Format speedscope_format{.name = "speedscope",
                                                .extension = ".speedscope.json",
                                                .shows = "the same flame graph, for speedscope.app",
                                                .write = write_speedscope};

}  // namespace jouleprof::report
