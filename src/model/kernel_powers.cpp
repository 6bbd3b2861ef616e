#include "model/kernel_powers.h"

namespace jouleprof::model {

JoulesRange KernelPower::energy(Duration duration, Duration total) const {
  if (total <= Duration::zero()) return {};
  const double part = seconds(duration) / seconds(total);
  return {row->energy->energy.joules() * part, row->energy->low().joules() * part,
          row->energy->high().joules() * part};
}

KernelPowers::KernelPowers(const ActivityProfile& profile) : profile_(profile) {
  for (std::uint32_t i = 0; i < profile.by_kernel.size(); ++i) {
    const auto& kernel = profile.by_kernel[i].kernel;
    if (kernel) by_name_[kernel->name].push_back(i);
  }
}

std::uint32_t KernelPowers::row_of(const KernelClass& kernel) const {
  const auto found = by_name_.find(kernel.name);
  if (found == by_name_.end()) return kNone;
  for (const std::uint32_t i : found->second) {
    if (*profile_.by_kernel[i].kernel == kernel) return i;
  }
  return kNone;
}

std::optional<KernelPower> KernelPowers::at(std::uint32_t row) const {
  if (row >= profile_.by_kernel.size()) return std::nullopt;
  const ActivityRow& r = profile_.by_kernel[row];
  if (!r.energy || r.busy <= Duration::zero()) return std::nullopt;
  return KernelPower{&r, r.energy->energy.joules() / seconds(r.busy)};
}

std::optional<KernelPower> KernelPowers::of(const KernelClass& kernel) const {
  return at(row_of(kernel));
}

}  // namespace jouleprof::model
