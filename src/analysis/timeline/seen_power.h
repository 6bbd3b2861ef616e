// What a sensor said, with the time that it spoke of.
#pragma once

namespace jouleprof::analysis {

// The mean power, as the sensor saw it, over [begin, end] of a TimeBase.
struct SeenPower {
  double begin = 0;
  double end = 0;
  double watts = 0;
  bool counter = false;  // an energy counter's increment between two of its edges; else a sample
};

}  // namespace jouleprof::analysis
