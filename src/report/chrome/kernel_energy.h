// The energy of one launch, as a share of the energy of all launches of its kernel.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity/activity_profile.h"

namespace jouleprof::report {

struct JoulesRange {
  double joules = 0;
  double low = 0;  // of the 95 % interval
  double high = 0;
  std::int64_t resolved = 0;  // launches in it whose kernel is resolvable
  model::Provenance provenance = model::Provenance::kUnavailable;  // the weakest of its parts

  JoulesRange& operator+=(const JoulesRange& other);
  JoulesRange operator-(const JoulesRange& other) const;
};

// The energy of a launch of this duration, when all launches of `row` together lasted `total`.
// Their sum over all launches is the row's energy, also where launches overlapped. The row has an
// energy; where it is not resolvable, `joules` is of use in sums alone.
JoulesRange launch_energy(const model::ActivityRow& row, Duration duration, Duration total);

// Finds kernels in a profile, which must outlive it.
class KernelRows {
 public:
  explicit KernelRows(const model::ActivityProfile& profile);

  // The position in by_kernel; kNone when the kernel is not in the profile.
  std::uint32_t row_of(const model::KernelClass& kernel) const;

 private:
  const model::ActivityProfile& profile_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> by_name_;
};

}  // namespace jouleprof::report
