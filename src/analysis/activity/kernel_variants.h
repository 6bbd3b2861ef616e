// Launches of one class that take another time in other layers: a matrix product of another size
// may run in the same grid, and draws another power.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "model/activity.h"

namespace jouleprof::analysis {

class KernelVariants {
 public:
  struct Variant {
    std::uint32_t kernel_class = 0;
    double launch = 0;  // mean seconds of one
    double busy = 0;    // seconds, of all that was added
  };

  // What a class did for one scope of one process.
  void add(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope,
           std::uint64_t launches, double busy);

  // When all is added: a class is split where its scopes' mean times lie more than 7 % apart, with
  // nothing between. Scopes with little of a class go with the next shorter; at most 64 variants.
  void find();

  // In the order of their classes, then of time.
  const std::vector<Variant>& all() const { return variants_; }
  // Those of a class, as indices of all() [first, last); none: it is not split.
  std::pair<std::uint32_t, std::uint32_t> of_class(std::uint32_t kernel_class) const;
  // Busy seconds of the variants that scopes of a trace ran, by index of all(). `is(scope)`: which.
  template <class Is>
  std::map<std::uint32_t, double> busy_of(std::uint32_t trace, Is is) const {
    std::map<std::uint32_t, double> out;
    for (const auto& [key, did] : did_) {
      if (std::get<1>(key) != trace || did.variant == model::kNone || !is(std::get<2>(key)))
        continue;
      out[did.variant] += did.busy;
    }
    return out;
  }
  // Index into all(); kNone: the class is not split, or the scope was not added.
  std::uint32_t of(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope) const;
  // The one whose launches take most nearly so long; kNone: the class is not split.
  std::uint32_t nearest(std::uint32_t kernel_class, double launch) const;

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // class, trace, scope
  struct Did {
    std::uint64_t launches = 0;
    double busy = 0;
    std::uint32_t variant = model::kNone;
    double launch() const { return busy / static_cast<double>(launches); }
  };

  void split(std::uint32_t kernel_class, std::span<Did*> scopes);

  std::map<Key, Did> did_;
  std::vector<Variant> variants_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> of_class_;
};

}  // namespace jouleprof::analysis
