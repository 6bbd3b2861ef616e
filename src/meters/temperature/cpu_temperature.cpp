#include "meters/temperature/cpu_temperature.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::meters {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackageLabel = "Package id ";
constexpr double kColdest = -40;
constexpr double kHottest = 150;

// The folder with a chip's inputs: older drivers leave them in the device's own.
fs::path folder_of(const fs::path& hwmon) {
  for (const auto& folder : {hwmon, hwmon / "device"}) {
    if (read_attribute(folder / "name")) return folder;
  }
  return {};
}

// Labels of a chip's temperatures with the files that hold them, in the order of their names.
std::vector<std::pair<std::string, fs::path>> labelled(const fs::path& folder) {
  std::vector<std::pair<std::string, fs::path>> found;
  for (const std::string& name : list_folder(folder).value_or(std::vector<std::string>{})) {
    if (!name.starts_with("temp") || !name.ends_with("_label")) continue;
    const auto label = read_attribute(folder / name);
    const std::string input = name.substr(0, name.size() - 5) + "input";
    if (label) found.emplace_back(*label, folder / input);
  }
  return found;
}

std::optional<CpuTemperature> of_coretemp(const fs::path& folder) {
  for (const auto& [label, file] : labelled(folder)) {
    if (!label.starts_with(kPackageLabel)) continue;
    const auto number = parse_integer(label.substr(kPackageLabel.size()));
    if (number && *number >= 0 && *number < 1024) {
      return CpuTemperature{file, static_cast<int>(*number)};
    }
  }
  return std::nullopt;
}

std::optional<fs::path> of_k10temp(const fs::path& folder) {
  std::optional<fs::path> control;
  for (const auto& [label, file] : labelled(folder)) {
    if (label == "Tdie") return file;
    if (label == "Tctl") control = file;
  }
  return control;
}

// Physical ids of the packages that have a processor online.
std::vector<int> packages(const fs::path& root) {
  std::set<int> ids;
  const auto folder = root / "sys/devices/system/cpu";
  for (const std::string& name : list_folder(folder).value_or(std::vector<std::string>{})) {
    if (!name.starts_with("cpu") || !parse_integer(name.substr(3))) continue;
    const auto id = read_integer(folder / name / "topology/physical_package_id");
    if (id && *id >= 0 && *id < 1024) ids.insert(static_cast<int>(*id));
  }
  return {ids.begin(), ids.end()};
}

// Nodes of a processor follow each other, so that equal shares of the chips belong to each.
void assign(std::vector<CpuTemperature>& chips, const std::vector<int>& packages) {
  if (chips.empty() || packages.empty() || chips.size() % packages.size() != 0) return;
  const std::size_t each = chips.size() / packages.size();
  for (std::size_t i = 0; i < chips.size(); ++i) chips[i].package = packages[i / each];
}

}  // namespace

std::vector<CpuTemperature> find_cpu_temperatures(const fs::path& root) {
  std::vector<CpuTemperature> found;
  std::vector<std::pair<std::string, fs::path>> amd;  // with their addresses on the bus
  const auto chips = root / "sys/class/hwmon";
  for (const std::string& name : list_folder(chips).value_or(std::vector<std::string>{})) {
    const auto folder = folder_of(chips / name);
    if (folder.empty()) continue;
    const auto driver = read_attribute(folder / "name").value_or("");
    if (driver == "coretemp") {
      if (auto chip = of_coretemp(folder)) found.push_back(std::move(*chip));
    } else if (driver == "k10temp") {
      std::error_code err;
      const auto device = fs::read_symlink(chips / name / "device", err);
      if (const auto file = of_k10temp(folder)) {
        amd.emplace_back(err ? name : device.filename().string(), *file);
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.package < b.package; });
  const auto ids = packages(root);
  if (found.empty() && !amd.empty()) {
    std::sort(amd.begin(), amd.end());
    for (const auto& [address, file] : amd) found.push_back({file, std::nullopt});
    assign(found, ids);
  }
  if (!found.empty()) return found;
  const auto zones = root / "sys/class/thermal";
  for (const std::string& name : list_folder(zones).value_or(std::vector<std::string>{})) {
    if (read_attribute(zones / name / "type").value_or("") != "x86_pkg_temp") continue;
    found.push_back({zones / name / "temp", std::nullopt});
  }
  // Of several zones none states its package.
  if (found.size() == 1 && ids.size() == 1) found.front().package = ids.front();
  return found;
}

Result<double> read_celsius(const fs::path& file) {
  const auto value = read_integer(file);
  if (!value) return forward_error(value);
  const double celsius = static_cast<double>(*value) * 1e-3;
  if (celsius >= kColdest && celsius <= kHottest) return celsius;
  return fail(Errc::kCorrupt, fmt::format("{} holds {} degrees Celsius, which no processor has",
                                          file.string(), celsius));
}

}  // namespace jouleprof::meters
