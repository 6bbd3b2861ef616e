#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "apps/python/native.h"

namespace nb = nanobind;

namespace jouleprof::python {
namespace {

// Guarded by the interpreter's lock.
int calls_without_lock = 0;
bool is_ending = false;

// Threads of the parent are not in the child of a fork, which one with the lock makes.
void forget_calls() { calls_without_lock = 0; }

}  // namespace

WithoutLock::WithoutLock() {
  static const int known [[maybe_unused]] = pthread_atfork(nullptr, nullptr, forget_calls);
  if (is_ending) return;
  ++calls_without_lock;
  released_ = PyEval_SaveThread();
}

WithoutLock::~WithoutLock() {
  if (released_ == nullptr) return;
  PyEval_RestoreThread(released_);
  --calls_without_lock;
}

void end_calls(double most) {
  using Clock = std::chrono::steady_clock;
  // The end of another interpreter than the main one ends no calls of this process.
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) return;
  const auto end = Clock::now() + std::chrono::duration<double>(most);
  is_ending = true;
  while (calls_without_lock > 0 && Clock::now() < end) {
    PyThreadState* const released = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    PyEval_RestoreThread(released);
  }
}

nb::object text(const char* bytes) {
  return nb::steal(
      PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(std::strlen(bytes)), "replace"));
}

namespace {

using Message = std::array<char, 512>;

nb::object failure(jouleprof_status status, const char* message) {
  return nb::make_tuple(static_cast<int>(status), message);
}

nb::object closed() {
  return failure(JOULEPROF_UNAVAILABLE,
                 "the monitor is closed; request energies and totals before close()");
}

nb::list list_of(const std::vector<jouleprof_energy>& energies) {
  nb::list result;
  for (const auto& e : energies) {
    result.append(nb::make_tuple(static_cast<int>(e.provenance), e.energy_microjoules,
                                 e.error_microjoules, e.repeatability_microjoules, text(e.sensor),
                                 text(e.method), text(e.reason)));
  }
  return result;
}

std::vector<jouleprof_energy> room_for_energies(const jouleprof_monitor* monitor) {
  return std::vector<jouleprof_energy>(jouleprof_monitor_domain_count(monitor));
}

constexpr auto kSlice = std::chrono::milliseconds{100};
// The library's own, where the caller gives none (jouleprof.h).
constexpr std::int64_t kEnergyTimeout = 5'000'000'000;
constexpr std::int64_t kTotalTimeout = 10'000'000'000;

// The last owner closes the monitor, which takes a while.
void release_without_lock(std::shared_ptr<jouleprof_monitor>& monitor) {
  const WithoutLock others_may_run;
  monitor.reset();
}

// Waits in slices, between which Python sees its signals: Ctrl-C ends a wait. `call` takes the
// nanoseconds that it may wait. The interpreter's lock is not held in it.
template <typename Call>
jouleprof_status wait_in_slices(std::int64_t timeout, const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds{timeout};
  for (;;) {
    const auto begin = Clock::now();
    const auto slice = std::clamp<Clock::duration>(end - begin, Clock::duration{}, kSlice);
    jouleprof_status status;
    {
      const WithoutLock others_may_run;
      status = call(std::chrono::nanoseconds{slice}.count());
    }
    // An answer before the slice was over would not be another one later.
    if (is_ending || Clock::now() - begin < slice || Clock::now() >= end) return status;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }
}

}  // namespace

Monitor::Monitor(jouleprof_monitor* opened) : opened_(opened, jouleprof_monitor_close) {}

void Monitor::close() {
  auto last = std::move(opened_);
  const WithoutLock others_may_run;
  last.reset();
}

std::string Monitor::source() const {
  return opened_ ? jouleprof_monitor_source(opened_.get()) : "";
}

nb::object Monitor::domains() const {
  if (!opened_) return closed();
  nb::list result;
  const std::size_t count = jouleprof_monitor_domain_count(opened_.get());
  for (std::size_t i = 0; i < count; ++i) {
    jouleprof_domain d{};
    const auto status = jouleprof_monitor_domain(opened_.get(), i, &d);
    if (status != JOULEPROF_OK) return failure(status, "the domain does not exist");
    result.append(nb::make_tuple(text(d.domain), text(d.device), text(d.name), text(d.uuid),
                                 text(d.reason), d.visible_index, d.gpu_index));
  }
  return result;
}

std::uint32_t Monitor::name(const std::string& text) {
  return opened_ ? jouleprof_monitor_name(opened_.get(), text.c_str()) : 0;
}

std::int64_t Monitor::begin(std::uint32_t name) noexcept {
  if (!opened_ || is_left_) return 0;
  return jouleprof_monitor_begin(opened_.get(), name).begin_nanoseconds;
}

void Monitor::forget(std::int64_t begin, std::uint32_t name) noexcept {
  jouleprof_window window{begin, 0, name, JOULEPROF_WINDOW_LISTED};
  if (opened_) jouleprof_window_cancel(opened_.get(), &window);
}

std::int64_t Monitor::end(std::int64_t begin, std::uint32_t name) noexcept {
  jouleprof_window window{begin, 0, name, JOULEPROF_WINDOW_LISTED};
  if (!opened_) return jouleprof_now();
  jouleprof_window_end(opened_.get(), &window);
  return window.end_nanoseconds;
}

nb::object Monitor::add(std::int64_t begin, std::int64_t end, std::uint32_t name,
                        bool device_time) {
  if (!opened_) return closed();
  const jouleprof_window window{begin, end, name, device_time ? JOULEPROF_WINDOW_DEVICE_TIME : 0};
  const auto status = jouleprof_window_add(opened_.get(), &window);
  if (status != JOULEPROF_OK) return failure(status, "a window has to end after it begins");
  return nb::bool_(true);
}

nb::object Monitor::energy(std::int64_t begin, std::int64_t end, std::uint32_t name,
                           bool device_time, std::int64_t timeout) {
  if (!opened_) return closed();
  auto energies = room_for_energies(opened_.get());
  Message message{};
  jouleprof_status status;
  {
    auto kept_open = opened_;
    const jouleprof_window window{begin, end, name, device_time ? JOULEPROF_WINDOW_DEVICE_TIME : 0};
    status = wait_in_slices(timeout < 0 ? kEnergyTimeout : timeout, [&](std::int64_t most) {
      return jouleprof_window_energy(kept_open.get(), &window, most, energies.data(),
                                     message.data(), message.size());
    });
    release_without_lock(kept_open);
  }
  if (status != JOULEPROF_OK) return failure(status, message.data());
  return list_of(energies);
}

nb::object Monitor::total(std::uint32_t name, std::int64_t timeout) {
  if (!opened_) return closed();
  auto energies = room_for_energies(opened_.get());
  jouleprof_total total{};
  Message message{};
  jouleprof_status status;
  {
    auto kept_open = opened_;
    status = wait_in_slices(timeout < 0 ? kTotalTimeout : timeout, [&](std::int64_t most) {
      return jouleprof_monitor_total(kept_open.get(), name, most, &total, energies.data(),
                                     message.data(), message.size());
    });
    release_without_lock(kept_open);
  }
  if (status != JOULEPROF_OK) return failure(status, message.data());
  return nb::make_tuple(total.count, total.nanoseconds, total.resolved_count, list_of(energies));
}

nb::object Monitor::snapshot() { return text_of(jouleprof_monitor_snapshot); }

nb::object Monitor::warnings() { return text_of(jouleprof_monitor_warnings); }

nb::object Monitor::text_of(jouleprof_status (*get)(jouleprof_monitor*, char**, char*,
                                                    std::size_t)) {
  if (!opened_) return closed();
  char* found = nullptr;
  Message message{};
  jouleprof_status status;
  {
    auto kept_open = opened_;
    const WithoutLock others_may_run;
    status = get(kept_open.get(), &found, message.data(), message.size());
    kept_open.reset();
  }
  if (status != JOULEPROF_OK) return failure(status, message.data());
  const std::unique_ptr<char, void (*)(void*)> owner(found, jouleprof_free);
  return text(found);
}

nb::object sum_energies(
    const std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>>& parts,
    bool independent) {
  std::vector<jouleprof_energy> all;
  for (const auto& [provenance, energy, error, repeatability] : parts) {
    jouleprof_energy& e = all.emplace_back();
    e.provenance = static_cast<jouleprof_provenance>(provenance);
    e.energy_microjoules = energy;
    e.error_microjoules = error;
    e.repeatability_microjoules = repeatability;
  }
  jouleprof_energy sum{};
  const auto status = jouleprof_energy_sum(all.data(), all.size(), independent ? 1 : 0, &sum);
  if (status != JOULEPROF_OK) return failure(status, "the energies cannot be added");
  return nb::make_tuple(static_cast<int>(sum.provenance), sum.energy_microjoules,
                        sum.error_microjoules, sum.repeatability_microjoules);
}

nb::object open_monitor(const std::optional<std::string>& devices,
                        const std::optional<nb::bytes>& log, bool overwrite,
                        std::int64_t shortest_window, std::int64_t history, bool own_sampler,
                        const std::optional<std::vector<int>>& gpu_indices, bool gpus_only) {
  jouleprof_monitor_options options{};
  options.size = sizeof options;
  options.devices = devices ? devices->c_str() : nullptr;
  options.log = log ? log->c_str() : nullptr;
  options.overwrite = overwrite ? 1 : 0;
  options.shortest_window_nanoseconds = shortest_window;
  options.history_nanoseconds = history;
  options.own_sampler = own_sampler ? 1 : 0;
  static const int kNone = 0;
  if (gpu_indices) options.gpu_indices = gpu_indices->empty() ? &kNone : gpu_indices->data();
  options.gpu_index_count = gpu_indices ? gpu_indices->size() : 0;
  options.gpus_only = gpus_only ? 1 : 0;
  jouleprof_monitor* monitor = nullptr;
  Message message{};
  jouleprof_status status;
  {
    const WithoutLock others_may_run;
    status = jouleprof_monitor_open(&options, &monitor, message.data(), message.size());
  }
  if (status != JOULEPROF_OK) return failure(status, message.data());
  return nb::cast(new Monitor(monitor), nb::rv_policy::take_ownership);
}

}  // namespace jouleprof::python
