#include "model/domain.h"

#include <array>
#include <utility>

namespace jouleprof::model {
namespace {

constexpr std::array<std::pair<DomainKind, std::string_view>, 8> kNames{{
    {DomainKind::kGpu, "gpu"},
    {DomainKind::kCpu, "cpu"},
    {DomainKind::kDram, "dram"},
    {DomainKind::kGpuMemory, "gpu_memory"},
    {DomainKind::kCpuCores, "cpu_cores"},
    {DomainKind::kCpuUncore, "cpu_uncore"},
    {DomainKind::kPlatform, "platform"},
    {DomainKind::kModule, "module"},
}};

}  // namespace

std::string_view to_string(DomainKind kind) {
  for (const auto& [k, name] : kNames) {
    if (k == kind) return name;
  }
  return "unknown";
}

std::optional<DomainKind> parse_domain_kind(std::string_view text) {
  for (const auto& [kind, name] : kNames) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

}  // namespace jouleprof::model
