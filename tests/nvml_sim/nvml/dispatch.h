// How every exported function runs: it checks the initialisation and the handle, spends the call's
// cost, applies its faults, and then does its work.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "abi/nvml_abi.h"
#include "nvml_sim/core/simulator.h"

// What an opaque handle points at.
struct jouleprof::abi::DeviceHandle {
  const jouleprof::nvml_sim::SimDevice* device = nullptr;
  const jouleprof::nvml_sim::MigSpec* mig = nullptr;  // null: the whole GPU
};

namespace jouleprof::nvml_sim {

using abi::Device;
using abi::Return;

// A running scenario with its handles. Lives as long as a call uses it.
struct Session {
  std::unique_ptr<Simulator> simulator;
  std::vector<std::unique_ptr<abi::DeviceHandle>> handles;  // GPUs in order, then MIG devices

  const auto& gpus() const { return simulator->devices(); }
  bool owns(const abi::DeviceHandle* handle) const;
  Device gpu(unsigned index) const { return handles[index].get(); }
  Device mig(const SimDevice& device, unsigned index) const;  // null: there is none
};
using SessionPtr = std::shared_ptr<const Session>;

// nvmlInit and nvmlShutdown; users are counted as NVML counts them. A session is kept over a
// shutdown; its scenario is read again only if the environment has changed.
Return init();
Return shut_down();
SessionPtr session();  // null before init
// The session, started if need be, without init. Null: the scenario is wrong; stderr says why.
SessionPtr session_or_start();

// Spends `call`'s CPU time and waits where it hangs. A value is the error that the call returns.
std::optional<Return> begin_call(const Session& session, const char* call,
                                 std::optional<unsigned> device);
// Spends the CPU time of a call.
void spend(const Session& session, const char* call);

// Stores a value in the caller's variable; a null pointer is the caller's error.
template <typename T>
Return give(T* out, std::type_identity_t<T> value) {
  if (out == nullptr) return Return::kInvalidArgument;
  *out = value;
  return Return::kSuccess;
}

// Stores a text in the caller's buffer.
Return give_text(const std::string& text, char* out, unsigned length);

// Stores a list as NVML does: too little room gives the number needed; an empty list is a success.
template <typename T>
Return give_list(const std::vector<T>& list, unsigned* count, T* out) {
  if (count == nullptr) return Return::kInvalidArgument;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.empty()) return Return::kSuccess;
  if (out == nullptr || room < list.size()) return Return::kInsufficientSize;
  std::copy(list.begin(), list.end(), out);
  return Return::kSuccess;
}

// A call to a device.
struct DeviceCall {
  const Session& session;
  const abi::DeviceHandle& handle;
  const SimDevice& device;
  const DeviceSpec& spec;
  const char* name;
  double now;  // seconds since the scenario's start

  Simulator& simulator() const { return *session.simulator; }
  // Stores what the call shows; an absent value is "not supported".
  template <typename T>
  Return give(T* out, std::optional<std::type_identity_t<T>> value) const {
    return value ? nvml_sim::give(out, *value) : Return::kNotSupported;
  }
};

// Runs `work(const Session&)`.
template <typename F>
Return with_library(const char* call, F work) {
  try {
    const SessionPtr current = session();
    if (current == nullptr) return Return::kUninitialized;
    if (const auto failed = begin_call(*current, call, std::nullopt)) return *failed;
    return work(*current);
  } catch (...) {
    return Return::kUnknown;
  }
}

// Runs `work(const DeviceCall&)` on a GPU or a MIG device.
template <typename F>
Return with_device(const char* call, Device handle, F work) {
  try {
    const SessionPtr current = session();
    if (current == nullptr) return Return::kUninitialized;
    if (!current->owns(handle)) return Return::kInvalidArgument;
    const SimDevice& device = *handle->device;
    if (const auto failed = begin_call(*current, call, device.index())) return *failed;
    return work(
        DeviceCall{*current, *handle, device, device.spec(), call, current->simulator->now()});
  } catch (...) {
    return Return::kUnknown;
  }
}

// Runs `work` on a whole GPU: a MIG device is not supported.
template <typename F>
Return with_gpu(const char* call, Device handle, F work) {
  return with_device(call, handle, [&](const DeviceCall& c) {
    return c.handle.mig != nullptr ? Return::kNotSupported : work(c);
  });
}

inline unsigned milliwatts(double watts) { return static_cast<unsigned>(watts * 1e3 + 0.5); }
inline unsigned percent(double ratio) { return static_cast<unsigned>(ratio * 100 + 0.5); }

}  // namespace jouleprof::nvml_sim

#define JOULEPROF_NVML_EXPORT extern "C" __attribute__((visibility("default")))

// Begins the definition of an exported function. Parameters other than those of abi/nvml_abi.h are
// a conflicting declaration.
#define NVML_FUNCTION(name, ...)                  \
  JOULEPROF_NVML_EXPORT abi::fn::name nvml##name; \
  JOULEPROF_NVML_EXPORT Return nvml##name(__VA_ARGS__)

// A second name of a function of this file.
#define NVML_ALIAS(name, original) \
  JOULEPROF_NVML_EXPORT abi::fn::name nvml##name __attribute__((alias("nvml" #original)))

// nvml<name>(device, type* out) on `with_gpu` or `with_device`: stores an expression of `c`, the
// DeviceCall.
#define NVML_VALUE(with, name, type, ...)                                                        \
  NVML_FUNCTION(name, Device device, type* out) {                                                \
    return with(__func__, device,                                                                \
                [&]([[maybe_unused]] const DeviceCall& c) { return c.give(out, __VA_ARGS__); }); \
  }

// nvml<name>(device, type* first, type* second) on a GPU: stores an optional pair.
#define NVML_PAIR(name, type, ...)                                                \
  NVML_FUNCTION(name, Device device, type* first, type* second) {                 \
    return with_gpu(__func__, device, [&](const DeviceCall& c) {                  \
      const std::optional<std::pair<type, type>> pair = __VA_ARGS__;              \
      if (!pair) return Return::kNotSupported;                                    \
      if (first == nullptr || second == nullptr) return Return::kInvalidArgument; \
      c.give(first, pair->first);                                                 \
      return c.give(second, pair->second);                                        \
    });                                                                           \
  }

// nvml<name>(device, char* out, unsigned length) on `with_gpu` or `with_device`.
#define NVML_TEXT(with, name, ...)                                                         \
  NVML_FUNCTION(name, Device device, char* out, unsigned length) {                         \
    return with(__func__, device,                                                          \
                [&](const DeviceCall& c) { return give_text(__VA_ARGS__, out, length); }); \
  }
