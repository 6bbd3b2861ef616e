// Variants: launches of one kernel signature that take different times in different layers. Matrix
// products of different sizes may run in the same grid and draw different power.
#pragma once

#include <algorithm>
#include <cmath>
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
    std::uint64_t launches = 0;
  };

  // The activity of a signature for one scope of one process.
  void add(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope,
           std::uint64_t launches, double busy) {
    if (launches == 0 || busy <= 0) return;
    Did& did = did_[{kernel_class, trace, scope}];
    did.launches += launches;
    did.busy += busy;
  }

  // To be called after the last add(): splits a signature between scopes whose mean times are more
  // than 7 % apart. Scopes with little busy time join the next shorter ones. At most 64 variants.
  void find() {
    struct Class {
      std::uint32_t number;
      double busy;
      std::vector<Did*> scopes;
    };
    std::vector<Class> classes;
    for (auto& [key, did] : did_) {
      if (classes.empty() || classes.back().number != std::get<0>(key)) {
        classes.push_back({std::get<0>(key), 0, {}});
      }
      classes.back().busy += did.busy;
      classes.back().scopes.push_back(&did);
    }
    // In order of busy time, because the number of variants is limited.
    std::ranges::sort(classes, std::ranges::greater{}, &Class::busy);
    for (Class& c : classes) split(c.number, c.scopes);
  }

  // Sorted by the signatures' busy time, then by time of a launch.
  const std::vector<Variant>& all() const { return variants_; }
  // The variants of a signature, as indices of all() [first, last); empty: it is not split.
  std::pair<std::uint32_t, std::uint32_t> of_class(std::uint32_t kernel_class) const {
    return kernel_class < of_class_.size() ? of_class_[kernel_class] : std::pair{0U, 0U};
  }
  // Index into all(); kNone: the signature is not split, or the scope was not added.
  std::uint32_t of(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope) const {
    const auto found = did_.find({kernel_class, trace, scope});
    return found == did_.end() ? model::kNone : found->second.variant;
  }
  // The variant with the closest time of a launch, of those with a tenth of `stands_for` launches
  // or more; kNone: the signature is not split.
  std::uint32_t nearest(std::uint32_t kernel_class, double launch, std::uint64_t stands_for) const {
    const auto [first, last] = of_class(kernel_class);
    std::uint32_t best = model::kNone;
    double least = 1e300;
    for (std::uint32_t v = first; v < last; ++v) {
      if (kMostRare * variants_[v].launches < stands_for) continue;
      const double apart = std::abs(std::log(std::max(launch, 1e-12) / variants_[v].launch));
      if (apart < least) {
        least = apart;
        best = v;
      }
    }
    return best;
  }

 private:
  static constexpr double kApart = 1.07;       // ratio of one mean time to the next
  static constexpr double kLeastShare = 1e-4;  // of a signature's time, for a scope's mean to count
  static constexpr std::size_t kMost = 64;
  static constexpr std::uint64_t kMostRare = 10;

  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // class, trace, scope
  struct Did {
    std::uint64_t launches = 0;
    double busy = 0;
    std::uint32_t variant = model::kNone;
    double launch() const { return busy / static_cast<double>(launches); }
  };

  void split(std::uint32_t kernel_class, std::span<Did*> scopes) {
    std::ranges::sort(scopes, [](const Did* a, const Did* b) { return a->launch() < b->launch(); });
    double all = 0;
    for (const Did* did : scopes) all += did->busy;
    std::vector<double> begins;  // of variants, by time of a launch
    double last = 0;
    for (const Did* did : scopes) {
      if (did->busy < kLeastShare * all) continue;
      if (begins.empty() || did->launch() > kApart * last) begins.push_back(did->launch());
      last = did->launch();
    }
    if (begins.size() < 2 || variants_.size() + begins.size() > kMost) return;
    const auto first = static_cast<std::uint32_t>(variants_.size());
    variants_.resize(first + begins.size());
    std::size_t at = 0;
    for (Did* did : scopes) {
      while (at + 1 < begins.size() && did->launch() >= begins[at + 1]) ++at;
      did->variant = first + static_cast<std::uint32_t>(at);
      variants_[did->variant].busy += did->busy;
      variants_[did->variant].launches += did->launches;
    }
    for (std::size_t i = 0; i < begins.size(); ++i) {
      auto& variant = variants_[first + i];
      variant.kernel_class = kernel_class;
      variant.launch = variant.busy / static_cast<double>(variant.launches);
    }
    if (kernel_class >= of_class_.size()) of_class_.resize(kernel_class + 1);
    of_class_[kernel_class] = {first, static_cast<std::uint32_t>(variants_.size())};
  }

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
  void add(double t, std::uint32_t variant, double busy) {
    by_second_[second_of(t)][variant] += busy;
  }
  // Sets the proportions in [begin, end), instead of those from add(). In order, disjoint.
  void set(double begin, double end, Busy busy) { spans_.push_back({begin, end, std::move(busy)}); }

  // The share of each variant of a signature in its time at `t`, in order. Without a report of that
  // second: the shares of the whole recording. Empty: the signature is not split.
  std::vector<double> parts(std::uint32_t kernel_class, double t) const {
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

 private:
  static std::int64_t second_of(double t) { return static_cast<std::int64_t>(std::floor(t)); }

  struct Span {
    double begin, end;
    Busy busy;
  };

  const Busy* at(double t) const {
    const auto after = std::ranges::upper_bound(spans_, t, {}, &Span::begin);
    if (after != spans_.begin() && t < std::prev(after)->end) return &std::prev(after)->busy;
    const auto found = by_second_.find(second_of(t));
    return found == by_second_.end() ? nullptr : &found->second;
  }

  const KernelVariants& variants_;
  std::map<std::int64_t, Busy> by_second_;
  std::vector<Span> spans_;
};

// In the re-run of a kernel, its variant is the one with the closest time of a launch, which is
// stored in Replay::variants. A loop runs at another clock, so that a variant of a few launches, as
// when XLA tries its kernels, may be closer than that of nearly all which the loop stands for.
inline void mix_replays(const KernelVariants& variants, std::vector<ActivityTable::Replay>& replays,
                        VariantMix& mix) {
  if (variants.all().empty()) return;
  std::vector<ActivityTable::Replay*> in_order;
  for (auto& replay : replays) in_order.push_back(&replay);
  std::ranges::sort(in_order, [](const auto* a, const auto* b) { return a->begin < b->begin; });
  for (ActivityTable::Replay* replay : in_order) {
    VariantMix::Busy busy;
    for (const auto& [k, ran] : replay->ran) {
      if (ran.launches == 0) continue;
      const auto variant =
          variants.nearest(k, ran.busy / static_cast<double>(ran.launches), replay->of_program);
      if (variant == model::kNone) continue;
      replay->variants[k] = variant;
      busy[variant] = ran.busy;
    }
    mix.set(replay->begin, replay->end, std::move(busy));
  }
}

}  // namespace jouleprof::analysis
