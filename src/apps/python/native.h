// What jouleprof._native is made of: a monitor of the C interface, and the steps of an inference
// server.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "jouleprof/jouleprof.h"

namespace jouleprof::python {

// Other threads of the interpreter run meanwhile. A thread that wants its lock back once the
// interpreter ends is ended by it, within C++ code that cannot be left so: the process would abort.
// From end_calls() on the lock is therefore kept.
class WithoutLock {
 public:
  WithoutLock();
  WithoutLock(const WithoutLock&) = delete;
  WithoutLock& operator=(const WithoutLock&) = delete;
  ~WithoutLock();

 private:
  PyThreadState* released_ = nullptr;
};

// A text that may not be UTF-8, such as a driver's.
nanobind::object text(const char* bytes);

// Called as the interpreter ends: waits until no other thread is WithoutLock, for so many seconds
// at most.
void end_calls(double most);

// Every method is called with the interpreter's lock held; those that may wait release it. A
// failure is returned as a tuple (status, message), which the Python side raises as an exception. A
// closed monitor's answer is the status `unavailable`.
class Monitor {
 public:
  explicit Monitor(jouleprof_monitor* opened);

  // Ends the sampling, after the calls that other threads are in.
  void close();
  bool is_closed() const { return !opened_; }

  // "own" or "run"; empty when closed.
  std::string source() const;
  // A list of (domain, device, name, uuid, reason, visible_index, gpu_index).
  nanobind::object domains() const;

  std::uint32_t name(const std::string& text);
  // In a forked child: windows that begin from now on are not measured.
  void leave() noexcept { is_left_ = true; }
  // Begins a window, and lists it until end() or forget(); returns when that was. 0: it is not
  // measured, because the monitor is closed or left.
  std::int64_t begin(std::uint32_t name) noexcept;
  void forget(std::int64_t begin, std::uint32_t name) noexcept;
  // Ends a window that began at `begin` (CLOCK_MONOTONIC, nanoseconds); returns when that was.
  std::int64_t end(std::int64_t begin, std::uint32_t name) noexcept;
  // True, or a failure.
  nanobind::object add(std::int64_t begin, std::int64_t end, std::uint32_t name, bool device_time);

  // A list of energies in the order of domains(), each (provenance, energy, error, repeatability,
  // sensor, method, reason) with microjoules.
  nanobind::object energy(std::int64_t begin, std::int64_t end, std::uint32_t name,
                          bool device_time, std::int64_t timeout);
  // The JSON of what is known now.
  nanobind::object snapshot();
  // A line for each warning.
  nanobind::object warnings();
  // (count, nanoseconds, resolved_count, energies).
  nanobind::object total(std::uint32_t name, std::int64_t timeout);

 private:
  nanobind::object text_of(jouleprof_status (*get)(jouleprof_monitor*, char**, char*, std::size_t));

  std::shared_ptr<jouleprof_monitor> opened_;
  bool is_left_ = false;
};

// A Monitor, or a failure. Durations in nanoseconds, 0 for the default.
nanobind::object open_monitor(const std::optional<std::string>& devices,
                              const std::optional<nanobind::bytes>& log, bool overwrite,
                              std::int64_t shortest_window, std::int64_t history, bool own_sampler,
                              const std::optional<std::vector<int>>& gpu_indices, bool gpus_only);

// The sum of a list of (provenance, energy, error, repeatability), as (provenance, energy, error,
// repeatability); see jouleprof_energy_sum.
nanobind::object sum_energies(
    const std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>>& parts,
    bool independent);

// The shares of an inference server's steps, as python/jouleprof/serving/_recorder.py records them.
// Knows of each request how far it was computed, so that a step needs no more than what the engine
// schedules. Every method is called with the interpreter's lock held.
class StepTable {
 public:
  void forget(nanobind::handle name);

  // The shares of a step in which names[i] has tokens[i] computed after contexts[i]: seven numbers
  // of 32 bits for each. `learn(name)` returns (number, prompt) of one that is not known. `anew`:
  // names that begin again, and may find what the prefix cache has of them; the first step of a
  // request does so, too. `rejected`: of the tokens, by name.
  nanobind::bytes shares(const nanobind::list& names, const nanobind::list& tokens,
                         const nanobind::list& contexts, const nanobind::callable& learn,
                         const nanobind::set& anew, const nanobind::dict& rejected);

 private:
  struct Known {
    std::uint32_t number = 0;
    std::uint32_t prompt = 0;
    std::uint32_t computed = 0;  // the most tokens that had keys and values
    bool begun = false;
  };

  Known& known_of(nanobind::handle name, const nanobind::callable& learn);

  nanobind::dict slots_;  // by name
  std::vector<Known> known_;
  std::vector<std::size_t> free_;
  std::vector<std::uint32_t> out_;
};

}  // namespace jouleprof::python
