// The settings of GPUs that a sweep changes: knobs, their ranges, and one board through NVML.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/gpu.h"

namespace jouleprof::meters::control {

enum class Knob { kPowerLimit, kSmClock, kMemoryClock };

std::optional<Knob> parse_knob(std::string_view word);  // power, sm-clock, memory-clock
std::string_view word_of(Knob knob);                    // the same word
std::string_view name_of(Knob knob);                    // "power limit", "SM clock", ...
std::string_view unit_of(Knob knob);                    // "W", "MHz"
std::string_view label_of(Knob knob);  // "power_limit_watts", "sm_clock_megahertz", ...
std::optional<Knob> knob_of_label(std::string_view label);

// The values that a board accepts, in the knob's unit.
struct KnobRange {
  double least = 0;
  double most = 0;
  std::vector<double> steps;  // ascending; empty: each whole number from least to most

  // The nearest value that the board accepts.
  double nearest(double value) const;
  // The values that this board and another accept; empty (most < least) without any.
  KnobRange common(const KnobRange& other) const;
};

// --- Changing the setting of the boards of one job, with a way back ---

// What one board reports of its setting.
struct ReadBack {
  std::string device;
  std::optional<double> requested;       // absent: the driver does not report it
  std::optional<double> enforced_watts;  // the power limit that holds
  std::optional<double> celsius;
};

// Thread safety: none, unless an implementation says otherwise.
class SettingControl {
 public:
  virtual ~SettingControl() = default;

  // The range that all boards have.
  virtual const KnobRange& range() const = 0;
  // The value before the first change; absent where boards differ, or the driver does not report
  // it.
  virtual std::optional<double> found() const = 0;

  // Sets all boards and reads them back. Errors: permission_denied, with what to ask for;
  // unavailable after the guard died.
  virtual Result<std::vector<ReadBack>> apply(double value) = 0;
  virtual std::vector<ReadBack> read_back() const = 0;
  // Restores what was found. May be called again. Errors: for the first board that was left: of the
  // driver; unavailable where another program or the driver has changed the setting since.
  virtual Result<void> restore() = 0;
  // Why no more changes are made: the guard died, and the settings were restored.
  virtual std::optional<Error> lost() const = 0;
};

// The settings of one GPU, through NVML.
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
  // Opens NVML as open_nvml() does.
  static Result<NvmlSession> open(const std::string& library);

  // Errors: of list_gpus.
  Result<std::vector<nvml::Gpu>> gpus() const { return nvml::list_gpus(*api_); }
  // The boards that `wanted` names, as select_gpus does; none named: all. Errors: of list_gpus and
  // select_gpus, and of a board without a handle.
  Result<std::vector<Board>> boards(const std::vector<std::string>& wanted) const;
  bool is_simulated() const { return api_->simulated; }

 private:
  explicit NvmlSession(std::shared_ptr<const nvml::NvmlApi> api) : api_(std::move(api)) {}
  std::shared_ptr<const nvml::NvmlApi> api_;
};

}  // namespace jouleprof::meters::control
