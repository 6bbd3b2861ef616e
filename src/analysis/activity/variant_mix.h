// The proportions of a signature's variants over time. Tracers report scopes about once a second;
// bins have none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/activity/kernel_variants.h"

namespace jouleprof::analysis {

class VariantMix {
 public:
  using Busy = std::map<std::uint32_t, double>;  // seconds, by variant

  // `variants` outlives it.
  explicit VariantMix(const KernelVariants& variants) : variants_(variants) {}

  // Adds `busy` seconds of a variant in the second that contains `t`.
  void add(double t, std::uint32_t variant, double busy);
  // Sets the proportions in [begin, end), instead of those from add(). In order, disjoint.
  void set(double begin, double end, Busy busy);

  // The share of each variant of a signature in its time at `t`, in order. Without a report of that
  // second: the shares of the whole recording. Empty: the signature is not split.
  std::vector<double> parts(std::uint32_t kernel_class, double t) const;

 private:
  struct Span {
    double begin, end;
    Busy busy;
  };

  const Busy* at(double t) const;

  const KernelVariants& variants_;
  std::map<std::int64_t, Busy> by_second_;
  std::vector<Span> spans_;
};

}  // namespace jouleprof::analysis
