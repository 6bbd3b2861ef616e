#include "meters/all/open_meters.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/threads.h"
#include "meters/estimate/estimate_meter.h"
#include "meters/hwmon/hwmon_meter.h"
#include "meters/nvml/calibration/calibration_store.h"
#include "meters/nvml/calibration/level_store.h"
#include "meters/nvml/nvml_meter.h"
#include "meters/rapl/rapl_meter.h"

namespace jouleprof::meters {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Domains without a sensor: they are in every table, with the reason.
class AbsentMeter : public Meter {
 public:
  explicit AbsentMeter(std::vector<model::Domain> domains) {
    domains_ = std::move(domains);
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      domains_[i].id = static_cast<model::DomainId>(i);
    }
  }
  std::string name() const override { return "absent"; }
  HostTime read(std::size_t, model::Readings&) override { return HostTime::max(); }
};

// Longer than a driver takes that has to wake its GPUs up.
constexpr Duration kPatience = std::chrono::seconds{10};

// On a thread of its own: a driver that hangs in its first calls is left behind with that thread.
Result<std::unique_ptr<NvmlMeter>> open_nvml(const NvmlOptions& options) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable opened;
    std::optional<Result<std::unique_ptr<NvmlMeter>>> meter;
  };
  const auto shared = std::make_shared<Shared>();
  const auto open = [shared, options] {
    Result<std::unique_ptr<NvmlMeter>> meter;
    try {
      meter = NvmlMeter::open(options);
    } catch (const std::exception& e) {
      meter = fail(Errc::kUnavailable, e.what());
    }
    const std::lock_guard lock(shared->mutex);
    shared->meter = std::move(meter);
    shared->opened.notify_all();
  };
  try {
    start_without_signals(open).detach();
  } catch (const std::system_error&) {  // no more threads
    return NvmlMeter::open(options);
  }
  std::unique_lock lock(shared->mutex);
  const auto end = steady(HostClock::now() + kPatience);
  if (!shared->opened.wait_until(lock, end, [&shared] { return shared->meter.has_value(); })) {
    return fail(Errc::kTimeout,
                "the NVIDIA driver has not answered for 10 s; see whether nvidia-smi answers, and "
                "reset or reload the driver");
  }
  return std::move(*shared->meter);
}

struct Collector {
  MeterSet set;

  template <typename M>
  void add(Result<std::unique_ptr<M>> meter, std::string what, std::string fix = {}) {
    if (!meter) {
      set.missing.push_back({std::move(what), std::move(meter.error()), std::move(fix)});
      return;
    }
    const auto& missing = (*meter)->missing();
    set.missing.insert(set.missing.end(), missing.begin(), missing.end());
    set.meters.push_back(std::move(*meter));
  }

  bool has(model::DomainKind kind, bool with_sensor) const {
    for (const auto& meter : set.meters) {
      for (const auto& domain : meter->domains()) {
        if (domain.kind != kind) continue;
        const auto& sensors = meter->sensors();
        if (!with_sensor || std::any_of(sensors.begin(), sensors.end(), [&](const auto& s) {
              return s.domain == domain.id && s.kind != model::SensorKind::kGauge;
            })) {
          return true;
        }
      }
    }
    return false;
  }
};

}  // namespace

bool MeterSet::can_measure() const {
  return std::any_of(meters.begin(), meters.end(), [](const auto& meter) {
    const auto& sensors = meter->sensors();
    return std::any_of(sensors.begin(), sensors.end(), [](const model::Sensor& s) {
      return s.kind != model::SensorKind::kGauge && s.provenance != model::Provenance::kEstimated;
    });
  });
}

Result<MeterSet> open_meters(const MeterOptions& options) {
  Collector all;
  std::filesystem::path root = environment("JOULEPROF_ROOT");
  if (root.empty()) root = "/";

  NvmlOptions nvml;
  nvml.library = environment("JOULEPROF_NVML_LIBRARY");
  nvml.demand = options.demand;
  nvml.calibrations = nvml::read_calibrations();
  nvml.levels = nvml::read_levels();
  nvml.devices = options.devices;
  auto gpus = open_nvml(nvml);
  if (!gpus && gpus.error().code == Errc::kInvalidArgument) return forward_error(gpus);
  const std::string no_gpu = gpus ? "" : gpus.error().message;
  all.add(std::move(gpus), "NVIDIA GPUs (NVML)");

  all.add(RaplMeter::open({.root = root, .demand = options.demand}), "CPU energy (RAPL)");
  all.add(HwmonMeter::open({.root = root, .demand = options.demand}),
          "other power sensors (hwmon)");
  if (!all.has(model::DomainKind::kCpu, true)) {
    all.add(
        EstimateMeter::open({.root = root, .demand = options.demand, .cpu_tdp = options.cpu_tdp}),
        "an estimate of the CPU's power");
  }

  std::vector<model::Domain> absent;
  if (!all.has(model::DomainKind::kGpu, false) && !all.has(model::DomainKind::kModule, false)) {
    model::Domain gpu;
    gpu.kind = model::DomainKind::kGpu;
    gpu.device = "gpu";
    gpu.unavailable_reason = no_gpu.empty() ? "no GPU sensor was found" : no_gpu;
    absent.push_back(std::move(gpu));
  }
  if (!all.has(model::DomainKind::kDram, false)) {
    model::Domain dram;
    dram.kind = model::DomainKind::kDram;
    dram.device = "dram";
    dram.unavailable_reason = "no DRAM sensor: this processor has none, or RAPL cannot be read";
    absent.push_back(std::move(dram));
  }
  if (!absent.empty()) all.set.meters.push_back(std::make_unique<AbsentMeter>(std::move(absent)));
  return std::move(all.set);
}

}  // namespace jouleprof::meters
