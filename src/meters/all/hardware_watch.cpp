#include "meters/all/hardware_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/say.h"
#include "meters/all/open_meters.h"
#include "meters/nvml/api/nvml_api.h"

namespace jouleprof::meters {
namespace {

namespace fs = std::filesystem;

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
  const auto api = nvml::load_nvml(library);
  if (!api || !api->uuid || api->init() != abi::Return::kSuccess) return;
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
  api->shutdown();
}

std::vector<std::string> names_in(const fs::path& folder) {
  auto names = list_folder(folder);
  return names ? std::move(*names) : std::vector<std::string>{};
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

std::set<std::string> offered_hardware() {
  auto out = offered_files();
  add_gpus(out);
  return out;
}

struct HardwareWatch::State {
  Look look;
  std::set<std::string> before;
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
      std::set_difference(now.begin(), now.end(), before.begin(), before.end(),
                          std::back_inserter(more));
      before = std::move(now);
      const std::lock_guard lock(mutex);
      if (!stop && !more.empty()) found(more);
    }
  }
};

HardwareWatch::HardwareWatch(Look look) : state_(std::make_shared<State>()) {
  state_->look = std::move(look);
  state_->before = offered_files();
}

HardwareWatch::~HardwareWatch() { stop(); }

void HardwareWatch::start(const std::vector<model::Domain>& opened, Duration period,
                          std::function<void(const std::vector<std::string>&)> found) {
  if (std::exchange(state_->started, true)) return;
  for (const auto& domain : opened) {
    if (is_gpu(domain.uuid)) state_->before.insert(domain.uuid);
  }
  state_->period = period;
  state_->found = std::move(found);
  const auto end_with = [](const char* why) {
    say("jouleprof: sensors that appear from now on are not found: {}\n", why);
  };
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
