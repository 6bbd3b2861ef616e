#include "apps/cli/kernel_memory.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/say.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "recording/writer.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

void warn(const Error& error) { say("jouleprof: warning: {}\n", report::printable(error.message)); }

}  // namespace

std::filesystem::path kernel_store_path() {
  const auto calibration = meters::nvml::calibration_path();
  return calibration.empty() ? calibration : calibration.parent_path() / "kernels.sqlite";
}

KernelMemory::KernelMemory(const std::string& driver)
    : enabled_(!driver.empty() && !kernel_store_path().empty()),
      store_(kernel_store_path(), driver) {}

void KernelMemory::recall(model::Recording& recording, const std::filesystem::path& file) const {
  if (!enabled_ || recording.traces.empty()) return;
  auto found = store_.find(recording);
  if (!found) return warn(found.error());
  if (!file.empty()) {
    // Figures that the file does not explain must not be printed.
    if (const auto added = recording::add_remembered(file, *found); !added) {
      return warn(added.error());
    }
  }
  recording.remembered = std::move(*found);
}

void KernelMemory::store(const std::vector<model::ActivityProfile>& activity) const {
  if (!enabled_) return;
  for (const auto& device : activity) {
    if (const auto stored = store_.add(device.resolved); !stored) return warn(stored.error());
  }
}

}  // namespace jouleprof::cli
