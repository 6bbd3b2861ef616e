#include "meters/all/open_meters.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/threads.h"
#include "base/say.h"
#include "meters/estimate/estimate_meter.h"
#include "meters/hwmon/hwmon_meter.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/gpu.h"
#include "meters/nvml/nvml_meter.h"
#include "meters/rapl/rapl_meter.h"
#include "meters/shared/shared_meter.h"
#include "meters/temperature/cpu_temperature_meter.h"
#include "meters/vendor/vendor_meter.h"
#include "meters/wall/wall_source.h"

namespace jouleprof::meters {
namespace {

namespace fs = std::filesystem;

// Domains without a sensor: they are in every table, with the reason.
class AbsentMeter : public Meter {
 public:
  AbsentMeter(std::vector<model::Domain> domains, std::vector<std::string> notices)
      : notices_(std::move(notices)) {
    domains_ = std::move(domains);
    for (std::size_t i = 0; i < domains_.size(); ++i) {
      domains_[i].id = static_cast<model::DomainId>(i);
    }
  }
  std::string name() const override { return "absent"; }
  HostTime read(std::size_t, model::Readings&) override { return HostTime::max(); }
  std::vector<std::string> take_notices() override { return std::exchange(notices_, {}); }

 private:
  std::vector<std::string> notices_;
};

model::Domain domain_without_sensor(model::DomainKind kind, std::string device,
                                    std::string reason) {
  model::Domain domain;
  domain.kind = kind;
  domain.device = std::move(device);
  domain.unavailable_reason = std::move(reason);
  return domain;
}

// Longer than a driver takes that has to wake its GPUs up.
constexpr Duration kPatience = std::chrono::seconds{10};

// What `open` opens, on a thread of its own: a driver that hangs is left behind with that thread,
// and with `open`. `what` has then not answered, and `fix` is what to do.
template <typename Open>
std::invoke_result_t<Open> open_in_time(Open open, std::string_view what, std::string_view fix) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable opened;
    std::optional<std::invoke_result_t<Open>> result;
  };
  const auto shared = std::make_shared<Shared>();
  const auto finish = [shared](std::invoke_result_t<Open> result) {
    const std::lock_guard lock(shared->mutex);
    shared->result = std::move(result);
    shared->opened.notify_all();
  };
  auto thread = start_thread([finish, open] { finish(open()); },
                             [finish](const char* why) { finish(fail(Errc::kUnavailable, why)); });
  if (!thread) return open();
  thread->detach();
  std::unique_lock lock(shared->mutex);
  const auto end = steady(HostClock::now() + kPatience);
  if (!shared->opened.wait_until(lock, end, [&shared] { return shared->result.has_value(); })) {
    return fail(Errc::kTimeout,
                fmt::format("{} has not answered for {:g} s; {}", what, seconds(kPatience), fix));
  }
  return std::move(*shared->result);
}

// The same of what reads the kernel's files in `folder`.
template <typename Open>
std::invoke_result_t<Open> open_files_in_time(Open open, const fs::path& folder) {
  return open_in_time(std::move(open), "a file in " + folder.string(),
                      "see which one `cat` waits for, and reload its driver");
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
        if (!with_sensor || std::ranges::any_of(sensors, [&](const auto& s) {
              return s.domain == domain.id && s.kind != model::SensorKind::kGauge;
            })) {
          return true;
        }
      }
    }
    return false;
  }
};

// GPUs that /sys does not show: in some containers, and where the driver is not the kernel's. A
// library that finds none is no trouble, unless it was named. Returns why libraries failed.
std::vector<Error> add_vendors(Collector& all, const Demand& demand) {
  std::vector<Error> failed;
  const auto shows = [&](std::initializer_list<std::string_view> drivers) {
    for (const auto& meter : all.set.meters) {
      for (const auto& domain : meter->domains()) {
        for (const auto driver : drivers) {
          if (domain.device.starts_with(driver)) return true;
        }
      }
    }
    return false;
  };
  const auto add = [&](auto open, const char* variable, const char* what) {
    const std::string library = environment(variable);
    auto meter = open_in_time(
        [=] {
          return open({library, demand});
        },
        what, "reset the GPU, or reload its driver");
    if (!meter && meter.error().code == Errc::kNotFound && library.empty()) return;
    if (!meter) failed.push_back(meter.error());
    all.add(std::move(meter), what);
  };
  if (!shows({"amdgpu-", "radeon-"})) {
    add(VendorMeter::open_amd, "JOULEPROF_AMDSMI_LIBRARY", "libamd_smi");
  }
  if (!shows({"xe-", "i915-"})) {
    add(VendorMeter::open_intel, "JOULEPROF_LEVEL_ZERO_LIBRARY", "Level Zero");
  }
  return failed;
}

Result<MeterSet> open_own(const MeterOptions& options, std::vector<std::string> notices) {
  Collector all;
  const std::filesystem::path root = root_folder();

  NvmlOptions nvml;
  nvml.library = environment("JOULEPROF_NVML_LIBRARY");
  nvml.demand = options.demand;
  nvml.calibrations = nvml::read_calibrations();
  nvml.levels = nvml::read_levels();
  nvml.devices = options.devices;
  auto gpus = open_in_time([nvml] { return NvmlMeter::open(nvml); }, "the NVIDIA driver",
                           "see whether nvidia-smi answers, and reset or reload the driver");
  if (!gpus && gpus.error().code == Errc::kInvalidArgument) return forward_error(gpus);
  if (gpus) all.set.gpu_driver = (*gpus)->driver_version();
  std::string no_gpu = gpus ? "" : gpus.error().message;
  bool gpus_failed = !gpus && gpus.error().code != Errc::kNotFound;  // GPUs may be there
  all.add(std::move(gpus), "NVIDIA GPUs (NVML)");

  const auto guest_file = options.guest_file.empty()
                              ? std::filesystem::path(environment("JOULEPROF_GUEST_FILE"))
                              : options.guest_file;
  if (guest_file.empty()) {
    all.add(open_files_in_time(
                [rapl = RaplOptions{.root = root, .demand = options.demand}] {
                  return RaplMeter::open(rapl);
                },
                root / "sys/class/powercap"),
            "CPU energy (RAPL)");
  } else {
    auto guest = open_in_time([guest_file] { return GuestMeter::open({.file = guest_file}); },
                              guest_file.string(), "see whether its file system does");
    if (!guest) {
      notices.push_back("the host's share of the energy is not used: " + guest.error().message);
    }
    all.add(std::move(guest), "the host's share of the energy (--guest-file)");
  }
  auto others = open_files_in_time(
      [hwmon = HwmonOptions{.root = root,
                            .demand = options.demand,
                            .has_cpu = all.has(model::DomainKind::kCpu, true)}] {
        return HwmonMeter::open(hwmon);
      },
      root / "sys/class/hwmon");
  const bool has_chips = others || others.error().code != Errc::kTimeout;
  all.add(std::move(others), "other power sensors (hwmon)");
  for (const Error& why : add_vendors(all, options.demand)) {
    gpus_failed |= why.code == Errc::kTimeout;
    no_gpu = no_gpu.empty() ? why.message : why.message + "; " + no_gpu;
  }
  std::string no_estimate;
  if (!all.has(model::DomainKind::kCpu, true)) {
    auto estimate = EstimateMeter::open({.root = root,
                                         .demand = options.demand,
                                         .cpu_tdp = options.cpu_tdp,
                                         .has_dram = all.has(model::DomainKind::kDram, false)});
    if (!estimate) no_estimate = estimate.error().message;
    all.add(std::move(estimate), "an estimate of the CPU's power");
  }
  for (auto& meter : all.set.meters) {
    if (!has_chips) break;  // their files would hang again
    meter = with_cpu_temperatures(std::move(meter), {.root = root, .demand = options.demand});
  }

  std::vector<model::Domain> absent;
  const bool has_gpu =
      all.has(model::DomainKind::kGpu, false) || all.has(model::DomainKind::kModule, false);
  if (gpus_failed || !has_gpu) {
    absent.push_back(domain_without_sensor(model::DomainKind::kGpu, has_gpu ? "other-gpus" : "gpu",
                                           no_gpu.empty() ? "no GPU sensor was found" : no_gpu));
  }
  if (!all.has(model::DomainKind::kCpu, false)) {
    absent.push_back(domain_without_sensor(model::DomainKind::kCpu, "cpu",
                                           "no CPU sensor, and no estimate: " + no_estimate));
  }
  if (!all.has(model::DomainKind::kDram, false)) {
    absent.push_back(
        domain_without_sensor(model::DomainKind::kDram, "dram",
                              "no DRAM sensor: this processor has none, or RAPL cannot be read"));
  }
  if (!absent.empty() || !notices.empty()) {
    all.set.meters.push_back(std::make_unique<AbsentMeter>(std::move(absent), std::move(notices)));
  }
  return std::move(all.set);
}

// The NVIDIA GPUs that the driver shows to this program: in a container, or in a job of a
// scheduler, fewer than the machine has.
std::set<std::string> own_gpus() {
  std::set<std::string> uuids;
  const auto nvml = nvml::open_nvml(environment("JOULEPROF_NVML_LIBRARY"));
  if (!nvml) return uuids;
  if (const auto gpus = nvml::list_gpus(**nvml)) {
    for (const auto& gpu : *gpus) {
      uuids.insert(gpu.uuid);
      for (const auto& mig : gpu.mig_devices) uuids.insert(mig.uuid);
    }
  }
  return uuids;
}

Result<MeterSet> open_shared(const MeterOptions& options, const std::filesystem::path& path) {
  SharedOptions shared{.path = path,
                       .demand = options.demand,
                       .process_period = options.process_period,
                       .can_use = {},
                       .open_own = {}};
  shared.can_use =
      [uuids = std::optional<std::set<std::string>>()](const model::Domain& domain) mutable {
        if (!domain.uuid.starts_with("GPU-") && !domain.uuid.starts_with("MIG-")) return true;
        if (!uuids) uuids = own_gpus();
        return uuids->contains(domain.uuid);
      };
  shared.open_own = [options] {
    auto own = open_own(options, {});
    return own ? std::move(own->meters) : std::vector<std::unique_ptr<Meter>>{};
  };
  auto meter = SharedMeter::open(std::move(shared));
  if (!meter) return forward_error(meter);
  MeterSet set;
  set.meters.push_back(std::move(*meter));
  set.is_of_service = true;
  return set;
}

// Where to look for a service that shares its sensors: what JOULEPROF_SERVICE names ("off":
// nowhere); else kServiceSocket in ROOT/run or XDG_RUNTIME_DIR, the first that exists, unless
// JOULEPROF_NVML_LIBRARY names other devices. Empty: nowhere.
std::filesystem::path shared_socket() {
  if (const std::string named = environment(kServiceVariable); !named.empty()) {
    return named == "off" ? "" : named;
  }
  if (!environment("JOULEPROF_NVML_LIBRARY").empty()) return {};
  std::vector<std::filesystem::path> folders{root_folder() / "run"};
  if (const std::string own = environment("XDG_RUNTIME_DIR"); !own.empty()) folders.push_back(own);
  for (const auto& folder : folders) {
    const auto path = folder / kServiceSocket;
    std::error_code ignored;
    if (std::filesystem::is_socket(path, ignored)) return path;
  }
  return {};
}

Result<MeterSet> open_without_wall(const MeterOptions& options) {
  const auto path = options.use_service ? shared_socket() : std::filesystem::path();
  if (path.empty()) return open_own(options, {});
  auto shared = open_shared(options, path);
  if (shared) return shared;
  // A service that has ended, or that is not for this user, is no trouble unless it was named.
  const bool is_usual =
      shared.error().code == Errc::kNotFound || shared.error().code == Errc::kPermissionDenied;
  std::vector<std::string> notices;
  if (!is_usual || !environment(kServiceVariable).empty()) {
    notices.push_back(shared.error().message + "; jouleprof reads the sensors itself");
  }
  return open_own(options, std::move(notices));
}

constexpr std::size_t kUuidLength = 96;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Without a driver the library would start a helper that loads it.
bool has_driver() {
  return is_there("/proc/driver/nvidia/version") || is_there("/dev/dxg") ||
         is_there("/dev/nvhost-ctrl");
}

bool is_gpu(const std::string& name) { return name.starts_with("GPU-"); }

void add_gpus(std::set<std::string>& out) {
  const std::string library = environment("JOULEPROF_NVML_LIBRARY");
  if (library.empty() && !has_driver()) return;
  const auto nvml = nvml::open_nvml(library);
  if (!nvml || !(*nvml)->uuid) return;
  const auto& api = *nvml;
  unsigned count = 0;
  if (api->device_count(&count) != abi::Return::kSuccess) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    abi::Device device = nullptr;
    std::array<char, kUuidLength> uuid{};
    unsigned milliwatts = 0;
    if (api->device_by_index(i, &device) != abi::Return::kSuccess) continue;
    if (api->uuid(device, uuid.data(), kUuidLength) != abi::Return::kSuccess) continue;
    // The calls before it succeed for a board that has left the bus.
    if (api->power_usage && api->power_usage(device, &milliwatts) == abi::Return::kGpuIsLost) {
      continue;
    }
    uuid.back() = '\0';
    out.insert(uuid.data());
  }
}

std::set<std::string> offered_files() {
  std::set<std::string> out;
  const fs::path root = root_folder();
  const fs::path zones = root / "sys/class/powercap";
  for (const auto& name : names_in(zones)) {
    if (access((zones / name / "energy_uj").c_str(), R_OK) == 0) out.insert("powercap " + name);
  }
  if (is_there(root / "sys/bus/event_source/devices/power/type")) out.insert("perf power");
  const fs::path chips = root / "sys/class/hwmon";
  for (const auto& name : names_in(chips)) {
    out.insert(fmt::format("{} {}", name, read_attribute(chips / name / "name").value_or("")));
  }
  return out;
}

}  // namespace

std::filesystem::path root_folder() {
  const std::string root = environment("JOULEPROF_ROOT");
  return root.empty() ? "/" : root;
}

bool MeterSet::can_measure() const {
  return std::ranges::any_of(meters, [](const auto& meter) {
    const auto& sensors = meter->sensors();
    return std::ranges::any_of(sensors, [](const model::Sensor& s) {
      return s.kind != model::SensorKind::kGauge && s.provenance != model::Provenance::kEstimated;
    });
  });
}

Result<MeterSet> open_meters(const MeterOptions& options) {
  // First: what it starts must not be taken for a part of the measured command.
  std::vector<std::unique_ptr<Meter>> walls;
  std::vector<Missing> missing;
  for (const std::string& spec : options.wall_meters) {
    const auto device = walls.empty() ? "wall" : fmt::format("wall-{}", walls.size() + 1);
    auto opened = WallMeter::open({.spec = spec, .device = device, .demand = options.demand});
    if (opened) {
      if (const auto& why = (*opened)->absent()) {
        say("jouleprof: the wall meter is not read yet, and is asked again: {}\n", why->message);
        missing.push_back({"the wall meter", *why, ""});
      }
      walls.push_back(std::move(*opened));
    } else if (opened.error().code == Errc::kInvalidArgument) {
      return forward_error(opened);
    } else {
      auto domain =
          domain_without_sensor(model::DomainKind::kPlatform, device, opened.error().message);
      say("jouleprof: the wall meter is not read: {}\n", opened.error().message);
      walls.push_back(std::make_unique<AbsentMeter>(std::vector{std::move(domain)},
                                                    std::vector<std::string>{}));
      missing.push_back({"the wall meter", std::move(opened.error()), ""});
    }
  }
  auto set = open_without_wall(options);
  if (!set) return set;
  std::ranges::move(walls, std::back_inserter(set->meters));
  std::ranges::move(missing, std::back_inserter(set->missing));
  return set;
}

std::set<std::string> offered_hardware() {
  auto out = offered_files();
  add_gpus(out);
  return out;
}

struct HardwareWatch::State {
  Look look;
  std::optional<std::set<std::string>> before;  // absent: a file hung in the first look
  Duration period{};
  std::function<void(const std::vector<std::string>&)> found;
  bool started = false;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool stop = false;

  void run() {
    for (;;) {
      {
        std::unique_lock lock(mutex);
        if (changed.wait_for(lock, period, [this] { return stop; })) return;
      }
      auto now = look();
      std::vector<std::string> more;
      std::set_difference(now.begin(), now.end(), before->begin(), before->end(),
                          std::back_inserter(more));
      before = std::move(now);
      const std::lock_guard lock(mutex);
      if (!stop && !more.empty()) found(more);
    }
  }
};

HardwareWatch::HardwareWatch(Look look) : state_(std::make_shared<State>()) {
  state_->look = std::move(look);
  const auto look_at_files = [] { return Result<std::set<std::string>>(offered_files()); };
  if (auto files = open_files_in_time(look_at_files, root_folder() / "sys/class")) {
    state_->before = std::move(*files);
  }
}

HardwareWatch::~HardwareWatch() { stop(); }

void HardwareWatch::start(const std::vector<model::Domain>& opened, Duration period,
                          std::function<void(const std::vector<std::string>&)> found) {
  if (std::exchange(state_->started, true)) return;
  const auto end_with = [](const char* why) {
    say("jouleprof: sensors that appear from now on are not found: {}\n", why);
  };
  if (!state_->before) return end_with("a file in /sys does not answer");
  for (const auto& domain : opened) {
    if (is_gpu(domain.uuid)) state_->before->insert(domain.uuid);
  }
  state_->period = period;
  state_->found = std::move(found);
  auto thread = start_thread([state = state_] { state->run(); }, end_with);
  if (!thread) return end_with(thread.error().message.c_str());
  thread->detach();
}

void HardwareWatch::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

}  // namespace jouleprof::meters
