// Rails of Jetson modules, as hwmon and tegrastats name them.
#pragma once

#include <array>
#include <string_view>

#include "model/domain.h"

namespace jouleprof::model {

struct JetsonRail {
  std::string_view name;
  DomainKind kind;
};

// The rails of the Jetson Linux Developer Guide, "Power Monitor". The module's own supply, which
// contains the others, comes first.
inline constexpr std::array<JetsonRail, 19> kJetsonRails{{
    {"VDD_IN", DomainKind::kPlatform},
    {"VIN", DomainKind::kPlatform},
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
    {"VDD_CPU_SOC_MSS", DomainKind::kModule},  // of Thor: its SoC and memory as well
    {"VDDRQ", DomainKind::kDram},
    {"VDD_DDR", DomainKind::kDram},
    {"VDD_SYS_DDR", DomainKind::kDram},
    {"VDDQ_VDD2_1V8AO", DomainKind::kDram},
}};

}  // namespace jouleprof::model
