// Variants: launches of one kernel signature that take different times in different layers. Matrix
// products of different sizes may run in the same grid and draw different power.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "model/activity/activity.h"
#include "model/recording.h"

namespace jouleprof::analysis {

class KernelVariants {
 public:
  struct Variant {
    std::uint32_t kernel_class = 0;
    double launch = 0;  // mean seconds of one launch
    double busy = 0;    // seconds, of all added
  };

  // The activity of a signature for one scope of one process.
  void add(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope,
           std::uint64_t launches, double busy);

  // To be called after the last add(): splits a signature between scopes whose mean times are more
  // than 7 % apart. Scopes with little busy time join the next shorter ones. At most 64 variants.
  void find();

  // Sorted by the signatures' busy time, then by time of a launch.
  const std::vector<Variant>& all() const { return variants_; }
  // The variants of a signature, as indices of all() [first, last); empty: it is not split.
  std::pair<std::uint32_t, std::uint32_t> of_class(std::uint32_t kernel_class) const;
  // Index into all(); kNone: the signature is not split, or the scope was not added.
  std::uint32_t of(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope) const;
  // The variant with the closest time of a launch; kNone: the signature is not split.
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
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_class_;  // by signature
};

// The proportions of a signature's variants over time. Tracers report scopes about once a second;
// bins have none.

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

// In the re-run of a kernel, its variant is the one with the closest time of a launch, which is
// stored in Replay::variants.
void mix_replays(const KernelVariants& variants, std::vector<ActivityTable::Replay>& replays,
                 VariantMix& mix);

}  // namespace jouleprof::analysis
