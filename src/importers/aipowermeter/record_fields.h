// The figures of a record of AIPowerMeter.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "model/domain.h"
#include "model/provenance.h"

namespace jouleprof::importers {

struct PowerField {
  std::string_view key;
  model::DomainKind kind;
  std::string_view device;
  std::string_view name;
};

// RAPL, summed over the packages.
inline constexpr std::array<PowerField, 5> kCpuFields{
    {{"intel_power", model::DomainKind::kCpu, "cpu", "CPU packages"},
     {"total_dram_power", model::DomainKind::kDram, "dram", "DRAM"},
     {"total_cpu_power", model::DomainKind::kCpuCores, "cores", "CPU cores"},
     {"uncore_power", model::DomainKind::kCpuUncore, "uncore", "CPU uncore"},
     {"psys_power", model::DomainKind::kPlatform, "psys", "Platform"}}};

// Whether the importer reads the figure, or it follows from those that it reads.
bool is_known_figure(std::string_view key);

// The member of an object; null where it has none, or is no object.
const nlohmann::json* member(const nlohmann::json& object, std::string_view key);
// A number, or the one number of a list (how uncore_power is written).
std::optional<double> number_of(const nlohmann::json* value);
bool is_pid(std::string_view text);

// What a line that jouleprof exported says of its section "cpu" or "gpu"; measured otherwise.
model::Provenance provenance_of(const nlohmann::json& line, std::string_view section);

}  // namespace jouleprof::importers
