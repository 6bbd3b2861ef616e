// What a meter at a machine's power supply reported: a scope of its own, never part of a total.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace jouleprof::model {

struct WallLog {
  struct Reading {
    RealTime at{};
    double watts = 0;

    bool operator==(const Reading&) const = default;
  };
  std::string file;
  std::string format;             // "wattmetre-read", "ipmi", "redfish" or "csv"
  std::string column;             // of the power, where the file has columns
  std::vector<Reading> readings;  // by time, no two at one time
  std::vector<std::string> warnings;
  std::optional<double> error{};  // half of its 95 % interval, where known: 0.01 is 1 %
};

}  // namespace jouleprof::model
