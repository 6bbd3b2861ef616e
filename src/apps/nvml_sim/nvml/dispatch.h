// How every exported function runs: initialised?, a handle of ours?, its cost, its faults, its
// work.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/nvml_abi.h"
#include "apps/nvml_sim/core/simulator.h"

// What an opaque handle points at.
struct jouleprof::abi::DeviceHandle {
  jouleprof::nvml_sim::SimDevice* device = nullptr;
  const jouleprof::nvml_sim::MigSpec* mig = nullptr;  // null: the whole GPU
};

#define JOULEPROF_NVML_EXPORT extern "C" __attribute__((visibility("default")))
// That a function is declared as the clients of abi/nvml_abi.h expect it.
#define JOULEPROF_NVML_CHECK(name) \
  static_assert(std::is_same_v<decltype(nvml##name), jouleprof::abi::fn::name>)

namespace jouleprof::nvml_sim {

// A running scenario with the handles given out for it. Lives as long as a call uses it.
struct Session {
  std::unique_ptr<Simulator> simulator;
  std::vector<std::unique_ptr<abi::DeviceHandle>> handles;  // GPUs in order, then MIG devices

  bool owns(const abi::DeviceHandle* handle) const;
  abi::Device gpu(unsigned index) const { return handles[index].get(); }
  abi::Device mig(const SimDevice& device, unsigned index) const;  // null: there is none
};
using SessionPtr = std::shared_ptr<const Session>;

// nvmlInit and nvmlShutdown, counted as NVML counts them. A scenario is kept over a shutdown, and
// read again only if the environment has changed.
abi::Return init();
abi::Return shut_down();
SessionPtr session();  // null before init
// The running scenario whether or not it is initialised; one is started if need be. Null: the
// scenario is wrong, and stderr says how.
SessionPtr session_or_start();

// Spends `call`'s CPU time and waits where it hangs. A value: return it, the call fails.
std::optional<abi::Return> begin_call(const Session& session, const char* call,
                                      std::optional<unsigned> device);
// Spends the CPU time of a call.
void spend(const Session& session, const char* call);

// Runs `work(const Session&)`.
template <typename F>
abi::Return with_library(const char* call, F work) {
  try {
    const SessionPtr current = session();
    if (current == nullptr) return abi::Return::kUninitialized;
    if (const auto failed = begin_call(*current, call, std::nullopt)) return *failed;
    return work(*current);
  } catch (...) {
    return abi::Return::kUnknown;
  }
}

// What a call to a device has at hand.
struct DeviceCall {
  const Session& session;
  const abi::DeviceHandle& handle;
  const SimDevice& device;
  const char* name;
  double now;  // seconds since the scenario's start

  const Simulator& simulator() const { return *session.simulator; }
  // The value to show: `value`, or that of a sentinel fault.
  template <typename T>
  T shown(T value) const {
    const auto sentinel = simulator().faults().sentinel(name, device.index(), now);
    return sentinel ? static_cast<T>(*sentinel) : value;
  }
};

// Runs `work(const DeviceCall&)` on a GPU or a MIG device.
template <typename F>
abi::Return with_device(const char* call, abi::Device handle, F work) {
  try {
    const SessionPtr current = session();
    if (current == nullptr) return abi::Return::kUninitialized;
    if (!current->owns(handle)) return abi::Return::kInvalidArgument;
    if (const auto failed = begin_call(*current, call, handle->device->index())) return *failed;
    return work(DeviceCall{*current, *handle, *handle->device, call, current->simulator->now()});
  } catch (...) {
    return abi::Return::kUnknown;
  }
}

// The same on a whole GPU: a MIG device is not supported.
template <typename F>
abi::Return with_gpu(const char* call, abi::Device handle, F work) {
  return with_device(call, handle, [&](const DeviceCall& c) {
    return c.handle.mig != nullptr ? abi::Return::kNotSupported : work(c);
  });
}

// A text into a caller's buffer.
abi::Return give_text(const std::string& text, char* out, unsigned length);

// A number into a caller's variable; null is an error of the caller's.
template <typename T>
abi::Return give(T* out, std::type_identity_t<T> value) {
  if (out == nullptr) return abi::Return::kInvalidArgument;
  *out = value;
  return abi::Return::kSuccess;
}

// A list in NVML's way: too little room gives the number needed; an empty list is a success.
template <typename T>
abi::Return give_list(const std::vector<T>& list, unsigned* count, T* out) {
  if (count == nullptr) return abi::Return::kInvalidArgument;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.empty()) return abi::Return::kSuccess;
  if (out == nullptr || room < list.size()) return abi::Return::kInsufficientSize;
  std::copy(list.begin(), list.end(), out);
  return abi::Return::kSuccess;
}

inline unsigned milliwatts(double watts) { return static_cast<unsigned>(watts * 1e3 + 0.5); }
inline unsigned percent(double ratio) { return static_cast<unsigned>(ratio * 100 + 0.5); }

}  // namespace jouleprof::nvml_sim
