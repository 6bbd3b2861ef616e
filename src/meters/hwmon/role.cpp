#include "meters/hwmon/role.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::meters::hwmon {
namespace {

using model::DomainKind;

// Rails of Jetson modules; the module's own supply contains the others.
constexpr std::array<std::pair<std::string_view, DomainKind>, 17> kRails{{
    {"VDD_IN", DomainKind::kPlatform},
    {"POM_5V_IN", DomainKind::kPlatform},
    {"GPU", DomainKind::kGpu},
    {"VDD_GPU", DomainKind::kGpu},
    {"VDD_GPU_SOC", DomainKind::kGpu},
    {"VDD_SYS_GPU", DomainKind::kGpu},
    {"POM_5V_GPU", DomainKind::kGpu},
    {"CPU", DomainKind::kCpu},
    {"VDD_CPU", DomainKind::kCpu},
    {"VDD_CPU_CV", DomainKind::kCpu},
    {"VDD_SYS_CPU", DomainKind::kCpu},
    {"POM_5V_CPU", DomainKind::kCpu},
    {"VDD_CPU_GPU_CV", DomainKind::kModule},
    {"VDDRQ", DomainKind::kDram},
    {"VDD_DDR", DomainKind::kDram},
    {"VDD_SYS_DDR", DomainKind::kDram},
    {"VDDQ_VDD2_1V8AO", DomainKind::kDram},
}};

std::size_t index_of_device(const Channel& channel, const std::vector<Channel>& all) {
  std::set<std::string> before;
  for (const Channel& other : all) {
    if (other.driver == channel.driver && other.bus_address < channel.bus_address) {
      before.insert(other.bus_address);
    }
  }
  return before.size();
}

// AMD's metrics table begins with its size (2 bytes) and its format: 1 on a board, 2 or 3 on an
// APU. https://docs.kernel.org/gpu/amdgpu/driver-misc.html
bool is_apu(const Channel& channel) {
  const auto metrics = read_file(channel.device / "gpu_metrics");
  return metrics && metrics->size() > 2 && ((*metrics)[2] == 2 || (*metrics)[2] == 3);
}

std::string board_name(const Channel& channel) {
  const auto product = read_attribute(channel.device / "product_name");
  if (product && !product->empty()) return *product;
  std::string name = channel.driver + " GPU";
  if (channel.driver == "amdgpu") name = "AMD GPU";
  if (channel.driver == "nouveau") name = "NVIDIA GPU";
  if (channel.driver == "xe" || channel.driver == "i915") name = "Intel GPU";
  return fmt::format("{} at {}", name, channel.bus_address);
}

Result<Role> unknown(const Channel& channel) {
  return fail(Errc::kUnsupported,
              fmt::format("the meaning of {} of driver {}{} is unknown",
                          (channel.folder / channel.attribute()).string(), channel.driver,
                          channel.label.empty() ? "" : " ('" + channel.label + "')"));
}

Result<Role> board_role(const Channel& channel, const std::vector<Channel>& all) {
  Role role{DomainKind::kGpu, fmt::format("{}-{}", channel.driver, index_of_device(channel, all)),
            board_name(channel), std::nullopt, ""};
  const bool is_intel = channel.driver == "xe" || channel.driver == "i915";
  if (!is_intel) {
    if (channel.number != 1 || channel.form == Form::kEnergyInput) return unknown(channel);
    if (channel.driver == "amdgpu" && is_apu(channel)) role.kind = DomainKind::kModule;
    return role;
  }
  if (channel.form != Form::kEnergyInput || channel.number > 2) return unknown(channel);
  // energy1 is the card, energy2 the package on it; some boards have only the latter.
  const bool has_card = std::any_of(all.begin(), all.end(), [&](const Channel& c) {
    return c.chip == channel.chip && c.form == Form::kEnergyInput && c.number == 1;
  });
  if (channel.number == 2 && has_card) {
    role.parent_kind = DomainKind::kGpu;
    role.parent_device = role.device;
    role.device += "-package";
    role.name += ", package";
  }
  return role;
}

Result<Role> rail_role(const Channel& channel) {
  for (const auto& [label, kind] : kRails) {
    if (label == channel.label) {
      return Role{kind, "hwmon:" + channel.label, channel.label, std::nullopt, ""};
    }
  }
  return unknown(channel);
}

// "Grace Power Socket 0" and the like.
// https://docs.nvidia.com/grace-perf-tuning-guide/power-thermals.html
Result<Role> socket_role(const Channel& channel) {
  const auto words = split_blanks(channel.label);
  if (words.empty()) {
    if (read_setting(channel, channel.input() + "_is_battery") == 1) return unknown(channel);
    return Role{DomainKind::kPlatform, "hwmon:" + channel.bus_address, "Machine (ACPI power meter)",
                std::nullopt, ""};
  }
  if (words.size() != 4 || words[1] != "Power" || words[2] != "Socket" ||
      !parse_integer(words[3])) {
    return unknown(channel);
  }
  const std::string package = fmt::format("package-{}", words[3]);
  if (words[0] == "Grace") return Role{DomainKind::kCpu, package, "NVIDIA Grace", std::nullopt, ""};
  if (words[0] == "CPU") {
    return Role{DomainKind::kCpuCores, package, "CPU rail", DomainKind::kCpu, package};
  }
  if (words[0] == "SysIO") {
    return Role{DomainKind::kCpuUncore, package, "SysIO rail", DomainKind::kCpu, package};
  }
  if (words[0] == "Module") {
    return Role{DomainKind::kModule, fmt::format("module-{}", words[3]), "Grace superchip module",
                std::nullopt, ""};
  }
  return unknown(channel);
}

}  // namespace

Result<Role> role_of(const Channel& channel, const std::vector<Channel>& all) {
  constexpr std::array<std::string_view, 4> kBoards{"amdgpu", "nouveau", "xe", "i915"};
  if (std::find(kBoards.begin(), kBoards.end(), channel.driver) != kBoards.end()) {
    return board_role(channel, all);
  }
  if (channel.driver == "ina3221") return rail_role(channel);
  if (channel.driver == "power_meter") return socket_role(channel);
  return unknown(channel);
}

bool is_uninteresting(const Channel& channel) {
  if (channel.driver.starts_with("i915_gt")) return true;
  // The driver's own sums, and inputs that the board leaves open.
  return channel.driver == "ina3221" && (channel.number > 3 || channel.label == "NC");
}

}  // namespace jouleprof::meters::hwmon
