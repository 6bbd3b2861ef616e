// A consumer of power: one Domain is one row of every energy table.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/device/power.h"

namespace jouleprof::model {

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
