// A simulated GPU whose readings arrive as time goes by.
#pragma once

#include <utility>
#include <vector>

#include "analysis/live/live_energy.h"
#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis::simulated {

inline model::Domain gpu0() {
  model::Domain d;
  d.id = kGpu0;
  d.kind = model::DomainKind::kGpu;
  d.device = "gpu0";
  return d;
}

// A GPU whose readings arrive as time goes by.
class Live {
 public:
  explicit Live(Truth truth, Duration history = 10min, GpuSensors sensors = {})
      : sensors_(sensors),
        truth_(std::move(truth)),
        energy({gpu0()}, {sensors_.counter(), sensors_.ring()}, history) {
    samples_ = sensors_.samples(truth_, 0, truth_.end());
    reads_ = sensors_.reads(truth_, 0.05, truth_.end());
  }

  void until(double t) {
    model::Readings readings;
    for (; next_sample_ < samples_.size() && samples_[next_sample_].at <= at(t); ++next_sample_) {
      readings.powers.push_back(samples_[next_sample_]);
    }
    for (; next_read_ < reads_.size() && reads_[next_read_].after <= at(t); ++next_read_) {
      readings.counters.push_back(reads_[next_read_]);
    }
    energy.append(readings);
    energy.tidy(at(t));
  }

  Result<model::Measurement> window(double a, double b) { return energy.energy(at(a), at(b))[0]; }

 private:
  GpuSensors sensors_;
  Truth truth_;
  std::vector<model::PowerReading> samples_;
  std::vector<model::CounterReading> reads_;
  std::size_t next_sample_ = 0;
  std::size_t next_read_ = 0;

 public:
  LiveEnergy energy;
};

}  // namespace jouleprof::analysis::simulated
