// The energy of several windows of one domain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "model/profile.h"

namespace jouleprof::model {

// The gain error's part of a measurement's interval, in joules: gain^2 = error^2 - repeatability^2.
inline double gain_joules(const Measurement& m) {
  const double repeatability = m.repeatability.joules();
  const double error = m.error.joules();
  return std::sqrt(std::max(error * error - repeatability * repeatability, 0.0));
}

// Adds up windows that one timeline measured. What is uncertain of a window lies at its edges and
// in its own samples, and is another draw for each window: repeatability adds in quadrature. The
// sensor's gain is off by the same factor in all of them: that part of `error` adds linearly.
//   repeatability = sqrt(sum of repeatability^2)
//   error = sqrt(repeatability^2 + (sum of gain)^2)
// A window that ends where the next begins errs against it; the sum then says too much, never too
// little. Windows that overlap or nest share errors, and the sum may say too little.
class WindowSum {
 public:
  void add(const Measurement& m) {
    const double repeatability = m.repeatability.joules();
    square_ += repeatability * repeatability;
    gain_ += gain_joules(m);
    if (!sum_) {
      sum_ = m;
    } else {
      sum_->energy += m.energy;
      sum_->provenance = combine(sum_->provenance, m.provenance);
    }
    ++count_;
  }

  std::size_t count() const { return count_; }
  // Absent when nothing was added. Sensor and method are the first window's.
  std::optional<Measurement> sum() const {
    if (!sum_) return std::nullopt;
    Measurement m = *sum_;
    m.repeatability = Energy::joules(std::sqrt(square_));
    m.error = Energy::joules(std::sqrt(square_ + gain_ * gain_));
    return m;
  }

 private:
  std::optional<Measurement> sum_;
  std::size_t count_ = 0;
  double square_ = 0;  // of the repeatabilities, J^2
  double gain_ = 0;    // J
};

}  // namespace jouleprof::model
