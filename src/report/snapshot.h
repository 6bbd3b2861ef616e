// What a machine's devices show at one moment: a row of the monitor.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"
#include "model/process.h"
#include "model/provenance.h"

namespace jouleprof::report {

// One device. What it does not tell is absent.
struct DeviceSnapshot {
  model::DomainKind kind{};
  std::string device;             // "gpu0", "package-0"
  std::optional<unsigned> index;  // of a GPU, as its driver counts
  std::string name;               // "NVIDIA H100 80GB HBM3"
  model::Provenance provenance = model::Provenance::kMeasured;
  std::optional<Energy> energy;  // since the monitor began

  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> memory_temperature_celsius;
  std::optional<double> utilisation_ratio;  // of a GPU its SMs, of a package its logical CPUs
  std::optional<double> memory_utilisation_ratio;
  std::optional<double> encoder_utilisation_ratio;
  std::optional<double> decoder_utilisation_ratio;
  std::optional<double> jpeg_utilisation_ratio;
  std::optional<double> ofa_utilisation_ratio;
  std::optional<double> memory_clock_hertz;
  std::optional<double> sm_clock_hertz;
  std::optional<double> power_violation_ratio;  // time below the clocks asked for, for power
  std::optional<double> thermal_violation;      // 1: clocks are held down for heat
  std::optional<double> memory_used_bytes;
  std::optional<double> bar1_used_bytes;
  std::optional<double> protected_memory_used_bytes;  // confidential computing
  std::optional<double> ecc_single_bit_errors;
  std::optional<double> ecc_double_bit_errors;
  std::optional<double> pcie_replays;
  std::optional<double> pcie_receive_bytes_per_second;
  std::optional<double> pcie_transmit_bytes_per_second;
  std::optional<double> power_limit_watts;
};

struct Snapshot {
  RealTime time{};
  Duration elapsed{};  // since the monitor or the command began
  std::vector<DeviceSnapshot> devices;
};

// A figure by the name that outputs give it.
struct SnapshotField {
  std::string_view name;
  std::optional<double> DeviceSnapshot::*value;
};

// All figures, in the order of the output's columns.
std::span<const SnapshotField> snapshot_fields();

// The share of the machine's CPU time that was busy between two readings. Absent where none passed,
// or where a counter went back.
std::optional<double> busy_ratio(const model::MachineReading& from,
                                 const model::MachineReading& to);

}  // namespace jouleprof::report
