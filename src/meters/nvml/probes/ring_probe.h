// Reads the driver's ring of stamped power samples.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/probes/probe_reader.h"

namespace jouleprof::meters::nvml {

// A ring: its capacity and its samples at one read.
struct RingContent {
  abi::ValueType value_type{};
  std::vector<abi::Sample> samples;  // as the driver orders them
  unsigned capacity = 0;
  // The median distance of neighbouring stamps; absent with fewer than eight samples.
  std::optional<Duration> refresh() const;
};

// Fills `ring` with everything in the ring of `type` (total or module power), and asks for its
// capacity first where that is zero. Returns the driver's code; kNoData when it is empty.
abi::Return read_ring(const NvmlApi& api, abi::Device device, abi::SamplingType type,
                      RingContent& ring);

// The driver stamps samples with the wall clock. Each read fetches the whole ring and takes the
// samples whose stamps were not in it at the last read, so that a wall clock set back hides none.
// Stamps become host time with the clocks' offset at this read, or at the last read where only that
// places the sample between the two. Samples that a step of the wall clock makes ambiguous, or that
// were overwritten unread, are reported as failures.
class RingProbe : public ProbeReader {
 public:
  // `known`: the ring's samples when the sensor was found; they are not reported.
  RingProbe(const NvmlApi& api, abi::Device device, abi::SamplingType type, model::SensorId sensor,
            RingContent known, Duration refresh, Duration period, const NvmlClock& clock);

  HostTime read(model::Readings& out) override;
  void set_period(Duration period) { period_ = period; }

 private:
  std::optional<HostTime> place(std::uint64_t stamp, const ClockPoint& now) const;
  void take(const ClockPoint& now, model::Readings& out);
  void finish(std::size_t unplaced, const ClockPoint& now, model::Readings& out);
  void remember();

  const NvmlApi& api_;
  abi::Device device_;
  abi::SamplingType type_;
  model::SensorId sensor_;
  Duration refresh_;
  Duration period_;
  const NvmlClock& clock_;
  ReadState state_;
  RingContent ring_;
  std::vector<std::uint64_t> seen_;  // the stamps of the last read, sorted
  ClockPoint last_read_;
  HostTime newest_;                         // host time of the latest sample so far
  bool first_ = true;                       // samples from before the first read are not missed
  std::vector<model::PowerReading> fresh_;  // kept to spare allocations
};

}  // namespace jouleprof::meters::nvml
