// The processes listed on one GPU, in rounds of readings.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::analysis {

class GpuRounds {
 public:
  GpuRounds(const std::vector<model::GpuProcessReading>& readings, const model::Domain& domain);

  // Each process that used the GPU around `t`, once: those of the round after it, because a reading
  // of utilisation is a mean over the time before it, and those of the round before it that the
  // later one does not list, with unknown utilisation. A round more than 1.5 median intervals away
  // does not count, except for processes that the rounds before and after `t` both list.
  std::vector<model::GpuProcessReading> around(HostTime t) const;

 private:
  using Round = std::span<const model::GpuProcessReading>;
  Round round(std::size_t index) const;

  std::vector<model::GpuProcessReading> readings_;
  std::vector<std::size_t> rounds_;  // where each begins
  Duration usual_ = std::chrono::seconds{2};
};

}  // namespace jouleprof::analysis
