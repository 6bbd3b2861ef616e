#include "model/domain.h"

#include <array>
#include <utility>

#include "base/text.h"

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

std::optional<unsigned> gpu_index(const Domain& domain) {
  constexpr std::string_view kPrefix = "gpu";
  const std::string_view device = domain.device;
  if (domain.kind != DomainKind::kGpu || domain.parent || !device.starts_with(kPrefix)) return {};
  const auto index = parse_integer(device.substr(kPrefix.size()));
  return index ? std::optional(static_cast<unsigned>(*index)) : std::nullopt;
}

}  // namespace jouleprof::model
