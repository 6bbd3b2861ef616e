// What one launch of a kernel took, from what all of them took.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity_profile.h"

namespace jouleprof::model {

struct JoulesRange {
  double joules = 0;
  double low = 0;  // of the 95 % interval
  double high = 0;
};

// A row of ActivityProfile::by_kernel, shared out among its launches by their durations.
struct KernelPower {
  const ActivityRow* row = nullptr;
  double watts = 0;  // above idle, while it ran
  // Of a launch of this duration, when all launches together lasted `total`. Their sum over all
  // launches is the row's energy, also where launches overlapped.
  JoulesRange energy(Duration duration, Duration total) const;
};

// Looks up kernels in a profile, which must outlive it.
class KernelPowers {
 public:
  explicit KernelPowers(const ActivityProfile& profile);

  // Nothing when the kernel is not in the profile, or no energy is known of it.
  std::optional<KernelPower> of(const KernelClass& kernel) const;
  // The row of a kernel, as a place in by_kernel; kNone when it is not in the profile.
  std::uint32_t row_of(const KernelClass& kernel) const;
  std::optional<KernelPower> at(std::uint32_t row) const;

 private:
  const ActivityProfile& profile_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> by_name_;
};

}  // namespace jouleprof::model
