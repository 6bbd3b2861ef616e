// A monitor of the C interface as the Python package sees it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "jouleprof/jouleprof.h"

namespace jouleprof::python {

// Every method is called with the interpreter's lock held; those that may wait let go of it. What
// can fail returns a tuple (status, message) instead of its result: the Python side makes the
// exception of it. A closed monitor's answer is the status `unavailable`.
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
  // Ends a window that began at `begin` (CLOCK_MONOTONIC, nanoseconds); returns when that was.
  std::int64_t end(std::int64_t begin, std::uint32_t name) noexcept;
  // True, or a failure.
  nanobind::object add(std::int64_t begin, std::int64_t end, std::uint32_t name, bool device_time);

  // A list of energies in the order of domains(), each (provenance, energy, error, repeatability,
  // sensor, method, reason) with microjoules.
  nanobind::object energy(std::int64_t begin, std::int64_t end, std::uint32_t name,
                          bool device_time, std::int64_t timeout);
  // (count, nanoseconds, resolved_count, energies).
  nanobind::object total(std::uint32_t name, std::int64_t timeout);

 private:
  std::shared_ptr<jouleprof_monitor> opened_;
};

// A Monitor, or a failure. Durations in nanoseconds, 0 for the default.
nanobind::object open_monitor(const std::optional<std::string>& devices,
                              const std::optional<std::string>& log, bool overwrite,
                              std::int64_t shortest_window, std::int64_t history, bool own_sampler);

}  // namespace jouleprof::python
