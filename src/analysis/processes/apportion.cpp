#include "analysis/processes/apportion.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace jouleprof::analysis {
namespace {

__extension__ using Wide = __int128;

// Weights as whole numbers with a sum below 2^60, so that a product with any energy fits 128 bits.
std::vector<std::int64_t> whole_weights(std::span<const double> weights) {
  double largest = 0;
  for (const double w : weights) {
    if (std::isfinite(w)) largest = std::max(largest, w);
  }
  std::vector<std::int64_t> out(weights.size(), 0);
  if (largest <= 0) return out;
  const double room = std::ldexp(1.0, 60) / static_cast<double>(weights.size() + 1);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double w = std::isfinite(weights[i]) ? std::max(weights[i], 0.0) : 0.0;
    out[i] = static_cast<std::int64_t>(w / largest * room);
  }
  return out;
}

}  // namespace

std::vector<Energy> apportion(Energy whole, std::span<const double> weights) {
  const std::vector<std::int64_t> parts_of = whole_weights(weights);
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
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  // What is left is less than the number of parts that have a remainder.
  for (std::size_t i = 0; left > 0; ++i, --left) ++parts[order[i]];

  std::vector<Energy> out;
  out.reserve(parts.size());
  for (const std::int64_t p : parts) out.push_back(Energy::microjoules(negative ? -p : p));
  return out;
}

}  // namespace jouleprof::analysis
