#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "analysis/windows/windows.h"

namespace jouleprof::analysis {
namespace {

// Begin and duration are rounded each for itself: so much of an overlap is none.
constexpr Duration kRounding = std::chrono::milliseconds{2};

struct Span {
  HostTime begin;
  HostTime end;
  Energy energy;
};

// Of one setting of a sweep: a token or an epoch of it, and not all that ran.
bool is_sample(const model::ImportedWindow& window) {
  return std::any_of(window.labels.begin(), window.labels.end(),
                     [](const auto& label) { return label.name == "power_limit_watts"; });
}

}  // namespace

Result<ReportedEnergy> reported_energy(std::span<const model::ImportedWindow> windows,
                                       model::DomainId domain) {
  std::vector<Span> spans;
  std::size_t without_time = 0;
  bool has_samples = false;
  for (const auto& window : windows) {
    if (is_sample(window)) {
      has_samples = true;
      continue;
    }
    for (const auto& e : window.energies) {
      if (e.domain != domain) continue;
      if (!window.begin) ++without_time;
      const HostTime begin = window.begin.value_or(HostTime{});
      spans.push_back({begin, begin + window.duration, e.energy});
    }
  }
  if (spans.empty()) {
    return fail(Errc::kUnavailable, has_samples
                                        ? "its windows are samples of a sweep's settings, which "
                                          "have no sum"
                                        : "no window has an energy of it");
  }
  if (without_time > 0 && spans.size() > 1) {
    return fail(Errc::kUnavailable,
                "its windows have no time: some may lie within others, so they have no sum");
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  ReportedEnergy sum;
  const Span* outer = nullptr;
  for (const Span& span : spans) {
    if (outer == nullptr || span.begin + kRounding >= outer->end) {
      outer = &span;
      sum.energy += span.energy;
      ++sum.windows;
    } else if (span.end <= outer->end + kRounding && span.energy <= outer->energy) {
      ++sum.within;
    } else {
      return fail(Errc::kUnavailable,
                  "its windows overlap in part: what they share is in both, so they have no sum");
    }
  }
  return sum;
}

}  // namespace jouleprof::analysis
