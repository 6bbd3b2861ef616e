// RAPL through the kernel's `power` PMU, for users that may open perf events but not energy_uj.
// man 2 perf_event_open; /sys/bus/event_source/devices/power
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "meters/rapl/source.h"

namespace jouleprof::meters::rapl {

// Opens a counting event for all processes on one CPU and returns its file descriptor, from which
// read() takes the count as 8 bytes. Tests put their own in its place.
using OpenEvent = std::function<Result<int>(std::uint32_t type, std::uint64_t config, int cpu)>;

// The system call. Errors: permission_denied without CAP_PERFMON when perf_event_paranoid is
// above 0.
Result<int> open_event(std::uint32_t type, std::uint64_t config, int cpu);

// Opens every energy event of <root>/sys/bus/event_source/devices/power on each CPU of its cpumask:
// one a package, or one a die. The kernel keeps these counts from wrapping.
// Errors: not_found when there is no such PMU.
Result<Source> open_perf(const std::filesystem::path& root, const OpenEvent& open);

}  // namespace jouleprof::meters::rapl
