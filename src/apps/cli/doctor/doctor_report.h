// The result of `doctor` as text and as JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "apps/cli/doctor/doctor.h"
#include "meters/all/open_meters.h"
#include "model/device/power.h"
#include "recording/kernel_store.h"

namespace jouleprof::cli {

// What a sensor is used for, in a few words.
std::string use_of(const model::Sensor& sensor);

// The kernels that runs of this user remember.
struct RememberedKernels {
  std::filesystem::path path;  // empty: there is no folder for them
  Result<recording::KernelStoreState> state;
};
RememberedKernels remembered();

std::string doctor_text(const meters::MeterSet& found, const RememberedKernels& remembered,
                        const UnitLooks& units);
// Schema jouleprof.doctor/1. `calibration`: its result, where it was requested.
std::string doctor_json(const meters::MeterSet& found,
                        const std::optional<Result<void>>& calibration,
                        const RememberedKernels& remembered);

// A known power level of a board in words.

// "at rest 80.1 W ± 1 W, observed 2026-11-22 14:03:11 UTC at 31 °C"; `name`: "at rest".
std::string level_text(std::string_view name, const model::KnownLevel& level);

inline constexpr std::string_view kAtRest = "at rest";
inline constexpr std::string_view kHeld = "held by a context";

}  // namespace jouleprof::cli
