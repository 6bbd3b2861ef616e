#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/cli/doctor/doctor.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{1} << 16;

// Files of a hwmon chip: quantities, limits and labels; not ACPI's serial and model numbers.
const std::regex& chip_files() {
  static const std::regex kFiles(
      "name|label|update_interval|"
      "(power|energy|in|curr|temp|freq|fan|pwm)[0-9]+"
      "(_input|_average|_average_interval|_label|_oem_info|_enable|_cap|_max|_max_interval|_crit|"
      "_is_battery|_accuracy)?");
  return kFiles;
}

// Of a graphics board.
constexpr std::array<std::string_view, 9> kBoardFiles{"gpu_metrics",
                                                      "gpu_busy_percent",
                                                      "mem_busy_percent",
                                                      "mem_info_vram_used",
                                                      "mem_info_vram_total",
                                                      "product_name",
                                                      "vendor",
                                                      "device",
                                                      "power_dpm_force_performance_level"};
constexpr std::array<std::string_view, 3> kClockFiles{
    "gt/gt0/rps_act_freq_mhz", "tile0/gt0/freq0/act_freq", "tile0/gt0/freq0/max_freq"};
constexpr std::array<std::string_view, 5> kZoneFiles{"name", "energy_uj", "max_energy_range_uj",
                                                     "power_uw", "constraint_0_time_window_us"};
constexpr std::array<std::string_view, 5> kUeventKeys{
    "DRIVER=", "PCI_CLASS=", "PCI_ID=", "PCI_SUBSYS_ID=", "PCI_SLOT_NAME="};

class Tree {
 public:
  Tree(fs::path root, fs::path folder) : root_(std::move(root)), folder_(std::move(folder)) {}

  // Copies one file; what cannot be read is left out, as for the meters.
  void copy(const fs::path& from, const fs::path& to) {
    if (const auto text = read_file(root_ / from, kLargestFile)) write(to, *text);
  }
  void copy(const fs::path& file) { copy(file, file); }

  void write(const fs::path& file, std::string_view text) {
    std::error_code err;
    fs::create_directories((folder_ / file).parent_path(), err);
    if (auto done = replace_file(folder_ / file, text); !done && error_) error_ = done;
  }

  void link(const fs::path& file, const fs::path& target) {
    std::error_code err;
    fs::create_directories((folder_ / file).parent_path(), err);
    fs::create_directory_symlink(target, folder_ / file, err);
  }

  std::vector<std::string> names(const fs::path& of) const { return names_in(root_ / of); }
  const fs::path& root() const { return root_; }
  const Result<void>& error() const { return error_; }

 private:
  fs::path root_;
  fs::path folder_;
  Result<void> error_;
};

void copy_chip(Tree& tree, const fs::path& from, const fs::path& to) {
  for (const auto& name : tree.names(from)) {
    if (std::regex_match(name, chip_files())) tree.copy(from / name, to / name);
  }
}

void copy_board(Tree& tree, const fs::path& from, const fs::path& to) {
  for (const auto name : kBoardFiles) tree.copy(from / name, to / name);
  for (const auto name : kClockFiles) tree.copy(from / name, to / name);
  const auto uevent = read_file(tree.root() / from / "uevent", kLargestFile);
  if (!uevent) return;
  std::string kept;
  for (const auto line : split(*uevent, '\n')) {
    if (std::ranges::any_of(kUeventKeys,
                            [&](std::string_view key) { return line.starts_with(key); })) {
      kept.append(line) += '\n';
    }
  }
  tree.write(to / "uevent", kept);
}

void copy_sensors(Tree& tree) {
  const fs::path chips = "sys/class/hwmon";
  for (const auto& name : tree.names(chips)) {
    copy_chip(tree, chips / name, chips / name);
    const auto device = chips / name / "device";
    std::error_code err;
    const auto target = fs::read_symlink(tree.root() / device, err);
    if (err) continue;
    // Older drivers leave their inputs there.
    const auto place = fs::path("sys/devices") / target.filename();
    copy_chip(tree, device, place);
    copy_board(tree, device, place);
    tree.link(device, fs::path("../../../devices") / target.filename());
  }
  const fs::path cards = "sys/class/drm";
  for (const auto& name : tree.names(cards)) {
    if (!name.starts_with("card") || !parse_integer(std::string_view(name).substr(4))) continue;
    const auto device = cards / name / "device";
    copy_board(tree, device, device);
    for (const auto& chip : tree.names(device / "hwmon")) {
      copy_chip(tree, device / "hwmon" / chip, device / "hwmon" / chip);
    }
    for (const auto file : kClockFiles) tree.copy(cards / name / file);
  }
  const fs::path zones = "sys/class/powercap";
  for (const auto& name : tree.names(zones)) {
    for (const auto file : kZoneFiles) tree.copy(zones / name / file);
  }
  for (const char* unit : {"power", "power_core"}) {
    const auto pmu = fs::path("sys/bus/event_source/devices") / unit;
    for (const char* file : {"type", "cpumask"}) tree.copy(pmu / file);
    for (const auto& event : tree.names(pmu / "events")) tree.copy(pmu / "events" / event);
  }
  const fs::path cpus = "sys/devices/system/cpu";
  for (const auto& name : tree.names(cpus)) {
    if (!name.starts_with("cpu") || !parse_integer(std::string_view(name).substr(3))) continue;
    for (const char* file : {"physical_package_id", "die_id", "core_id"}) {
      tree.copy(cpus / name / "topology" / file);
    }
  }
  std::string model;
  if (const auto info = read_file(tree.root() / "proc/cpuinfo")) {
    for (const auto line : split(*info, '\n')) {
      if (line.empty()) break;  // one processor is enough
      for (const char* key :
           {"processor", "vendor_id", "cpu family", "model", "stepping", "flags"}) {
        if (line.starts_with(key)) {
          model.append(line) += '\n';
          break;
        }
      }
    }
  }
  tree.write("proc/cpuinfo", model);
}

std::string_view unit_of(const model::Sensor& sensor) {
  switch (sensor.kind) {
    case model::SensorKind::kEnergyCounter:
      return "uJ";
    case model::SensorKind::kGauge:
      return "";
    default:
      return "W";
  }
}

// Appends what was read. Times are seconds since the capture began.
void add_rows(const meters::Meter& meter, const model::Readings& readings, HostTime begin,
              std::string& out) {
  const auto row = [&](model::SensorId id, HostTime at, const std::string& value) {
    const auto& sensor = meter.sensors()[static_cast<std::size_t>(id)];
    const auto& domain = meter.domains()[static_cast<std::size_t>(sensor.domain)];
    out += fmt::format("{:.6f},{},{},{},{}\n", seconds(at - begin), csv_field(domain.device),
                       csv_field(sensor.name), value, unit_of(sensor));
  };
  for (const auto& r : readings.counters) {
    row(r.sensor, r.before + (r.after - r.before) / 2, fmt::format("{}", r.total.microjoules()));
  }
  for (const auto& r : readings.powers) row(r.sensor, r.at, shortest(r.power.watts()));
  for (const auto& r : readings.gauges) row(r.sensor, r.at, shortest(r.value));
}

// Tables whose layout or unit is not known yet are worth having whole.
void add_tables(const fs::path& root, HostTime begin, std::string& out) {
  for (const auto& name : names_in(root / "sys/class/drm")) {
    const auto table =
        read_file(root / "sys/class/drm" / name / "device/gpu_metrics", kLargestFile);
    if (!table) continue;
    out += fmt::format("{:.6f},{},gpu_metrics,", seconds(HostClock::now() - begin), name);
    for (const char byte : *table) {
      out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    out += ",hex\n";
  }
}

std::string readings_of(const meters::MeterSet& set, Duration time) {
  const HostTime begin = HostClock::now();
  std::string out = "seconds,device,sensor,value,unit\n";
  std::vector<meters::Meter*> all;
  for (const auto& meter : set.meters) all.push_back(meter.get());
  HostTime tables = begin;
  read_for(
      all, time,
      [&](meters::Meter& meter, const model::Readings& readings) {
        add_rows(meter, readings, begin, out);
      },
      [&] {
        if (HostClock::now() >= tables) {
          add_tables(meters::root_folder(), begin, out);
          tables += std::chrono::seconds{1};
        }
        return tables;
      });
  return out;
}

std::string describe(const meters::MeterSet& set) {
  std::string out;
  for (const auto& meter : set.meters) {
    for (const auto& domain : meter->domains()) {
      out += fmt::format("{} {} ({}){}\n", to_string(domain.kind), domain.device, domain.name,
                         domain.unavailable_reason.empty() ? "" : ": " + domain.unavailable_reason);
      for (const auto& sensor : meter->sensors()) {
        if (sensor.domain != domain.id) continue;
        out += fmt::format("  {} {}\n", to_string(sensor.kind), sensor.name);
      }
    }
  }
  for (const auto& missing : set.missing) {
    out += fmt::format("missing: {}: {}\n", missing.what, missing.error.message);
  }
  return out;
}

// Names that a message or a label may hold all the same.
std::string without_names(std::string text) {
  std::array<char, 256> host{};
  std::vector<std::string> names;
  if (::gethostname(host.data(), host.size() - 1) == 0) names.emplace_back(host.data());
  for (const char* variable : {"HOME", "USER", "LOGNAME"}) {
    if (const char* value = std::getenv(variable)) names.emplace_back(value);
  }
  for (const auto& name : names) {
    // A shorter one would hit words.
    if (name.size() < 3 || name == "root" || name == "/root") continue;
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
      text.replace(at, name.size(), "REDACTED");
    }
  }
  return std::regex_replace(
      text, std::regex("(GPU|MIG)-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
      "$1-REDACTED");
}

}  // namespace

void read_for(const std::vector<meters::Meter*>& meters, Duration time,
              const std::function<void(meters::Meter&, const model::Readings&)>& got,
              const std::function<HostTime()>& also) {
  struct Due {
    HostTime at{};
    meters::Meter* meter = nullptr;
    std::size_t probe = 0;
  };
  const HostTime begin = HostClock::now();
  std::vector<Due> due;
  for (meters::Meter* const meter : meters) {
    for (std::size_t i = 0; i < meter->probes().size(); ++i) due.push_back({begin, meter, i});
  }
  model::Readings readings;
  do {
    HostTime next = also ? also() : begin + time;
    for (Due& d : due) {
      if (HostClock::now() >= d.at) {
        readings.clear();
        d.at = std::max(d.meter->read(d.probe, readings), HostClock::now());
        got(*d.meter, readings);
      }
      next = std::min(next, d.at);
    }
    std::this_thread::sleep_until(
        std::chrono::steady_clock::time_point(std::min(next, begin + time).time_since_epoch()));
  } while (HostClock::now() - begin < time);
}

Result<void> capture(meters::MeterSet& meters, const fs::path& folder, Duration time) {
  std::error_code err;
  if (fs::exists(folder, err) && !fs::is_empty(folder, err)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--capture {}: give a folder that is new or empty", folder.string()));
  }
  fs::create_directories(folder, err);
  if (err) return system_failure("cannot make " + folder.string(), err.value());
  Tree tree(meters::root_folder(), folder);
  copy_sensors(tree);
  tree.write("sensors.txt", without_names(describe(meters)));
  tree.write("readings.csv", without_names(readings_of(meters, time)));
  return tree.error();
}

}  // namespace jouleprof::cli
