// Domains: the consumers of power, the levels of their power, and the origin of their figures.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

// The words for the values of an enumeration, both ways.
template <class Enum, std::size_t kCount>
using Names = std::array<std::pair<Enum, std::string_view>, kCount>;

template <class Enum, std::size_t kCount>
std::string_view name_in(const Names<Enum, kCount>& names, Enum value, std::string_view otherwise) {
  const auto found = std::ranges::find(names, value, &std::pair<Enum, std::string_view>::first);
  return found == names.end() ? otherwise : found->second;
}

template <class Enum, std::size_t kCount>
std::optional<Enum> value_in(const Names<Enum, kCount>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &std::pair<Enum, std::string_view>::second);
  return found == names.end() ? std::nullopt : std::optional(found->first);
}

// The origin of a figure, in the four words that every output uses.
enum class Provenance {
  kMeasured,     // read from a sensor of this machine
  kEstimated,    // computed by a model, without a sensor
  kSimulated,    // read from a simulated device: a test, never a measurement
  kUnavailable,  // the figure itself is absent
};

inline constexpr Names<Provenance, 4> kProvenances{{{Provenance::kMeasured, "measured"},
                                                    {Provenance::kEstimated, "estimated"},
                                                    {Provenance::kSimulated, "simulated"},
                                                    {Provenance::kUnavailable, "unavailable"}}};
inline std::string_view to_string(Provenance p) { return name_in(kProvenances, p, "unavailable"); }
inline std::optional<Provenance> parse_provenance(std::string_view text) {
  return value_in(kProvenances, text);
}

// The provenance of a sum of an `a` and a `b`: simulated before estimated before measured; an
// unavailable part does not change the other's.
inline Provenance combine(Provenance a, Provenance b) {
  for (const auto p : {Provenance::kSimulated, Provenance::kEstimated, Provenance::kMeasured}) {
    if (a == p || b == p) return p;
  }
  return Provenance::kUnavailable;
}

// --- The levels of a board's power: at rest, held by a context, and above ---

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

// --- Domains ---

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

inline constexpr Names<DomainKind, 8> kDomainKinds{{{DomainKind::kGpu, "gpu"},
                                                    {DomainKind::kCpu, "cpu"},
                                                    {DomainKind::kDram, "dram"},
                                                    {DomainKind::kGpuMemory, "gpu_memory"},
                                                    {DomainKind::kCpuCores, "cpu_cores"},
                                                    {DomainKind::kCpuUncore, "cpu_uncore"},
                                                    {DomainKind::kPlatform, "platform"},
                                                    {DomainKind::kModule, "module"}}};
inline std::string_view to_string(DomainKind kind) {
  return name_in(kDomainKinds, kind, "unknown");
}
inline std::optional<DomainKind> parse_domain_kind(std::string_view text) {
  return value_in(kDomainKinds, text);
}

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

// A platform and a module contain others, and are in no total with them.
constexpr bool contains_others(DomainKind kind) {
  return kind == DomainKind::kPlatform || kind == DomainKind::kModule;
}

// Whether its energy is in that of another domain that totals have: it has a parent, and that is
// none of `all` that contains others. `of`: the domain of an element.
template <typename All, typename Of = std::identity>
bool is_part(const Domain& domain, const All& all, Of of = {}) {
  return domain.parent && std::ranges::none_of(all, [&](const auto& other) {
           const Domain& d = std::invoke(of, other);
           return d.id == *domain.parent && contains_others(d.kind);
         });
}

// The place of a whole GPU on the machine, as its driver counts; absent for other domains.
inline std::optional<unsigned> gpu_index(const Domain& domain) {
  constexpr std::string_view kPrefix = "gpu";
  const std::string_view device = domain.device;
  if (domain.kind != DomainKind::kGpu || domain.parent || !device.starts_with(kPrefix)) return {};
  const auto index = parse_integer(device.substr(kPrefix.size()));
  return index ? std::optional(static_cast<unsigned>(*index)) : std::nullopt;
}

// The mean power of an interval: a step of a power curve, for drawing and export.
struct PowerStep {
  HostTime begin{};
  HostTime end{};
  Power power;
  // Half of its 95 % interval, run to run; absent: not known, or not asked for.
  std::optional<Power> error = std::nullopt;
};

// An interval takes several times as long as the power.
enum class StepErrors : bool { kLeftOut, kWanted };

}  // namespace jouleprof::model
