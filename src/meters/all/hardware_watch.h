// Notices sensors that appear while a program measures: a driver or a module that is loaded later,
// a board that was plugged in or came back.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::meters {

// What this machine's interfaces offer now, by name: a GPU's UUID, "powercap intel-rapl:0",
// "hwmon2 amdgpu". A name stands for a zone whose counter can be read, and for a GPU that answers.
// Takes as long as the driver; 0.1 ms where that is loaded or absent.
std::set<std::string> offered_hardware();

// Thread safety: one thread calls everything.
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
