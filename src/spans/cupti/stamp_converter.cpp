#include "spans/cupti/stamp_converter.h"

#include <cmath>

namespace jouleprof::cupti {

void StampConverter::point(const ClockPoint& now) {
  const std::int64_t host = now.host.time_since_epoch().count();
  const std::int64_t real = now.real.time_since_epoch().count();
  drift_ = 0;
  step_ = 0;
  if (any_ && host > host_) {
    const std::int64_t gone = host - host_;
    const std::int64_t off = gone - (real - real_);  // of the wall clock, while that time went
    // Slewing changes the rate by 500 ppm at most; anything more is a step.
    if (std::abs(off) <= 1000 + gone / 1000) {
      drift_ = static_cast<double>(off) / static_cast<double>(real - real_ + 1);
    } else {
      step_ = -off;
    }
  }
  host_ = host;
  real_ = real;
  any_ = true;
}

}  // namespace jouleprof::cupti
