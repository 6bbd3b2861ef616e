#include "analysis/sweep/sweep.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
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

struct GpuSum {
  double joules = 0;
  std::set<model::DomainId> gpus;
};

GpuSum gpu_sum(const model::ImportedWindow& window, const std::set<model::DomainId>& gpus) {
  GpuSum sum;
  for (const auto& part : window.energies) {
    if (!gpus.contains(part.domain)) continue;
    sum.joules += part.energy.joules();
    sum.gpus.insert(part.domain);
  }
  return sum;
}

void add(Sweep& sweep, double setting, const SweepSample& sample) {
  const auto at = std::ranges::find(sweep.points, setting, &SweepPoint::setting);
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
  std::ranges::sort(sweep.points, std::ranges::greater{}, &SweepPoint::setting);
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
  sweep.next_run = plan.observe ? "sweep --observe --resume" : "sweep --resume";
  sweep.found = plan.found;
  sweep.gpus = std::max<std::size_t>(1, plan.devices.size());
  const auto settings = settings_of(plan, runs);
  const double reference = plan.observe && !settings.empty() ? settings.front() : plan.reference;
  for (const double setting : settings) {
    auto unranked = why_unranked(plan, runs, setting, reference);
    if (unranked) sweep.unranked.push_back(std::move(*unranked));
  }
  for (const auto& run : runs) {
    sweep.simulated = sweep.simulated || run.simulated;
    const bool is_named = std::ranges::any_of(
        sweep.unranked, [&](const auto& unranked) { return unranked.setting == run.setting; });
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
  std::map<model::DomainId, std::string> names;
  for (const auto& domain : recording.domains) {
    if (domain.kind != model::DomainKind::kGpu || domain.parent) continue;
    gpus.insert(domain.id);
    names[domain.id] = domain.device;
  }
  struct Found {
    const model::ImportedWindow* window;
    double setting;
    GpuSum sum;
  };
  std::vector<Sweep> sweeps;
  std::vector<std::vector<Found>> windows;  // by sweep
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
    if (is_new) {
      sweeps.push_back({knob->name, std::move(others), {}});
      windows.emplace_back();
    }
    windows[at->second].push_back({&window, *setting, gpu_sum(window, gpus)});
  }
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    Sweep& sweep = sweeps[i];
    std::set<model::DomainId> swept;
    for (const auto& found : windows[i]) swept.insert(found.sum.gpus.begin(), found.sum.gpus.end());
    sweep.gpus = std::max<std::size_t>(1, swept.size());
    for (const auto& [window, setting, sum] : windows[i]) {
      const auto absent = std::ranges::find_if_not(
          swept, [&](const model::DomainId gpu) { return sum.gpus.contains(gpu); });
      std::string reason;
      if (sum.gpus.empty() || sum.joules <= 0) {
        reason = "it has no energy of a GPU";
      } else if (absent != swept.end()) {
        // A sum over fewer GPUs than those of other settings would pass for a saving.
        reason = fmt::format("it has no energy of {}", names[*absent]);
      } else if (window->duration <= Duration{}) {
        reason = "it has no duration";
      }
      if (reason.empty()) {
        add(sweep, setting, {seconds(window->duration), sum.joules, {}});
        continue;
      }
      const auto number = window - recording.imported_windows.data() + 1;
      sweep.left_out.push_back(
          {setting, fmt::format("{}, window {}", window->name, number), std::move(reason)});
    }
    sort(sweep);
    sweep.simulated = model::is_simulated(recording);
  }
  return sweeps;
}

namespace {

// Fewer are not worth what the blocks' effects take from them.
constexpr std::size_t kFewestDegreesInBlocks = 4;
// Of one degree of freedom, draws may be far out; their exponentials must stay finite.
constexpr double kGreatestShift = 30;

// With one block: settings alone.
struct Layout {
  Eigen::MatrixXd design;  // settings, then blocks but the last in effect coding
  Eigen::MatrixXd values;  // log of time and energy
};

bool is_complete(const Sweep& sweep, std::size_t blocks) {
  if (blocks == 1) return true;
  std::map<std::optional<unsigned>, std::size_t> first;
  for (const auto& point : sweep.points) {
    std::map<std::optional<unsigned>, std::size_t> counts;
    for (const auto& sample : point.samples) ++counts[sample.block];
    if (first.empty()) first = counts;
    if (counts != first || counts.size() != blocks) return false;
  }
  return true;
}

Layout layout_of(const Sweep& sweep, const std::set<unsigned>& blocks, std::size_t rows) {
  const auto last = static_cast<Eigen::Index>(blocks.size() - 1);
  const auto offset = static_cast<Eigen::Index>(sweep.points.size());
  Layout layout{Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(rows), offset + last),
                Eigen::MatrixXd(static_cast<Eigen::Index>(rows), 2)};
  Eigen::Index row = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    for (const auto& sample : sweep.points[i].samples) {
      layout.design(row, static_cast<Eigen::Index>(i)) = 1;
      const auto block =
          last == 0 ? 0 : std::distance(blocks.begin(), blocks.find(sample.block.value_or(0)));
      if (block < last) {
        layout.design(row, offset + block) = 1;
      } else {
        layout.design.row(row).tail(last).setConstant(-1);
      }
      layout.values(row, 0) = std::log(sample.seconds);
      layout.values(row, 1) = std::log(sample.joules);
      ++row;
    }
  }
  return layout;
}

}  // namespace

BlockModel::BlockModel(const Sweep& sweep) {
  if (fit(sweep, true, kFewestDegreesInBlocks) || fit(sweep, false, 1)) return;
  for (const auto& point : sweep.points) {
    means_.push_back({point.mean_seconds(), point.mean_joules(), {}});
  }
}

bool BlockModel::fit(const Sweep& sweep, bool in_blocks, std::size_t fewest_degrees) {
  std::set<unsigned> blocks;
  std::size_t rows = 0;
  for (const auto& point : sweep.points) {
    for (const auto& sample : point.samples) {
      if (in_blocks && !sample.block) return false;
      blocks.insert(in_blocks ? *sample.block : 0);
      ++rows;
    }
  }
  if (blocks.empty() || rows < sweep.points.size() + blocks.size() - 1 + fewest_degrees) {
    return false;
  }
  const Layout layout = layout_of(sweep, blocks, rows);
  const Eigen::MatrixXd& design = layout.design;
  const Eigen::MatrixXd normal = design.transpose() * design;
  const Eigen::LDLT<Eigen::MatrixXd> solver(normal);
  // Blocks without a common setting cannot be compared.
  if (solver.info() != Eigen::Success || solver.vectorD().minCoeff() < 1e-9) return false;
  const Eigen::MatrixXd estimate = solver.solve(design.transpose() * layout.values);
  const Eigen::MatrixXd residual = layout.values - design * estimate;

  degrees_ = static_cast<std::size_t>(design.rows() - design.cols());
  const auto settings = static_cast<Eigen::Index>(sweep.points.size());
  // Where each block has each setting equally often, its samples' mean is in an average block.
  const bool complete = is_complete(sweep, blocks.size());
  for (Eigen::Index i = 0; i < settings; ++i) {
    const auto& point = sweep.points[static_cast<std::size_t>(i)];
    means_.push_back(complete
                         ? SweepSample{point.mean_seconds(), point.mean_joules(), {}}
                         : SweepSample{std::exp(estimate(i, 0)), std::exp(estimate(i, 1)), {}});
  }
  const Eigen::Matrix2d noise = residual.transpose() * residual / static_cast<double>(degrees_);
  time_ = std::sqrt(noise(0, 0));
  slope_ = time_ > 0 ? noise(0, 1) / time_ : 0;
  energy_ = std::sqrt(std::max(0.0, noise(1, 1) - slope_ * slope_));

  const Eigen::MatrixXd inverse =
      solver.solve(Eigen::MatrixXd::Identity(design.cols(), design.cols()));
  const Eigen::MatrixXd factor = inverse.topLeftCorner(settings, settings).llt().matrixL();
  for (Eigen::Index i = 0; i < settings; ++i) {
    auto& row = factor_.emplace_back();
    for (Eigen::Index k = 0; k <= i; ++k) row.push_back(factor(i, k));
  }
  return true;
}

std::vector<SweepSample> BlockModel::draw(std::mt19937_64& random) const {
  std::normal_distribution<double> normal;
  std::chi_squared_distribution<double> chi_squared(static_cast<double>(degrees_));
  const double widening = std::sqrt(static_cast<double>(degrees_) / chi_squared(random));
  std::vector<double> time(means_.size());
  std::vector<double> energy(means_.size());
  for (std::size_t i = 0; i < means_.size(); ++i) {
    const double first = normal(random);
    time[i] = time_ * first;
    energy[i] = slope_ * first + energy_ * normal(random);
  }
  std::vector<SweepSample> drawn;
  for (std::size_t i = 0; i < means_.size(); ++i) {
    double time_shift = 0;
    double energy_shift = 0;
    for (std::size_t k = 0; k <= i; ++k) {
      time_shift += factor_[i][k] * time[k];
      energy_shift += factor_[i][k] * energy[k];
    }
    const auto factor = [&](double shift) {
      return std::exp(std::clamp(widening * shift, -kGreatestShift, kGreatestShift));
    };
    drawn.push_back(
        {means_[i].seconds * factor(time_shift), means_[i].joules * factor(energy_shift), {}});
  }
  return drawn;
}

Interval interval_of(std::vector<double> values, double coverage) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at((1 - coverage) / 2), at((1 + coverage) / 2)};
}

}  // namespace jouleprof::analysis
