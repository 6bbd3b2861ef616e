#include "analysis/activity/kernel_variants.h"

#include <algorithm>
#include <cmath>

namespace jouleprof::analysis {
namespace {

constexpr double kApart = 1.07;       // ratio of one mean time to the next
constexpr double kLeastShare = 1e-4;  // of a signature's time, for a scope's mean to count
constexpr std::size_t kMost = 64;

}  // namespace

void KernelVariants::add(std::uint32_t kernel_class, std::uint32_t trace, std::uint32_t scope,
                         std::uint64_t launches, double busy) {
  if (launches == 0 || busy <= 0) return;
  Did& did = did_[{kernel_class, trace, scope}];
  did.launches += launches;
  did.busy += busy;
}

void KernelVariants::find() {
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
  std::sort(classes.begin(), classes.end(),
            [](const Class& a, const Class& b) { return a.busy > b.busy; });
  for (Class& c : classes) split(c.number, c.scopes);
}

void KernelVariants::split(std::uint32_t kernel_class, std::span<Did*> scopes) {
  std::sort(scopes.begin(), scopes.end(),
            [](const Did* a, const Did* b) { return a->launch() < b->launch(); });
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
  std::vector<std::uint64_t> launches(begins.size(), 0);
  variants_.resize(first + begins.size());
  std::size_t at = 0;
  for (Did* did : scopes) {
    while (at + 1 < begins.size() && did->launch() >= begins[at + 1]) ++at;
    did->variant = first + static_cast<std::uint32_t>(at);
    variants_[did->variant].busy += did->busy;
    launches[at] += did->launches;
  }
  for (std::size_t i = 0; i < begins.size(); ++i) {
    auto& variant = variants_[first + i];
    variant.kernel_class = kernel_class;
    variant.launch = variant.busy / static_cast<double>(launches[i]);
  }
  if (kernel_class >= of_class_.size()) of_class_.resize(kernel_class + 1);
  of_class_[kernel_class] = {first, static_cast<std::uint32_t>(variants_.size())};
}

std::pair<std::uint32_t, std::uint32_t> KernelVariants::of_class(std::uint32_t kernel_class) const {
  return kernel_class < of_class_.size() ? of_class_[kernel_class] : std::pair{0U, 0U};
}

std::uint32_t KernelVariants::of(std::uint32_t kernel_class, std::uint32_t trace,
                                 std::uint32_t scope) const {
  const auto found = did_.find({kernel_class, trace, scope});
  return found == did_.end() ? model::kNone : found->second.variant;
}

std::uint32_t KernelVariants::nearest(std::uint32_t kernel_class, double launch) const {
  const auto [first, last] = of_class(kernel_class);
  std::uint32_t best = model::kNone;
  double least = 1e300;
  for (std::uint32_t v = first; v < last; ++v) {
    const double apart = std::abs(std::log(std::max(launch, 1e-12) / variants_[v].launch));
    if (apart < least) {
      least = apart;
      best = v;
    }
  }
  return best;
}

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

namespace {

VariantMix::Busy busy_of(const KernelVariants& variants, ActivityTable::Replay& replay) {
  VariantMix::Busy busy;
  for (const auto& [k, ran] : replay.ran) {
    if (ran.launches == 0) continue;
    const auto variant = variants.nearest(k, ran.busy / static_cast<double>(ran.launches));
    if (variant == model::kNone) continue;
    replay.variants[k] = variant;
    busy[variant] = ran.busy;
  }
  return busy;
}

}  // namespace

void mix_replays(const KernelVariants& variants, std::vector<ActivityTable::Replay>& replays,
                 VariantMix& mix) {
  if (variants.all().empty()) return;
  std::vector<ActivityTable::Replay*> in_order;
  for (auto& replay : replays) in_order.push_back(&replay);
  std::sort(in_order.begin(), in_order.end(),
            [](const auto* a, const auto* b) { return a->begin < b->begin; });
  for (ActivityTable::Replay* replay : in_order) {
    mix.set(replay->begin, replay->end, busy_of(variants, *replay));
  }
}

}  // namespace jouleprof::analysis
