// The column names of our CSV files (docs/formats.md): NAME_UNIT.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "importers/csv/csv_file.h"
#include "importers/times.h"
#include "jouleprof/units.h"

namespace jouleprof::importers::csv {

inline constexpr std::int64_t kLastUnixNanosecond = kLastUnixTime.count();
// The sum of a time and this fits 64 bits; LaunchLimit allows less.
inline constexpr Duration kLongestKernel = std::chrono::hours{1};

using TimeColumns = std::array<ColumnName, 4>;  // in nanoseconds
inline constexpr TimeColumns kTime{{{"t_ns", 0}, {"t_us", 3}, {"t_ms", 6}, {"t_s", 9}}};
inline constexpr TimeColumns kBefore{
    {{"t_before_ns", 0}, {"t_before_us", 3}, {"t_before_ms", 6}, {"t_before_s", 9}}};
inline constexpr TimeColumns kAfter{
    {{"t_after_ns", 0}, {"t_after_us", 3}, {"t_after_ms", 6}, {"t_after_s", 9}}};
inline constexpr TimeColumns kStart{
    {{"start_ns", 0}, {"start_us", 3}, {"start_ms", 6}, {"start_s", 9}}};
inline constexpr TimeColumns kDuration{
    {{"duration_ns", 0}, {"duration_us", 3}, {"duration_ms", 6}, {"duration_s", 9}}};
inline constexpr TimeColumns kEnd{{{"end_ns", 0}, {"end_us", 3}, {"end_ms", 6}, {"end_s", 9}}};

// In microwatts and microjoules.
inline constexpr std::array<ColumnName, 3> kPower{
    {{"power_mw", 3}, {"power_w", 6}, {"power_watts", 6}}};
inline constexpr std::array<ColumnName, 4> kEnergy{
    {{"energy_uj", 0}, {"energy_mj", 3}, {"energy_j", 6}, {"energy_joules", 6}}};

inline constexpr std::array<ColumnName, 1> kKernelId{{{"kernel_id", 0}}};
inline constexpr std::array<ColumnName, 1> kName{{{"name", 0}}};
inline constexpr std::array<ColumnName, 1> kStream{{{"stream", 0}}};

}  // namespace jouleprof::importers::csv
