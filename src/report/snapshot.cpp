#include "report/snapshot.h"

#include <array>

namespace jouleprof::report {

std::span<const SnapshotField> snapshot_fields() {
  using D = DeviceSnapshot;
  static constexpr std::array<SnapshotField, 22> kFields{{
      {"power_watts", &D::power_watts},
      {"power_limit_watts", &D::power_limit_watts},
      {"temperature_celsius", &D::temperature_celsius},
      {"memory_temperature_celsius", &D::memory_temperature_celsius},
      {"utilisation_ratio", &D::utilisation_ratio},
      {"memory_utilisation_ratio", &D::memory_utilisation_ratio},
      {"encoder_utilisation_ratio", &D::encoder_utilisation_ratio},
      {"decoder_utilisation_ratio", &D::decoder_utilisation_ratio},
      {"jpeg_utilisation_ratio", &D::jpeg_utilisation_ratio},
      {"ofa_utilisation_ratio", &D::ofa_utilisation_ratio},
      {"sm_clock_hertz", &D::sm_clock_hertz},
      {"memory_clock_hertz", &D::memory_clock_hertz},
      {"power_violation_ratio", &D::power_violation_ratio},
      {"thermal_violation", &D::thermal_violation},
      {"memory_used_bytes", &D::memory_used_bytes},
      {"bar1_used_bytes", &D::bar1_used_bytes},
      {"protected_memory_used_bytes", &D::protected_memory_used_bytes},
      {"ecc_single_bit_errors", &D::ecc_single_bit_errors},
      {"ecc_double_bit_errors", &D::ecc_double_bit_errors},
      {"pcie_replays", &D::pcie_replays},
      {"pcie_receive_bytes_per_second", &D::pcie_receive_bytes_per_second},
      {"pcie_transmit_bytes_per_second", &D::pcie_transmit_bytes_per_second},
  }};
  return kFields;
}

std::optional<double> busy_ratio(const model::MachineReading& from,
                                 const model::MachineReading& to) {
  const Duration busy = to.busy_cpu_time - from.busy_cpu_time;
  const Duration total = to.total_cpu_time - from.total_cpu_time;
  if (total <= Duration{} || busy < Duration{} || busy > total) return std::nullopt;
  return seconds(busy) / seconds(total);
}

}  // namespace jouleprof::report
