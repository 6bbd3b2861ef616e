// Division of an energy into parts that sum exactly to the whole.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "jouleprof/units.h"

namespace jouleprof::analysis {

// Divides `whole` in proportion to `weights` by the largest remainder method (Hamilton): each part
// is within one microjoule of its exact share, and the parts sum to `whole` exactly. A weight that
// is negative or not finite counts as zero. Empty when no weight is positive. A part of a
// non-negative whole is never negative.
inline std::vector<Energy> apportion(Energy whole, std::span<const double> weights) {
  __extension__ using Wide = __int128;
  double largest = 0;
  for (const double w : weights) {
    if (std::isfinite(w)) largest = std::max(largest, w);
  }
  if (largest <= 0) return {};
  // Weights as whole numbers with a sum below 2^60, so that a product with any energy fits 128
  // bits.
  const double room = std::ldexp(1.0, 60) / static_cast<double>(weights.size() + 1);
  std::vector<std::int64_t> parts_of;
  for (const double w : weights) {
    parts_of.push_back(
        static_cast<std::int64_t>((std::isfinite(w) ? std::max(w, 0.0) : 0.0) / largest * room));
  }
  const Wide total = std::accumulate(parts_of.begin(), parts_of.end(), Wide{0});
  if (total == 0) return {};

  const bool negative = whole < Energy{};
  const Wide amount = negative ? -Wide{whole.microjoules()} : Wide{whole.microjoules()};
  std::vector<std::int64_t> parts(weights.size());
  std::vector<Wide> remainders(weights.size());
  Wide left = amount;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Wide product = amount * parts_of[i];
    parts[i] = static_cast<std::int64_t>(product / total);
    remainders[i] = product % total;
    left -= parts[i];
  }
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  // What is left is less than the number of parts that have a remainder.
  for (std::size_t i = 0; left > 0; ++i, --left) ++parts[order[i]];

  std::vector<Energy> out;
  out.reserve(parts.size());
  for (const std::int64_t p : parts) out.push_back(Energy::microjoules(negative ? -p : p));
  return out;
}

}  // namespace jouleprof::analysis
