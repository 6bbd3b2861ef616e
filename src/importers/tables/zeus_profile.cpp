// The profile that Zeus's GlobalPowerLimitOptimizer writes: a list of power limits with the joules
// of all GPUs and the seconds of the same steps. Each becomes a window.
#include <fmt/format.h>

#include <cmath>

#include "base/json/json_reader.h"
#include "importers/builder.h"
#include "importers/importer.h"

namespace jouleprof::importers {
namespace {

Result<model::Recording> read_zeus_profile(std::span<const SourceText> sources,
                                           const ImportOptions&) {
  const SourceText& source = sources.front();
  const auto document = parse_json(source.text, source.path, Errc::kCorrupt);
  if (!document) return forward_error(document);
  RecordingBuilder builder("zeus-profile");
  const auto domain = builder.add_domain(model::DomainKind::kGpu, "gpu0", "GPUs of the profile");
  builder.domain(domain).unavailable_reason =
      "the file holds the energy of whole steps, not the course of power";
  auto& windows = builder.recording().imported_windows;
  JsonErrors errors{source.path, {}, Errc::kCorrupt};
  JsonReader reader(*document, "", errors);
  reader.each(
      "measurements",
      [&](JsonReader& entry) {
        double watts = 0, joules = 0, time = 0;
        entry.require("power_limit", watts, {1, 1e5});
        entry.require("energy", joules, {1e-6, 1e12});
        entry.require("time", time, {1e-9, 1e9});
        model::ImportedWindow window;
        window.name = "profiled steps";
        window.duration = duration_of(time);
        window.energies.push_back({domain, Energy::joules(joules)});
        window.labels.push_back({"power_limit_watts", fmt::format("{:g}", watts)});
        windows.push_back(std::move(window));
      },
      true);
  if (errors.first) return tl::unexpected(*errors.first);
  if (windows.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: a profile without measurements", source.path));
  }
  builder.warn("the profile does not say which GPU and which work it is of");
  return std::move(builder).take();
}

bool recognises_zeus_profile(std::string_view text) {
  const std::string_view begin = text.substr(0, 500);
  return begin.find("\"measurements\"") != std::string_view::npos &&
         begin.find("\"power_limit\"") != std::string_view::npos;
}

}  // namespace

const Importer kZeusProfileImporter{{"zeus-profile", "Zeus's profile of power limits (JSON)"},
                                    false,
                                    recognises_zeus_profile,
                                    read_zeus_profile};

}  // namespace jouleprof::importers
