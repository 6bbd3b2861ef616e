#include "analysis/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/median.h"
#include "base/text.h"
#include "model/sweep.h"

namespace jouleprof::analysis {
namespace {

using Label = model::ImportedWindow::Label;

template <typename Part>
double mean(const std::vector<SweepSample>& samples, const Part& part) {
  double sum = 0;
  for (const auto& sample : samples) sum += part(sample);
  return sum / static_cast<double>(samples.size());
}

const Label* knob_of(const model::ImportedWindow& window) {
  for (const auto& label : window.labels) {
    if (model::knob_words(label.name) != nullptr) return &label;
  }
  return nullptr;
}

std::optional<double> gpu_joules(const model::ImportedWindow& window,
                                 const std::set<model::DomainId>& gpus) {
  double sum = 0;
  bool any = false;
  for (const auto& part : window.energies) {
    if (!gpus.contains(part.domain)) continue;
    sum += part.energy.joules();
    any = true;
  }
  return any && sum > 0 ? std::optional(sum) : std::nullopt;
}

void add(Sweep& sweep, double setting, const SweepSample& sample) {
  const auto at = std::find_if(sweep.points.begin(), sweep.points.end(),
                               [&](const SweepPoint& p) { return p.setting == setting; });
  (at == sweep.points.end() ? sweep.points.emplace_back(SweepPoint{setting, {}}) : *at)
      .samples.push_back(sample);
}

// A limit that held the work back in no reading, and above all that it draws.
bool is_below_limit(const model::SweepRun& run) {
  constexpr double kBelow = 0.97;
  return run.limited_by_power && *run.limited_by_power == 0 && run.peak_watts &&
         *run.peak_watts <= kBelow * run.setting;
}

// Highest first.
std::vector<double> settings_of(const model::SweepPlan& plan,
                                const std::vector<model::SweepRun>& runs) {
  if (!plan.observe) return plan.settings;
  std::set<double, std::greater<>> found;
  for (const auto& run : runs) found.insert(run.setting);
  return {found.begin(), found.end()};
}

std::optional<UnrankedSetting> why_unranked(const model::SweepPlan& plan,
                                            const std::vector<model::SweepRun>& runs,
                                            double setting, double reference) {
  std::string reason;
  std::size_t ranked = 0;
  std::size_t below = 0;
  double peak = 0;
  for (const auto& run : runs) {
    if (run.setting != setting || run.is_warm_up()) continue;
    if (!run.is_ranked()) {
      reason = run.unranked;
      continue;
    }
    ++ranked;
    below += is_below_limit(run) ? 1 : 0;
    peak = std::max(peak, run.peak_watts.value_or(0));
  }
  if (ranked == 0) {
    if (reason.empty()) return std::nullopt;
    return UnrankedSetting{setting, reason, false};
  }
  const bool is_limit = plan.knob == "power_limit_watts";
  if (!is_limit || setting == reference || below < ranked) return std::nullopt;
  return UnrankedSetting{setting,
                         fmt::format("never reached: the work draws at most {:.0f} W", peak), true};
}

std::string name_of(const model::SweepPlan& plan, const model::SweepRun& run) {
  return plan.observe ? fmt::format("run {}", run.number)
                      : fmt::format("run {}, block {}", run.number, run.block);
}

// Subtracts from each value the median of its group's, where a group has at least three.
template <typename Key>
void subtract_medians(const std::vector<const model::SweepRun*>& runs, Key model::SweepRun::*key,
                      std::vector<double>& values) {
  std::map<Key, std::vector<double>> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) groups[runs[i]->*key].push_back(values[i]);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& group = groups[runs[i]->*key];
    if (group.size() >= 3) values[i] -= median(group);
  }
}

// Runs of a setting that was measured at least three times, whose time or energy is far from that
// of its others, drift from block to block left aside: by the modified z-score (Iglewicz and
// Hoaglin 1993), with the limit that the tables of gpu-tune have. Two runs do not say which of them
// is far.
std::vector<NamedRun> outliers_of(const model::SweepPlan& plan,
                                  const std::vector<model::SweepRun>& runs, const Sweep& sweep) {
  constexpr double kFarScore = 7;
  constexpr double kLeastSpread = 0.02;  // of a logarithm: less is not far, whatever the others are
  std::vector<const model::SweepRun*> compared;
  for (const auto& point : sweep.points) {
    if (point.samples.size() < 3) continue;
    for (const auto& run : runs) {
      if (run.is_ranked() && run.setting == point.setting) compared.push_back(&run);
    }
  }
  if (compared.empty()) return {};
  std::map<unsigned, NamedRun> found;  // by number of run
  for (const auto& [word, of] : {std::pair{"time", &model::SweepRun::seconds},
                                 std::pair{"energy", &model::SweepRun::joules}}) {
    std::vector<double> logs, distances;
    for (const auto* run : compared) logs.push_back(std::log(*(run->*of)));
    subtract_medians(compared, &model::SweepRun::setting, logs);
    if (!plan.observe) subtract_medians(compared, &model::SweepRun::block, logs);
    for (const double log : logs) distances.push_back(std::abs(log));
    const double far = kFarScore * std::max(1.4826 * median(distances), kLeastSpread);
    for (std::size_t i = 0; i < compared.size(); ++i) {
      if (distances[i] <= far) continue;
      const auto& run = *compared[i];
      auto& named = found[run.number];
      named.setting = run.setting;
      named.name = name_of(plan, run);
      named.reason += fmt::format("{}about {:.2g} times the {} of its setting's other runs",
                                  named.reason.empty() ? "" : ", ", std::exp(logs[i]), word);
    }
  }
  std::vector<NamedRun> outliers;
  for (auto& [number, named] : found) outliers.push_back(std::move(named));
  return outliers;
}

void sort(Sweep& sweep) {
  std::sort(sweep.points.begin(), sweep.points.end(),
            [](const SweepPoint& a, const SweepPoint& b) { return a.setting > b.setting; });
}

}  // namespace

double SweepPoint::mean_seconds() const {
  return mean(samples, [](const auto& s) { return s.seconds; });
}

double SweepPoint::mean_joules() const {
  return mean(samples, [](const auto& s) { return s.joules; });
}

Sweep sweep_of(const model::SweepPlan& plan, const std::vector<model::SweepRun>& runs) {
  Sweep sweep;
  sweep.knob = plan.knob;
  sweep.found = plan.found;
  const auto settings = settings_of(plan, runs);
  const double reference = plan.observe && !settings.empty() ? settings.front() : plan.reference;
  for (const double setting : settings) {
    auto unranked = why_unranked(plan, runs, setting, reference);
    if (unranked) sweep.unranked.push_back(std::move(*unranked));
  }
  for (const auto& run : runs) {
    sweep.simulated = sweep.simulated || run.simulated;
    const bool is_named =
        std::any_of(sweep.unranked.begin(), sweep.unranked.end(),
                    [&](const auto& unranked) { return unranked.setting == run.setting; });
    if (is_named) continue;
    if (run.is_ranked()) {
      const auto block = plan.observe ? std::nullopt : std::optional(run.block);
      add(sweep, run.setting, {*run.seconds, *run.joules, block});
    } else if (!run.is_warm_up()) {
      sweep.left_out.push_back({run.setting, name_of(plan, run), run.unranked});
    }
  }
  sort(sweep);
  sweep.outliers = outliers_of(plan, runs, sweep);
  return sweep;
}

std::vector<Sweep> sweeps_of(const model::Recording& recording) {
  std::set<model::DomainId> gpus;
  for (const auto& domain : recording.domains) {
    if (domain.kind == model::DomainKind::kGpu && !domain.parent) gpus.insert(domain.id);
  }
  std::vector<Sweep> sweeps;
  std::map<std::string, std::size_t> by_labels;
  for (const auto& window : recording.imported_windows) {
    const Label* knob = knob_of(window);
    const auto setting = knob == nullptr ? std::nullopt : parse_number(knob->value);
    if (!setting) continue;
    std::string key = knob->name;
    std::vector<Label> others;
    for (const auto& label : window.labels) {
      if (&label == knob) continue;
      key += '\0' + label.name + '\0' + label.value;
      others.push_back(label);
    }
    const auto [at, is_new] = by_labels.try_emplace(key, sweeps.size());
    if (is_new) sweeps.push_back({knob->name, std::move(others), {}});
    Sweep& sweep = sweeps[at->second];
    const auto joules = gpu_joules(window, gpus);
    if (!joules || window.duration <= Duration{}) {
      const auto number = &window - recording.imported_windows.data() + 1;
      sweep.left_out.push_back({*setting, fmt::format("{}, window {}", window.name, number),
                                joules ? "it has no duration" : "it has no energy of a GPU"});
      continue;
    }
    add(sweep, *setting, {seconds(window.duration), *joules, {}});
  }
  for (Sweep& sweep : sweeps) {
    sort(sweep);
    sweep.simulated = model::is_simulated(recording);
  }
  return sweeps;
}

}  // namespace jouleprof::analysis
