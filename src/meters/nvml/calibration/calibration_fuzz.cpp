// Texts of calibration.json: whatever it holds, no impossible trait or level comes out, and what is
// stored next is there.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "meters/nvml/calibration/calibration_file.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;
namespace nvml = meters::nvml;

namespace {

void check(const model::SensorTraits& traits) {
  for (const auto& time : {traits.refresh, traits.window, traits.lag, traits.rise}) {
    if (time && (*time < Duration{} || *time > std::chrono::seconds{100})) std::abort();
  }
}

void check(const std::optional<model::KnownLevel>& level) {
  if (!level) return;
  if (level->power <= Power{} || level->power.watts() > 1e5) std::abort();
  if (level->spread < Power{} || level->spread.watts() > 2e5) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("XDG_STATE_HOME", fuzz_folder().c_str(), 1);
  std::filesystem::create_directories(nvml::calibration_path().parent_path());
  write_seed("calibration", R"({"schema": "jouleprof.calibration/2", "devices": {"GPU-1": {
 "counter": {"refresh_seconds": 0.1, "lag_seconds": 0.002},
 "ring": {"refresh_seconds": 0.02, "window_seconds": 0.025, "rise_seconds": 0.02},
 "instant": {}, "average": {"window_seconds": 1},
 "rest": [{"power_watts": 80.25, "spread_watts": 0.5, "temperature_celsius": 31,
  "observed_real_nanoseconds": 1795308750123456789}],
 "held": [{"power_watts": 127, "spread_watts": 0.25, "observed_real_nanoseconds": 1}]}}})");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  write_bytes(nvml::calibration_path(), text);
  for (const auto& [uuid, traits] : nvml::read_calibrations()) {
    for (const auto& sensor : {traits.counter, traits.ring, traits.instant, traits.average}) {
      check(sensor);
    }
  }
  for (const auto& [uuid, levels] : nvml::read_levels()) {
    check(levels.rest);
    check(levels.held);
  }
  const model::KnownLevel rest{Power::watts(80), Power::watts(0.5), 31.0,
                               RealTime{std::chrono::hours{24}}};
  if (!nvml::keep_levels({{"GPU-1", {rest, {}}}})) std::abort();
  const auto kept = nvml::read_levels();
  const auto found = kept.find("GPU-1");
  if (found == kept.end() || !found->second.rest) std::abort();
  check(found->second.rest);
  return 0;
}
