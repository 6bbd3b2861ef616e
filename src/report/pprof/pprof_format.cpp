// Google's profile.proto (github.com/google/pprof/blob/main/proto/profile.proto), gzip: for
// `pprof -http` and Grafana's flame graphs. Its messages are written by their field numbers.
#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/gzip/gzip.h"
#include "report/activity/activity.h"
#include "report/format/format.h"

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

Result<void> write(const analysis::Run& run, const analysis::Part& part,
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

}  // namespace

extern const Format pprof_format;
constinit const Format pprof_format{
    .name = "pprof",
    .extension = ".pb.gz",
    .shows = "joules by phase, layer and kernel, for pprof and Grafana",
    .is_packed = true,
    .write = write};

}  // namespace jouleprof::report
