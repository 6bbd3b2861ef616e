#include "meters/control/setting_control.h"

#include <algorithm>
#include <cmath>

#include "model/sweep.h"

namespace jouleprof::meters::control {
namespace {

using Words = model::KnobWords;
using model::kKnobWords;

const Words& words(Knob knob) { return kKnobWords[static_cast<std::size_t>(knob)]; }

template <typename Matches>
std::optional<Knob> find(const Matches& matches) {
  const auto at = std::find_if(kKnobWords.begin(), kKnobWords.end(), matches);
  if (at == kKnobWords.end()) return std::nullopt;
  return static_cast<Knob>(at - kKnobWords.begin());
}

}  // namespace

std::optional<Knob> parse_knob(std::string_view word) {
  return find([&](const Words& w) { return w.word == word; });
}
std::optional<Knob> knob_of_label(std::string_view label) {
  return find([&](const Words& w) { return w.label == label; });
}
std::string_view word_of(Knob knob) { return words(knob).word; }
std::string_view name_of(Knob knob) { return words(knob).name; }
std::string_view unit_of(Knob knob) { return words(knob).unit; }
std::string_view label_of(Knob knob) { return words(knob).label; }

double KnobRange::nearest(double value) const {
  if (steps.empty()) return std::clamp(std::round(value), std::ceil(least), std::floor(most));
  return *std::min_element(steps.begin(), steps.end(), [value](double a, double b) {
    return std::abs(a - value) < std::abs(b - value);
  });
}

KnobRange KnobRange::common(const KnobRange& other) const {
  KnobRange both{std::max(least, other.least), std::min(most, other.most), {}};
  if (steps.empty() || other.steps.empty()) {
    for (const double step : steps.empty() ? other.steps : steps) {
      if (step >= both.least && step <= both.most) both.steps.push_back(step);
    }
    return both;
  }
  std::set_intersection(steps.begin(), steps.end(), other.steps.begin(), other.steps.end(),
                        std::back_inserter(both.steps));
  if (both.steps.empty()) return {1, 0, {}};
  both.least = both.steps.front();
  both.most = both.steps.back();
  return both;
}

}  // namespace jouleprof::meters::control
