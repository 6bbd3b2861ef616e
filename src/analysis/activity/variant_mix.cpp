#include "analysis/activity/variant_mix.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace jouleprof::analysis {
namespace {

std::int64_t second_of(double t) { return static_cast<std::int64_t>(std::floor(t)); }

}  // namespace

void VariantMix::add(double t, std::uint32_t variant, double busy) {
  by_second_[second_of(t)][variant] += busy;
}

void VariantMix::set(double begin, double end, Busy busy) {
  spans_.push_back({begin, end, std::move(busy)});
}

const VariantMix::Busy* VariantMix::at(double t) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), t,
                                      [](double x, const Span& s) { return x < s.begin; });
  if (after != spans_.begin() && t < std::prev(after)->end) return &std::prev(after)->busy;
  const auto found = by_second_.find(second_of(t));
  return found == by_second_.end() ? nullptr : &found->second;
}

std::vector<double> VariantMix::parts(std::uint32_t kernel_class, double t) const {
  const auto [first, last] = variants_.of_class(kernel_class);
  if (first == last) return {};
  std::vector<double> out(last - first, 0);
  double all = 0;
  if (const Busy* busy = at(t)) {
    for (auto i = busy->lower_bound(first); i != busy->end() && i->first < last; ++i) {
      out[i->first - first] = i->second;
      all += i->second;
    }
  }
  if (all <= 0) {
    for (std::uint32_t v = first; v < last; ++v) {
      all += out[v - first] = variants_.all()[v].busy;
    }
  }
  for (double& part : out) part /= all;
  return out;
}

}  // namespace jouleprof::analysis
