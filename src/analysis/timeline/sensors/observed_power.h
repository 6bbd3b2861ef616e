// One observation of power by a sensor, with the time that it covers.
#pragma once

namespace jouleprof::analysis {

// The mean power over [begin, end] of a TimeBase, not corrected for the sensor's first-order lag.
struct ObservedPower {
  double begin = 0;
  double end = 0;
  double watts = 0;
  bool counter = false;  // an energy counter's increment between two updates; else a sample
};

}  // namespace jouleprof::analysis
