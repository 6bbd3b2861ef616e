#include "report/chrome/kernel_energy.h"

namespace jouleprof::report {

JoulesRange& JoulesRange::operator+=(const JoulesRange& other) {
  joules += other.joules;
  low += other.low;
  high += other.high;
  resolved += other.resolved;
  provenance = model::combine(provenance, other.provenance);
  return *this;
}

JoulesRange JoulesRange::operator-(const JoulesRange& other) const {
  return {joules - other.joules, low - other.low, high - other.high, resolved - other.resolved,
          provenance};
}

JoulesRange launch_energy(const model::ActivityRow& row, Duration duration, Duration total) {
  if (total <= Duration::zero()) return {};
  const double part = seconds(duration) / seconds(total);
  return {row.energy->energy.joules() * part, row.energy->low().joules() * part,
          row.energy->high().joules() * part, row.resolvable ? 1 : 0, row.energy->provenance};
}

KernelRows::KernelRows(const model::ActivityProfile& profile) : profile_(profile) {
  for (std::uint32_t i = 0; i < profile.by_kernel.size(); ++i) {
    const auto& kernel = profile.by_kernel[i].kernel;
    if (kernel) by_name_[kernel->name].push_back(i);
  }
}

std::uint32_t KernelRows::row_of(const model::KernelClass& kernel) const {
  const auto found = by_name_.find(kernel.name);
  if (found == by_name_.end()) return model::kNone;
  for (const std::uint32_t i : found->second) {
    if (*profile_.by_kernel[i].kernel == kernel) return i;
  }
  return model::kNone;
}

}  // namespace jouleprof::report
