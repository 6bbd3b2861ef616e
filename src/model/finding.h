// What a person could do about a part of the energy.
#pragma once

#include <string>

#include "jouleprof/units.h"

namespace jouleprof::model {

struct Finding {
  std::string code;        // stable, for machines: "waiting", "power_limit", ...
  std::string device;      // "gpu0"; empty: of the whole machine
  std::string text;        // a sentence without the energy
  std::string next_step;   // a sentence
  Energy energy;           // of the device, in the time or by the launches that the text names
  Energy error;            // half of its 95 % interval
  double share = 0;        // of the device's energy, or of the machine's
  bool estimated = false;  // the energy is an estimate, whatever the sensor
};

}  // namespace jouleprof::model
