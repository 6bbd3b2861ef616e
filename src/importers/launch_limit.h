// How long the launches of one file may run.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.h"

namespace jouleprof::importers {

// A launch is kept in each bin of its run time. One whose time has a wrong unit may seem to run for
// days, and would take all memory and hours.
class LaunchLimit {
 public:
  // Adds a launch. False once they run for longer than in any real trace: an hour together, and a
  // second for each launch beyond that; or one of them for an hour.
  bool add(Duration run_time) {
    ++launches_;
    total_ += seconds(run_time);
    return seconds(run_time) <= kAny && total_ <= kAny + kEach * static_cast<double>(launches_);
  }

  // What is wrong, when add() returned false.
  std::string message() const {
    return fmt::format("{} run{} for {:.1f} h: check the unit of the times",
                       launches_ == 1 ? "one launch" : fmt::format("{} launches", launches_),
                       launches_ == 1 ? "s" : "", total_ / kHour);
  }

 private:
  static constexpr double kHour = 3600;  // seconds
  static constexpr double kAny = kHour;  // seconds
  static constexpr double kEach = 1;     // second

  double total_ = 0;  // seconds
  std::uint64_t launches_ = 0;
};

}  // namespace jouleprof::importers
