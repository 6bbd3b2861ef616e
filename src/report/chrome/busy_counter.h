// How busy a device was, as the counter of its process in a Chrome trace. Private to this folder.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "report/chrome/chrome_text.h"

namespace jouleprof::report {

class BusyCounter {
 public:
  // Bins that are shorter than `step` are added up to steps, which count from `origin`.
  BusyCounter(ChromeSink& sink, std::uint32_t pid, HostTime origin, Duration step)
      : sink_(sink), pid_(pid), origin_(origin), step_(step) {}

  // A bin and the nanoseconds in it for which the device was busy. In order; what lies in two
  // steps is split by time.
  void add(HostTime begin, Duration length, std::uint64_t busy);
  void finish();

 private:
  void add(HostTime step, double busy);
  void write_step();
  void put(HostTime begin, HostTime end, double busy);
  void write(HostTime t, double share);

  ChromeSink& sink_;
  std::uint32_t pid_;
  HostTime origin_;
  Duration step_;
  std::optional<HostTime> begin_;  // of the step that is not written yet
  double busy_ = 0;                // nanoseconds, in it
  std::optional<HostTime> end_;    // of what is written
};

}  // namespace jouleprof::report
