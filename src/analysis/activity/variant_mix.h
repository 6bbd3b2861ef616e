// In what proportions a class's variants ran at a time: scopes are told of about once a second, and
// bins do not know them.
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

  // About then, in seconds, this variant was busy for so long.
  void add(double t, std::uint32_t variant, double busy);
  // From begin to end they ran in these proportions, whatever add() says. In order, apart.
  void set(double begin, double end, Busy busy);

  // Of each variant of a class, in their order: the part of the class's time at t. Where nothing is
  // known of then, as in all of the recording. Empty: the class is not split.
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
