#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "meters/cpu_model.h"
#include "meters/rapl/rapl_meter.h"

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
  std::vector<Place> seen, read;
  for (const Zone& zone : zones) {
    const auto is_in = [&](const std::vector<Place>& places) {
      return std::ranges::find(places, zone.place) != places.end();
    };
    if (is_in(seen) && !zone.is_mirror()) {
      const std::string why =
          fmt::format("{} has the name of another zone, and is not counted", zone.path);
      source.ignored.push_back({describe(zone.place), {Errc::kUnsupported, why}, ""});
      source.notices.push_back(fmt::format("{}: {}", describe(zone.place), why));
      continue;
    }
    if (!is_in(seen)) seen.push_back(zone.place);
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
      if (!is_in(read)) source.unreadable.push_back({zone.place, std::move(first.error())});
      continue;
    }
    std::erase_if(source.unreadable, [&](const auto& u) { return u.place == zone.place; });
    source.counters.push_back({zone.place, fmt::format("powercap:{}/energy_uj", zone.path),
                               traits_of(folder / zone.path), zone.is_mirror() && is_in(read),
                               [file] { return read_energy(file); }});
    read.push_back(zone.place);
  }
  if (seen.empty()) {
    const auto hidden = std::ranges::find_if(
        *paths, [&](const std::string& path) { return is_hidden(folder, path); });
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

namespace {

constexpr std::array<std::pair<std::string_view, model::DomainKind>, 5> kEvents{{
    {"energy-pkg", model::DomainKind::kCpu},
    {"energy-cores", model::DomainKind::kCpuCores},
    {"energy-gpu", model::DomainKind::kCpuUncore},
    {"energy-ram", model::DomainKind::kDram},
    {"energy-psys", model::DomainKind::kPlatform},
}};

// An open file descriptor, shared by the copies of the function that reads it.
std::shared_ptr<const int> own(int fd) {
  return {new int(fd), [](const int* p) {
            ::close(*p);
            delete p;
          }};
}

Result<Energy> read_count(int fd, double joules_per_count, const std::string& event) {
  std::uint64_t count = 0;
  const ssize_t n = ::read(fd, &count, sizeof count);
  const std::string what = fmt::format("cannot read perf event {}", event);
  if (n < 0) return system_failure(what, errno);
  if (n != sizeof count) return fail(Errc::kUnavailable, what + ": it ended");
  return Energy::joules(static_cast<double>(count) * joules_per_count);
}

// "0", "0,18" or "0-1,4".
std::vector<int> parse_cpus(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(trim(part), '-');
    const auto first = parse_integer(ends.front());
    const auto last = parse_integer(ends.back());
    if (!first || !last || ends.size() > 2 || *first < 0 || *last > 1'000'000) return {};
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

// The package of each of these CPUs, named as powercap names them.
std::map<int, std::string> name_packages(const std::filesystem::path& root,
                                         const std::vector<int>& cpus) {
  struct Location {
    long long package = 0;
    std::optional<long long> die;
  };
  std::map<int, Location> locations;
  std::map<long long, int> cpus_of_package;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const auto topology = root / fmt::format("sys/devices/system/cpu/cpu{}/topology", cpus[i]);
    const auto package = read_integer(topology / "physical_package_id");
    const auto die = read_integer(topology / "die_id");
    Location& location = locations[cpus[i]];
    location.package = package ? *package : static_cast<long long>(i);
    if (die) location.die = *die;
    ++cpus_of_package[location.package];
  }
  std::map<int, std::string> names;
  for (const auto& [cpu, at] : locations) {
    names[cpu] = fmt::format("package-{}", at.package);
    if (cpus_of_package[at.package] > 1 && at.die) names[cpu] += fmt::format("-die-{}", *at.die);
  }
  return names;
}

struct Event {
  std::uint64_t config = 0;
  double joules_per_count = 0;
};

Result<Event> read_event(const std::filesystem::path& file) {
  constexpr std::string_view kPrefix = "event=0x";
  auto text = read_attribute(file);
  if (!text) return forward_error(text);
  Event event;
  const char* end = text->data() + text->size();
  if (!text->starts_with(kPrefix) ||
      std::from_chars(text->data() + kPrefix.size(), end, event.config, 16).ptr != end) {
    return fail(Errc::kUnsupported,
                fmt::format("{} holds '{}', not event=0x...", file.string(), *text));
  }
  const auto unit = read_attribute(file.string() + ".unit");
  const auto scale = read_attribute(file.string() + ".scale");
  const auto factor = scale ? parse_number(*scale) : std::nullopt;
  if (!unit || *unit != "Joules" || !factor || *factor <= 0) {
    return fail(
        Errc::kUnsupported,
        fmt::format("{}.scale and .unit do not say how many joules a count is", file.string()));
  }
  event.joules_per_count = *factor;
  return event;
}

}  // namespace

Result<int> open_event(std::uint32_t type, std::uint64_t config, int cpu) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  const long fd = ::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return static_cast<int>(fd);
  return system_failure(
      fmt::format("cannot open perf event {:#x} of PMU {} on CPU {}", config, type, cpu), errno);
}

Result<Source> open_perf(const std::filesystem::path& root, const OpenEvent& open) {
  const auto pmu = root / "sys/bus/event_source/devices/power";
  auto type = read_integer(pmu / "type");
  if (!type) return forward_error(type);
  auto mask = read_attribute(pmu / "cpumask");
  if (!mask) return forward_error(mask);
  const std::vector<int> cpus = parse_cpus(*mask);
  if (cpus.empty()) {
    return fail(Errc::kCorrupt,
                fmt::format("{}/cpumask holds '{}', not a list of CPUs", pmu.string(), *mask));
  }
  const auto packages = name_packages(root, cpus);

  Source source;
  for (const auto& [event_name, kind] : kEvents) {
    const auto file = pmu / "events" / event_name;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    const auto event = read_event(file);
    for (const int cpu : cpus) {
      const bool is_psys = kind == model::DomainKind::kPlatform;
      // There is one platform, whichever package is asked.
      if (is_psys && cpu != cpus.front()) break;
      const Place place{kind, is_psys ? "" : packages.at(cpu)};
      if (!event) {
        source.unreadable.push_back({place, event.error()});
        continue;
      }
      auto fd = open(static_cast<std::uint32_t>(*type), event->config, cpu);
      if (!fd) {
        source.unreadable.push_back({place, std::move(fd.error())});
        continue;
      }
      const std::string name = fmt::format("perf:power/{}/", event_name);
      model::SensorTraits traits;
      traits.quantum = Energy::joules(event->joules_per_count);
      source.counters.push_back(
          {place, name, traits, false, [owned = own(*fd), scale = event->joules_per_count, name] {
             return read_count(*owned, scale, name);
           }});
    }
  }
  if (source.counters.empty() && source.unreadable.empty()) {
    return fail(Errc::kNotFound, fmt::format("no energy event in {}/events", pmu.string()));
  }
  return source;
}

void add_core_energies(Source& source, const std::filesystem::path& root, const OpenEvent& open) {
  const auto pmu = root / "sys/bus/event_source/devices/power_core";
  const auto type = read_integer(pmu / "type");
  const auto mask = read_attribute(pmu / "cpumask");
  const auto event = read_event(pmu / "events/energy-core");
  if (!type || !mask || !event) return;
  std::map<long long, std::vector<int>> cpus_of_package;
  for (const int cpu : parse_cpus(*mask)) {
    const auto topology = root / fmt::format("sys/devices/system/cpu/cpu{}/topology", cpu);
    const auto package = read_integer(topology / "physical_package_id");
    if (package) cpus_of_package[*package].push_back(cpu);
  }
  const std::string name = "perf:power_core/energy-core/";
  for (const auto& [number, cpus] : cpus_of_package) {
    const std::string socket = fmt::format("package-{}", number);
    std::vector<std::string> places;
    bool has_cores = false;
    for (const Counter& counter : source.counters) {
      const auto& package = counter.place.package;
      if (package != socket && !package.starts_with(socket + "-die-")) continue;
      if (counter.place.kind == model::DomainKind::kCpu) places.push_back(package);
      has_cores = has_cores || counter.place.kind == model::DomainKind::kCpuCores;
    }
    // Of several dies it is not known which has which core.
    if (places.size() != 1 || has_cores) continue;
    const Place place{model::DomainKind::kCpuCores, places.front()};
    std::vector<std::shared_ptr<const int>> fds;
    std::optional<Error> denied;
    for (const int cpu : cpus) {
      auto fd = open(static_cast<std::uint32_t>(*type), event->config, cpu);
      if (!fd) {
        denied = std::move(fd.error());
        break;
      }
      fds.push_back(own(*fd));
    }
    if (denied) {
      source.ignored.push_back({describe(place), std::move(*denied), ""});
      continue;
    }
    model::SensorTraits traits;
    traits.quantum = Energy::joules(event->joules_per_count);
    source.counters.push_back(
        {place, name, traits, false,
         [fds = std::move(fds), scale = event->joules_per_count, name]() -> Result<Energy> {
           Energy sum;
           for (const auto& fd : fds) {
             const auto energy = read_count(*fd, scale, name);
             if (!energy) return forward_error(energy);
             sum += *energy;
           }
           return sum;
         }});
  }
}

}  // namespace jouleprof::meters::rapl
