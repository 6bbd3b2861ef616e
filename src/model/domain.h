// Domains: the consumers of power, the levels of their power, and the origin of their figures.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

// The origin of a figure, in the four words that every output uses.
enum class Provenance {
  kMeasured,     // read from a sensor of this machine
  kEstimated,    // computed by a model, without a sensor
  kSimulated,    // read from a simulated device: a test, never a measurement
  kUnavailable,  // the figure itself is absent
};

std::string_view to_string(Provenance p);
std::optional<Provenance> parse_provenance(std::string_view text);

// The provenance of a sum of an `a` and a `b`: simulated before estimated before measured; an
// unavailable part does not change the other's.
Provenance combine(Provenance a, Provenance b);

// The levels of a board's power: at rest, held by a context, and above.

// A level that an earlier run or calibration observed on the same board.
struct KnownLevel {
  Power power;
  Power spread;                               // half of a 95 % interval between runs
  std::optional<double> temperature_celsius;  // of the board, when it was observed
  RealTime observed{};

  bool operator==(const KnownLevel&) const = default;
};

// What is known of a board before the recording begins, by its UUID.
struct KnownLevels {
  std::optional<KnownLevel> rest;  // no process holds a context, clocks are down
  std::optional<KnownLevel> held;  // a context exists, nothing runs; rest is included

  bool empty() const { return !rest && !held; }
  bool operator==(const KnownLevels&) const = default;
};

// A level that the analysis of a recording uses.
struct PowerLevel {
  Power power;
  Power error;            // half of its 95 % interval, without the sensor's calibration error
  std::string source;     // "observed before the work", "observed on 2026-11-22", ...
  bool observed = false;  // in this recording
  std::optional<double> temperature_celsius;

  bool operator==(const PowerLevel&) const = default;
};

// A power curve for drawing and export.

// The mean power of an interval.
struct PowerStep {
  HostTime begin{};
  HostTime end{};
  Power power;
  // Half of its 95 % interval, run to run; absent: not known, or not asked for.
  std::optional<Power> error = std::nullopt;
};

// An interval takes several times as long as the power.
enum class StepErrors : bool { kLeftOut, kWanted };

enum class DomainKind {
  kGpu,        // a whole board: chip, memory, regulators
  kCpu,        // a whole processor package
  kDram,       // the memory of a processor package
  kGpuMemory,  // within a GPU
  kCpuCores,   // within a package
  kCpuUncore,  // within a package
  kPlatform,   // psys: contains the packages and more; never added to a total
  kModule,     // CPU and GPU of one superchip together; never added to a total
};

std::string_view to_string(DomainKind kind);  // gpu, cpu, dram, gpu_memory, cpu_cores, ...
std::optional<DomainKind> parse_domain_kind(std::string_view text);

// Identifies a domain within one recording or one process's set of meters.
enum class DomainId : std::uint32_t {};

// A consumer of power: one Domain is one row of every energy table.
struct Domain {
  DomainId id{};
  DomainKind kind{};
  std::string device;  // short and stable: "gpu0", "package-0", "hwmon:in1"
  std::string name;    // the product: "NVIDIA H100 80GB HBM3"
  std::string uuid;    // "GPU-..." or "MIG-..."; empty where there is none
  // The domain that contains this one (a package its cores). A domain with a parent is shown, and
  // not added to a total unless the parent itself never is.
  std::optional<DomainId> parent;
  // False: present on the machine, but the measured command cannot see it (CUDA_VISIBLE_DEVICES).
  bool visible = true;
  // Why its energy cannot be read, where no sensor could be opened; empty otherwise.
  std::string unavailable_reason;
  // Power levels of a GPU from earlier runs.
  KnownLevels known_levels = {};

  bool operator==(const Domain&) const = default;
};

// The place of a whole GPU on the machine, as its driver counts; absent for other domains.
std::optional<unsigned> gpu_index(const Domain& domain);

}  // namespace jouleprof::model
