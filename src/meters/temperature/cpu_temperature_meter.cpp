#include "meters/temperature/cpu_temperature_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "model/device/sensor.h"

namespace jouleprof::meters {
namespace {

constexpr Duration kUsualPeriod = std::chrono::milliseconds{900};
constexpr Duration kShortestPeriod = std::chrono::milliseconds{100};

Duration period_of(const Demand& demand) {
  return demand.state_period > Duration{} ? std::max(demand.state_period, kShortestPeriod)
                                          : kUsualPeriod;
}

// "package-1-die-0" is of package 1.
bool is_of(const model::Domain& domain, int package) {
  const std::string name = fmt::format("package-{}", package);
  return domain.device == name || domain.device.starts_with(name + "-");
}

using Files = std::vector<std::filesystem::path>;

class CpuTemperatureMeter : public Meter {
 public:
  CpuTemperatureMeter(std::unique_ptr<Meter> inner, Duration period) : inner_(std::move(inner)) {
    domains_ = inner_->domains();
    sensors_ = inner_->sensors();
    missing_ = inner_->missing();
    probes_ = inner_->probes();
    // No sensors means any sensor, of which there will be others.
    for (Probe& probe : probes_) {
      if (!probe.sensors.empty()) continue;
      for (const auto& sensor : sensors_) probe.sensors.push_back(sensor.id);
    }
    probes_.push_back({"CPU temperature", period});
  }

  void add(model::DomainId domain, Files files) {
    const auto sensor =
        add_sensor(domain, model::SensorKind::kGauge, std::string(model::gauge::kTemperature)).id;
    probes_.back().sensors.push_back(sensor);
    gauges_.push_back({sensor, std::move(files)});
  }

  std::string name() const override { return inner_->name(); }

  HostTime read(std::size_t index, model::Readings& out) override {
    if (index + 1 < probes_.size()) return inner_->read(index, out);
    const HostTime begin = HostClock::now();
    for (const Gauge& gauge : gauges_) read(gauge, out);
    return begin + probes_.back().period;
  }

  void set_demand(const Demand& demand) override {
    inner_->set_demand(demand);
    for (std::size_t i = 0; i + 1 < probes_.size(); ++i) {
      probes_[i].period = inner_->probes()[i].period;
    }
    probes_.back().period = period_of(demand);
  }

  std::vector<std::string> take_notices() override { return inner_->take_notices(); }

  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override {
    return inner_->read_processes(out);
  }

 private:
  struct Gauge {
    model::SensorId sensor{};
    Files files;
  };

  // The hottest is known only where all answer.
  static void read(const Gauge& gauge, model::Readings& out) {
    std::optional<double> hottest;
    for (const auto& file : gauge.files) {
      auto celsius = read_celsius(file);
      if (!celsius) {
        out.failures.push_back({gauge.sensor, HostClock::now(), std::move(celsius.error())});
        return;
      }
      hottest = std::max(hottest.value_or(*celsius), *celsius);
    }
    if (hottest) out.gauges.push_back({gauge.sensor, HostClock::now(), *hottest});
  }

  std::unique_ptr<Meter> inner_;
  std::vector<Gauge> gauges_;
};

}  // namespace

std::unique_ptr<Meter> with_cpu_temperatures(std::unique_ptr<Meter> meter,
                                             const CpuTemperatureOptions& options) {
  std::vector<std::pair<model::DomainId, Files>> found;
  std::vector<CpuTemperature> chips;
  for (const auto& chip : find_cpu_temperatures(options.root)) {
    if (read_celsius(chip.file)) chips.push_back(chip);
  }
  for (const auto& domain : meter->domains()) {
    if (domain.kind != model::DomainKind::kCpu || domain.parent) continue;
    const auto& sensors = meter->sensors();
    const bool is_estimate = std::ranges::any_of(sensors, [&](const auto& s) {
      return s.domain == domain.id && s.provenance == model::Provenance::kEstimated;
    });
    Files files;
    for (const auto& chip : chips) {
      if (is_estimate || (chip.package && is_of(domain, *chip.package))) files.push_back(chip.file);
    }
    if (!files.empty()) found.emplace_back(domain.id, std::move(files));
  }
  if (found.empty()) return meter;
  auto out = std::make_unique<CpuTemperatureMeter>(std::move(meter), period_of(options.demand));
  for (auto& [domain, files] : found) out->add(domain, std::move(files));
  return out;
}

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
  for (const std::string& name : names_in(folder)) {
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
  for (const std::string& name : names_in(folder)) {
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
  for (const std::string& name : names_in(chips)) {
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
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.package < b.package; });
  const auto ids = packages(root);
  if (found.empty() && !amd.empty()) {
    std::ranges::sort(amd);
    for (const auto& [address, file] : amd) found.push_back({file, std::nullopt});
    assign(found, ids);
  }
  if (!found.empty()) return found;
  const auto zones = root / "sys/class/thermal";
  for (const std::string& name : names_in(zones)) {
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
