#include "nvml_sim/nvml/dispatch.h"

#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

namespace jouleprof::nvml_sim {
namespace {

struct Library {
  std::mutex mutex;
  unsigned users = 0;
  Settings settings;
  SessionPtr session;  // kept after the last nvmlShutdown, as a driver keeps its state
};

// With one such variable all of this library's thread-local data, which are those of libstdc++'s
// exceptions, are made when a thread begins. Otherwise the C library asks for their memory at a
// thread's first exception, and ends the program where there is none.
[[gnu::tls_model("initial-exec")]] thread_local volatile bool is_in_use = false;

// Never destroyed: threads of the host program may call while it exits.
Library& library() {
  is_in_use = true;
  static auto* const kLibrary = new Library;
  return *kLibrary;
}

SessionPtr start(const Settings& settings) {
  auto simulator = Simulator::open(settings);
  if (!simulator) {
    std::fprintf(stderr, "jouleprof-nvml-sim: %s\n", simulator.error().message.c_str());
    return nullptr;
  }
  auto session = std::make_shared<Session>();
  session->simulator = std::move(*simulator);
  const auto add = [&](const SimDevice* device, const MigSpec* mig) {
    session->handles.push_back(std::make_unique<abi::DeviceHandle>(abi::DeviceHandle{device, mig}));
  };
  for (const auto& device : session->gpus()) add(device.get(), nullptr);
  for (const auto& device : session->gpus()) {
    for (const MigSpec& mig : device->spec().mig) add(device.get(), &mig);
  }
  return session;
}

bool start_locked(Library& lib) {
  Settings settings = Settings::from_environment();
  if (lib.session != nullptr && lib.settings == settings) return true;
  lib.session = start(settings);
  lib.settings = std::move(settings);
  return lib.session != nullptr;
}

}  // namespace

bool Session::owns(const abi::DeviceHandle* handle) const {
  return std::any_of(handles.begin(), handles.end(),
                     [handle](const auto& h) { return h.get() == handle; });
}

Device Session::mig(const SimDevice& device, unsigned index) const {
  const auto& layout = device.spec().mig;
  if (index >= layout.size()) return nullptr;
  for (const auto& handle : handles) {
    if (handle->mig == &layout[index]) return handle.get();
  }
  return nullptr;
}

Return init() {
  try {
    Library& lib = library();
    std::unique_lock lock(lib.mutex);
    if (lib.users == 0 && !start_locked(lib)) return Return::kUnknown;
    const SessionPtr current = lib.session;
    lock.unlock();  // an nvmlInit that hangs must not block others
    if (const auto failed = begin_call(*current, "nvmlInit", std::nullopt)) return *failed;
    lock.lock();
    ++lib.users;
    return Return::kSuccess;
  } catch (...) {
    return Return::kUnknown;
  }
}

Return shut_down() {
  Library& lib = library();
  const std::lock_guard lock(lib.mutex);
  if (lib.users == 0) return Return::kUninitialized;
  --lib.users;
  return Return::kSuccess;
}

SessionPtr session() {
  Library& lib = library();
  const std::lock_guard lock(lib.mutex);
  return lib.users > 0 ? lib.session : nullptr;
}

SessionPtr session_or_start() {
  Library& lib = library();
  const std::lock_guard lock(lib.mutex);
  return lib.users > 0 || start_locked(lib) ? lib.session : nullptr;
}

void spend(const Session& session, const char* call) {
  const auto& costs = session.simulator->scenario().call_costs;
  const auto cost = costs.find(std::string_view(call));
  if (cost == costs.end() || cost->second <= 0) return;
  const auto spent = [] {
    timespec ts{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) * 1e-9;
  };
  for (const double end = spent() + cost->second; spent() < end;) {
  }
}

std::optional<Return> begin_call(const Session& session, const char* call,
                                 std::optional<unsigned> device) {
  Simulator& simulator = *session.simulator;
  simulator.take_shared_settings();
  spend(session, call);
  const double now = simulator.now();
  if (const Fault* hang = simulator.faults().hang(call, device, now)) {
    while (simulator.now() < hang->end) {
      const double rest = std::min(hang->end - simulator.now(), 60.0);
      std::this_thread::sleep_for(std::chrono::duration<double>(std::max(rest, 0.0)));
    }
  }
  return simulator.faults().failure(call, device, simulator.now());
}

Return give_text(const std::string& text, char* out, unsigned length) {
  if (out == nullptr) return Return::kInvalidArgument;
  if (text.size() >= length) return Return::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return Return::kSuccess;
}

}  // namespace jouleprof::nvml_sim
