// What runs remember of kernels, from one run to the next.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/activity/activity_profile.h"
#include "model/recording.h"
#include "recording/kernel_store.h"

namespace jouleprof::cli {

// The store of this user: next to the calibration. Empty: there is no folder for it.
std::filesystem::path kernel_store_path();

// A failure prints a warning; the run goes on without memory.
class KernelMemory {
 public:
  // `driver`: of the GPUs; empty: nothing is remembered.
  explicit KernelMemory(const std::string& driver);

  // Gives the recording what earlier runs know of its kernels, and adds that to its file, so that
  // every later report has the same figures. `file` may be empty: there is none.
  void recall(model::Recording& recording, const std::filesystem::path& file) const;
  // Stores what the run resolved by its own readings.
  void store(const std::vector<model::ActivityProfile>& activity) const;

 private:
  bool enabled_;
  recording::KernelStore store_;
};

}  // namespace jouleprof::cli
