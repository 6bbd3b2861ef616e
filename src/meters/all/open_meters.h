// All meters; the one place that lists them; and a watch for sensors that appear later.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jouleprof/units.h"
#include "meters/meter.h"
#include "model/domain.h"

namespace jouleprof::meters {

struct MeterOptions {
  Demand demand;
  std::optional<Power> cpu_tdp;  // for the estimate
  // The GPUs that the user chose; others are not opened. Empty: all.
  std::vector<std::string> devices;
  // Whether the sensors of a running service may take the place of all meters: of the one that
  // JOULEPROF_SERVICE names ("off": none), else of one whose socket is in ROOT/run or
  // XDG_RUNTIME_DIR, unless JOULEPROF_NVML_LIBRARY names other devices.
  bool use_service = false;
  Duration process_period{};  // how often processes on GPUs are wanted; asked of the service only
  // In a virtual machine: what the host hands in takes the place of RAPL; see GuestMeter. Empty:
  // what JOULEPROF_GUEST_FILE names.
  std::filesystem::path guest_file = {};
  // A meter at the machine's supply; see parse_wall_spec. Empty: none.
  std::vector<std::string> wall_meters = {};
};

struct MeterSet {
  std::vector<std::unique_ptr<Meter>> meters;
  std::string gpu_driver;        // version of the NVIDIA driver; empty: not known
  std::vector<Missing> missing;  // of all meters, and of those that could not be opened
  bool is_of_service = false;    // the readings are those of a service that shares its sensors

  // At least one sensor of energy or power that is not a model.
  bool can_measure() const;
};

// The root of /proc and /sys that an environment variable names.
std::filesystem::path root_folder();

// Opens all sensors of this machine. Those that cannot be opened are in `missing`, and so are GPUs
// whose driver does not answer within 10 s. The domains gpu,
// cpu and dram are always present; without a sensor they carry the reason. JOULEPROF_NVML_LIBRARY
// names another NVML library; JOULEPROF_ROOT another root for /sys and /proc (for tests). Where a
// service shares its sensors, there is one meter, SharedMeter, instead of all but a wall meter;
// where a service is there and cannot be used, a meter's notice says why. Errors: invalid_argument
// for a device that does not exist, or a wall meter whose specification is wrong.
Result<MeterSet> open_meters(const MeterOptions& options);

// What this machine's interfaces offer now, by name: a GPU's UUID, "powercap intel-rapl:0",
// "hwmon2 amdgpu". A name stands for a zone whose counter can be read, and for a GPU that answers.
// Takes as long as the driver; 0.1 ms where that is loaded or absent.
std::set<std::string> offered_hardware();

// Notices sensors that appear while a program measures: a driver or a module that is loaded later,
// a board that was plugged in or came back. Thread safety: one thread calls everything.
class HardwareWatch {
 public:
  using Look = std::function<std::set<std::string>()>;

  // A first look, before the sensors are opened. Without GPUs: their driver may hang.
  explicit HardwareWatch(Look look = offered_hardware);
  HardwareWatch(const HardwareWatch&) = delete;
  HardwareWatch& operator=(const HardwareWatch&) = delete;
  ~HardwareWatch();  // a look that hangs is left behind with its thread

  // From now on `found` is called, from a thread of the watch, with the names of what appears. GPUs
  // that `opened` does not list count as well. Each is named once, until it was gone.
  void start(const std::vector<model::Domain>& opened, Duration period,
             std::function<void(const std::vector<std::string>&)> found);
  // No call of `found` begins after it.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace jouleprof::meters
