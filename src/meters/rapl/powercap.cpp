#include "meters/rapl/powercap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "meters/cpu_model.h"

namespace jouleprof::meters::rapl {
namespace {

constexpr std::int64_t kRegisterMax = 0xffff'ffff;

struct Zone {
  std::string path;  // within /sys/class/powercap: "intel-rapl:0:1"
  Place place;

  // Registers reached through memory (MMIO) mirror those of the package's MSR.
  bool is_mirror() const { return path.find("-mmio") != std::string::npos; }
};

std::optional<model::DomainKind> kind_of(std::string_view name) {
  if (name.starts_with("package-")) return model::DomainKind::kCpu;
  if (name == "core") return model::DomainKind::kCpuCores;
  if (name == "uncore") return model::DomainKind::kCpuUncore;
  if (name == "dram") return model::DomainKind::kDram;
  if (name == "psys") return model::DomainKind::kPlatform;
  return std::nullopt;
}

std::optional<Zone> read_zone(const std::filesystem::path& folder, const std::string& path) {
  // Control types ("intel-rapl") and zones without a counter (dtpm) stand in the same folder.
  std::error_code ignored;
  if (!std::filesystem::exists(folder / path / "energy_uj", ignored)) return std::nullopt;
  const auto name = read_attribute(folder / path / "name");
  if (!name) return std::nullopt;
  const auto kind = kind_of(*name);
  if (!kind) return std::nullopt;

  Zone zone{path, {*kind, ""}};
  if (kind == model::DomainKind::kCpu) {
    zone.place.package = *name;
  } else if (kind != model::DomainKind::kPlatform) {
    const auto parent = read_attribute(folder / path.substr(0, path.rfind(':')) / "name");
    if (!parent || !parent->starts_with("package-")) return std::nullopt;
    zone.place.package = *parent;
  }
  return zone;
}

// A container runtime masks /sys/devices/virtual/powercap by an empty folder: the links to the
// zones then lead nowhere.
bool is_hidden(const std::filesystem::path& folder, const std::string& path) {
  std::error_code ignored;
  return path.starts_with("intel-rapl") && std::filesystem::is_symlink(folder / path, ignored) &&
         !std::filesystem::exists(folder / path, ignored);
}

Result<Energy> read_energy(const std::filesystem::path& file) {
  const auto value = read_integer(file);
  if (!value) return tl::unexpected(value.error());
  if (*value < 0) {
    return fail(Errc::kCorrupt, fmt::format("{} holds {}, not an energy", file.string(), *value));
  }
  return Energy::microjoules(*value);
}

model::SensorTraits traits_of(const std::filesystem::path& zone) {
  model::SensorTraits traits;
  const auto max = read_integer(zone / "max_energy_range_uj");
  if (max && *max > 0) {
    traits.wrap = wrap_of(Energy::microjoules(*max));
    traits.quantum = *traits.wrap - Energy::microjoules(*max);
  }
  return traits;
}

}  // namespace

Energy wrap_of(Energy max_energy_range) {
  const std::int64_t max = max_energy_range.microjoules();
  const std::int64_t unit = (max + kRegisterMax / 2) / kRegisterMax;
  return Energy::microjoules(max + unit);
}

Result<Source> open_powercap(const std::filesystem::path& root) {
  const auto folder = root / "sys/class/powercap";
  auto paths = list_folder(folder);
  if (!paths) return forward_error(paths);

  std::vector<Zone> zones;
  for (const std::string& path : *paths) {
    if (auto zone = read_zone(folder, path)) zones.push_back(std::move(*zone));
  }
  std::stable_partition(zones.begin(), zones.end(), [](const Zone& z) { return !z.is_mirror(); });

  const bool is_amd = read_cpu_model(root).is_amd();
  Source source;
  std::vector<Place> seen;
  for (const Zone& zone : zones) {
    if (std::find(seen.begin(), seen.end(), zone.place) != seen.end()) continue;
    seen.push_back(zone.place);
    if (is_amd && zone.place.kind == model::DomainKind::kCpuCores) {
      // The register is one core's, and the kernel reads it on one CPU of the package only.
      source.ignored.push_back(
          {describe(zone.place),
           {Errc::kUnsupported, "on AMD processors this counter is that of a single core"},
           ""});
      continue;
    }
    const auto file = folder / zone.path / "energy_uj";
    if (auto first = read_energy(file); !first) {
      source.unreadable.push_back({zone.place, std::move(first.error())});
      continue;
    }
    source.counters.push_back({zone.place, fmt::format("powercap:{}/energy_uj", zone.path),
                               traits_of(folder / zone.path),
                               [file] { return read_energy(file); }});
  }
  if (seen.empty()) {
    const auto hidden = std::find_if(paths->begin(), paths->end(), [&](const std::string& path) {
      return is_hidden(folder, path);
    });
    if (hidden != paths->end()) {
      return fail(
          Errc::kUnavailable,
          fmt::format("{} is there, but its files are hidden: container runtimes mask them; "
                      "mount /sys/devices/virtual/powercap into the container, or run outside",
                      (folder / *hidden).string()));
    }
    return fail(Errc::kNotFound, fmt::format("no RAPL zone in {}", folder.string()));
  }
  return source;
}

}  // namespace jouleprof::meters::rapl
