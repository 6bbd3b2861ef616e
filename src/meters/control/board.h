// The settings of one GPU, through NVML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/control/setting_control.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/gpu.h"

namespace jouleprof::meters::control {

// Thread-safe, as NVML is. The library must be initialised as long as a board is used: see
// NvmlSession.
class Board {
 public:
  Board(nvml::NvmlApi api, nvml::Gpu gpu) : api_(std::move(api)), gpu_(std::move(gpu)) {}

  const std::string& uuid() const { return gpu_.uuid; }
  std::string device() const { return gpu_.device(); }
  const nvml::Gpu& gpu() const { return gpu_; }

  // Errors: as the driver gives them; unsupported where it lacks the function.
  Result<KnobRange> range(Knob knob) const;
  // The value that was last requested. Absent for a clock: the driver does not report a lock.
  Result<std::optional<double>> requested(Knob knob) const;
  // The power limit that holds now: the least of all limiters'.
  std::optional<double> enforced_limit() const;

  // Errors: permission_denied; invalid_argument where the board does not accept the value.
  Result<void> set(Knob knob, double value) const;
  Result<void> unlock(Knob clock) const;

  std::optional<double> celsius() const;
  // The processes that compute on it; empty where the driver does not say.
  std::vector<unsigned> processes() const;
  // False: the driver forgets a limit when its last client ends. Absent: unknown.
  std::optional<bool> is_persistent() const;

 private:
  nvml::NvmlApi api_;
  nvml::Gpu gpu_;
};

// NVML, initialised. While one exists the driver keeps limits that were set.
class NvmlSession {
 public:
  // `library`: empty for the driver's. Errors: as load_nvml; of nvmlInit.
  static Result<NvmlSession> open(const std::string& library);
  NvmlSession(NvmlSession&& other) noexcept;
  NvmlSession& operator=(NvmlSession&&) = delete;
  NvmlSession(const NvmlSession&) = delete;
  ~NvmlSession();

  // The boards that `wanted` names, as select_gpus does; none named: all. Errors: of list_gpus and
  // select_gpus, and of a board without a handle.
  Result<std::vector<Board>> boards(const std::vector<std::string>& wanted) const;
  bool is_simulated() const { return api_.simulated; }

 private:
  explicit NvmlSession(nvml::NvmlApi api) : api_(std::move(api)), open_(true) {}
  nvml::NvmlApi api_;
  bool open_ = false;
};

}  // namespace jouleprof::meters::control
