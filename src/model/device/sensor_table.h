// The table of sensors: what each kind is, and how far it may be off.
//
// Every trait that does not come from a sensor's own interface stands here, with its source.
// Constants of the method, not of a sensor, are in analysis/timeline/sensors/error_model.h.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::model {

// What is known of an interface.
struct SensorRow {
  std::string_view name;       // sensors whose name begins with it
  std::string_view covers;     // the part of the machine that it measures
  std::string_view contains;   // other sensors' parts that are in it; empty: none
  std::string_view unit;       // of the value as it is read, with the evidence
  std::string_view filter;     // refresh, averaging and lag, in words
  std::string_view no_value;   // what it returns instead of a value; never taken as one
  std::string_view stamp;      // whose time a reading has
  std::string_view privilege;  // who may read it, and how to get that
};

// The row of the longest fitting name; nullptr for a sensor that has none.
const SensorRow* row_of(std::string_view sensor_name);

// How far a family of boards was found off against a meter.
struct BoardScale {
  std::string_view boards;  // words of product names, separated by blanks; empty: any other board
  double gain_low, gain_high;
  double offset_low, offset_high;  // watts
  std::string_view source;
};

std::span<const BoardScale> board_scales();
// The error of a GPU by its product name ("NVIDIA A100-SXM4-40GB"); of an unknown one the widest
// row.
ScaleError scale_of_gpu(std::string_view product_name);
inline constexpr double kEstimateError = 0.6;  // of a load model whose peak power is assumed
ScaleError scale_of_rapl_package(bool is_amd);
ScaleError scale_of_rapl_dram();
ScaleError scale_of_rail();  // of a Jetson: its chip, and no card

// So far of NVIDIA; other vendors' generations are added here.
enum class GpuGeneration { kPascal, kVolta, kTuring, kAmpere, kAda, kHopper, kBlackwell };

// The generation of a device by its product name ("NVIDIA H100 80GB HBM3"), where the name is
// listed.
std::optional<GpuGeneration> generation_of(std::string_view device_name);

// The traits of one device's power sensors; absent ones are unknown.
struct GpuTraits {
  SensorTraits counter;
  SensorTraits ring;
  SensorTraits instant;
  SensorTraits average;

  void set_scale(const ScaleError& scale) {
    for (SensorTraits* t : {&counter, &ring, &instant, &average}) t->scale = scale;
  }
};

// Refresh, window and lag. Published and measured: Yang, Adamek, Armour, "Part-time Power
// Measurements" (SC'24) for Pascal to Hopper; ring and counter as read on an H100. Hopper's
// response as fitted to bursts of known times on an H100 and H200s (docs/validation.md). `module`:
// the module scope of a superchip.
GpuTraits default_traits(std::optional<GpuGeneration> generation, bool module);

// The UUID of a board of AMD's, as ROCm writes it, of the hexadecimal number in its unique_id file;
// empty where that is no number or zero.
std::string amd_uuid(std::string_view unique_id);

// Rails of Jetson modules, as hwmon and tegrastats name them.
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
