#include "analysis/compare/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "analysis/compare/sides.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::analysis {
namespace {

using Runs = std::vector<RunFigures>;
using FigureOf = std::function<Figure(const RunFigures&)>;

constexpr double kSignificance = 0.05;

constexpr std::array<std::pair<std::string_view, CompareBy>, 5> kTables{
    {{"total", CompareBy::kTotal},
     {"window", CompareBy::kWindow},
     {"phase", CompareBy::kPhase},
     {"layer", CompareBy::kLayer},
     {"kernel", CompareBy::kKernel}}};

// One figure of all runs of one side.
struct Side {
  std::vector<double> logs;
  double noise = 0;  // half of a 95 % interval of the mean, from the sensors alone
  std::map<std::string, double> calibration;  // mean, by domain
  bool estimated = false;
  std::string reason;                 // why it is absent
  std::optional<double> at_most = 0;  // the mean of what the figures are at most; absent: unknown
};

std::optional<double> most_of(const Figure& figure) {
  if (!figure.value) return figure.at_most;
  double error = figure.repeatability;
  for (const auto& [label, ratio] : figure.calibration) error += ratio;
  return *figure.value * (1 + error);
}

Side side_of(const Runs& runs, const FigureOf& figure_of) {
  Side side;
  const auto n = static_cast<double>(runs.size());
  double squares = 0;
  for (const auto& run : runs) {
    const Figure figure = figure_of(run);
    const auto most = most_of(figure);
    side.at_most = side.at_most && most ? std::optional(*side.at_most + *most / n) : std::nullopt;
    if (!figure.value) {
      side.reason = figure.reason;
      continue;
    }
    side.logs.push_back(std::log(*figure.value));
    squares += figure.repeatability * figure.repeatability;
    side.estimated = side.estimated || figure.estimated;
    for (const auto& [label, ratio] : figure.calibration) side.calibration[label] += ratio / n;
  }
  side.noise = std::sqrt(squares) / n;
  return side;
}

// Half of the 95 % interval that calibration errors add to the log ratio. On one board the factor
// of each sensor is the same before and after; what remains is where domains change their shares.
double calibration_half(const Side& before, const Side& after, bool cancels) {
  std::map<std::string, std::pair<double, double>> ratios;
  for (const auto& [label, ratio] : before.calibration) ratios[label].first = ratio;
  for (const auto& [label, ratio] : after.calibration) ratios[label].second = ratio;
  double squares = 0;
  for (const auto& [label, pair] : ratios) {
    const auto [a, b] = pair;
    squares += cancels ? (b - a) * (b - a) : a * a + b * b;
  }
  return std::sqrt(squares);
}

// Logarithms of one side's runs, and their means by block.
struct BlockLogs {
  const std::vector<std::vector<std::size_t>>* blocks;
  const std::vector<double>* means;
  const std::vector<double>* logs;
};

// The variance that a single block, as the mean of fewer runs, has above that of the other side's
// blocks: from the spread of runs within blocks.
double fewer_runs(const BlockLogs& before, const BlockLogs& after) {
  if (before.means->size() > 1 && after.means->size() > 1) return 0;
  const auto mean_of_inverse = [](const BlockLogs& side) {
    double sum = 0;
    for (const auto& block : *side.blocks) sum += 1 / static_cast<double>(block.size());
    return sum / static_cast<double>(side.blocks->size());
  };
  const double inverse[] = {mean_of_inverse(before), mean_of_inverse(after)};
  const double more = before.means->size() == 1 ? inverse[0] - inverse[1] : inverse[1] - inverse[0];
  double squares = 0;
  double degrees = 0;
  for (const BlockLogs* side : {&before, &after}) {
    degrees += static_cast<double>(side->logs->size() - side->means->size());
    for (std::size_t i = 0; i < side->means->size(); ++i) {
      for (const std::size_t run : side->blocks->at(i)) {
        squares += std::pow(side->logs->at(run) - side->means->at(i), 2);
      }
    }
  }
  return degrees > 0 && more > 0 ? squares / degrees * more : 0;
}

class Comparer {
 public:
  Comparer(const Runs& before, const Runs& after, const CompareOptions& options)
      : before_(before),
        after_(after),
        options_(options),
        blocks_(blocks_of(before, after)),
        same_board_(is_same_board(before, after)) {}

  Comparison run() {
    Comparison out;
    for (const auto& run : before_) out.before.push_back(run.name);
    for (const auto& run : after_) out.after.push_back(run.name);
    out.units_before = options_.paired ? before_.size() : blocks_.before.size();
    out.units_after = options_.paired ? after_.size() : blocks_.after.size();
    for (const auto& [label, identity] : before_.front().boards) out.domains.push_back(label);
    for (const auto& [label, identity] : after_.front().boards) out.domains_after.push_back(label);
    if (out.domains_after == out.domains) out.domains_after.clear();
    out.excluded = before_.front().excluded;
    out.is_command = before_.front().is_command;
    out.conditions = conditions_between(before_, after_);
    for (auto& condition : out.conditions) {
      const auto& accepted = options_.accepted;
      if (std::ranges::find(accepted, condition.code) != accepted.end()) {
        condition.blocks = false;
      }
      if (condition.blocks && blocked_by_.empty()) blocked_by_ = condition.code;
    }
    out.energy = difference([](const RunFigures& run) { return run.energy; });
    out.time = difference([](const RunFigures& run) { return run.time; });
    out.power = difference([](const RunFigures& run) { return run.power; });
    out.energy.name = "energy";
    out.time.name = "time";
    out.power.name = "power";
    for (Difference* d : {&out.energy, &out.time, &out.power}) judge(*d);
    add_rows(out);
    return out;
  }

 private:
  Difference difference(const FigureOf& figure_of) const {
    Difference out;
    const Side a = side_of(before_, figure_of);
    const Side b = side_of(after_, figure_of);
    out.before = mean_of(a, before_.size());
    out.after = mean_of(b, after_.size());
    if (!out.before || !out.after) {
      out.reason = a.reason.empty() ? b.reason : a.reason;
      if ((out.reason == "not_positive" || out.reason == "undivided") && a.at_most && b.at_most) {
        out.at_most = std::max(*a.at_most, *b.at_most);
      }
      return out;
    }
    Estimate estimate = estimate_of(a, b);
    const double noise = std::hypot(a.noise, b.noise);
    const bool estimated = a.estimated || b.estimated;
    // A model's error depends on the work, so that it does not cancel.
    add_sensors(estimate, noise, calibration_half(a, b, same_board_ && !estimated));
    if (estimated) out.reason = "estimated";
    out.sensor_noise = noise;
    out.p = p_value(estimate);
    out.log_ratio = estimate;
    return out;
  }

  static std::optional<double> mean_of(const Side& side, std::size_t runs) {
    if (side.logs.size() != runs) return std::nullopt;
    double sum = 0;
    for (const double value : side.logs) sum += value;
    return std::exp(sum / static_cast<double>(runs));
  }

  Estimate estimate_of(const Side& a, const Side& b) const {
    if (options_.paired) {
      std::vector<double> differences;
      for (std::size_t i = 0; i < a.logs.size(); ++i) differences.push_back(b.logs[i] - a.logs[i]);
      return estimate_of_pairs(differences);
    }
    const auto before = block_means(blocks_.before, a.logs);
    const auto after = block_means(blocks_.after, b.logs);
    return options_.spread ? estimate_with_spread(before, after, *options_.spread)
                           : estimate_of_units(before, after,
                                               fewer_runs({&blocks_.before, &before, &a.logs},
                                                          {&blocks_.after, &after, &b.logs}));
  }

  void judge(Difference& d) const {
    // No form of output shows a change between sides that cannot be compared.
    if (!blocked_by_.empty() && (d.log_ratio || d.at_most)) {
      d.reason = blocked_by_;
      d.log_ratio.reset();
      d.at_most.reset();
      d.p = 1;
    }
    if (!d.log_ratio) return;
    const Estimate& estimate = *d.log_ratio;
    if (!estimate.half) {
      d.reason = "spread_unknown";
    } else if (*d.low() >= -options_.same_within && *d.high() <= options_.same_within) {
      d.verdict = Verdict::kSame;
      d.reason = "within_threshold";
    } else if (d.p < kSignificance && estimate.mean < 0) {
      d.verdict = Verdict::kLower;
      d.reason = "interval_below_zero";
    } else if (d.p < kSignificance && estimate.mean > 0) {
      d.verdict = Verdict::kHigher;
      d.reason = "interval_above_zero";
    } else if (d.reason.empty()) {
      const bool excludes_zero = *d.low() > 0 || *d.high() < 0;
      d.reason = excludes_zero ? "one_of_many" : "interval_too_wide";
    }
  }

  void add_rows(Comparison& out) const {
    auto matched = pair_rows(before_, after_);
    out.unmatched = std::move(matched.unmatched);
    for (auto& pair : matched.pairs) {
      out.rows.push_back(difference([&](const RunFigures& run) { return pair.energy_in(run); }));
      out.rows.back().name = std::move(pair.name);
      out.rows.back().detail = std::move(pair.detail);
    }
    std::vector<double> p;
    for (const auto& row : out.rows) p.push_back(row.p);
    p = holm_adjusted(std::move(p));
    for (std::size_t i = 0; i < p.size(); ++i) {
      out.rows[i].p = p[i];
      judge(out.rows[i]);
    }
    const auto joules = [](const Difference& d) {
      return d.before && d.after ? std::abs(*d.after - *d.before) : -1;
    };
    std::ranges::stable_sort(
        out.rows, [&](const Difference& a, const Difference& b) { return joules(a) > joules(b); });
  }

  const Runs& before_;
  const Runs& after_;
  const CompareOptions& options_;
  Blocks blocks_;
  bool same_board_;
  std::string blocked_by_;
};

std::optional<double> ratio_of(double log_ratio) {
  if (!std::isfinite(log_ratio)) return std::nullopt;
  return std::expm1(log_ratio);
}

tl::unexpected<Error> invalid(std::string_view text) {
  return fail(Errc::kInvalidArgument,
              fmt::format("--fail-if {}: give energy, time or power, '>' and a percentage above 0, "
                          "such as 'energy>+3%'",
                          text));
}

std::optional<CompareMetric> parse_metric(std::string_view word) {
  if (word == "energy") return CompareMetric::kEnergy;
  if (word == "time") return CompareMetric::kTime;
  if (word == "power") return CompareMetric::kPower;
  return std::nullopt;
}

}  // namespace

std::optional<CompareBy> parse_compare_by(std::string_view word) {
  for (const auto& [name, by] : kTables) {
    if (name == word) return by;
  }
  return std::nullopt;
}

std::string_view to_string(CompareBy by) {
  for (const auto& [name, known] : kTables) {
    if (known == by) return name;
  }
  return "";
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kLower:
      return "lower";
    case Verdict::kHigher:
      return "higher";
    case Verdict::kSame:
      return "same";
    case Verdict::kInconclusive:
      return "inconclusive";
  }
  return "";
}

std::optional<double> Difference::ratio() const {
  return log_ratio ? ratio_of(log_ratio->mean) : std::nullopt;
}
std::optional<double> Difference::low() const {
  return log_ratio ? ratio_of(log_ratio->low()) : std::nullopt;
}
std::optional<double> Difference::high() const {
  return log_ratio ? ratio_of(log_ratio->high()) : std::nullopt;
}

bool Comparison::is_blocked() const {
  return std::ranges::any_of(conditions,
                             [](const Condition& condition) { return condition.blocks; });
}

Result<Comparison> compare(const Runs& before, const Runs& after, const CompareOptions& options) {
  if (before.empty() || after.empty()) {
    return fail(Errc::kInvalidArgument, "a comparison needs a run before and a run after");
  }
  if (options.paired && before.size() != after.size()) {
    return fail(Errc::kInvalidArgument,
                "pairs need as many runs before as after; leave out --paired");
  }
  Runs left = before;
  Runs right = after;
  const auto without_rest = align_rest(left, right);
  Comparison out = Comparer(left, right, options).run();
  if (!without_rest.empty()) {
    out.conditions.push_back(
        {"rest_left_out",
         fmt::format("energy at rest of {} is the command's in some runs only, because other "
                     "processes used it in the others; it is left out of all",
                     fmt::join(without_rest, ", ")),
         false});
  }
  return out;
}

Result<Gate> parse_gate(std::string_view text) {
  const auto sign = text.find('>');
  if (sign == std::string_view::npos) return invalid(text);
  const auto metric = parse_metric(trim(text.substr(0, sign)));
  std::string_view amount = trim(text.substr(sign + 1));
  if (!metric || !amount.ends_with('%')) return invalid(text);
  amount.remove_suffix(1);
  if (amount.starts_with('+')) amount.remove_prefix(1);
  const auto percent = parse_number(trim(amount));
  if (!percent || *percent <= 0 || *percent > 1000) return invalid(text);
  return Gate{*metric, *percent / 100, std::string(text)};
}

std::string_view to_string(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::kPassed:
      return "passed";
    case GateOutcome::kFailed:
      return "failed";
    case GateOutcome::kInconclusive:
      return "inconclusive";
  }
  return "";
}

GateOutcome judge(const Gate& gate, const Comparison& comparison, bool self_test) {
  const Difference& difference = difference_of(comparison, gate.metric);
  if (!difference.log_ratio || !difference.log_ratio->half || comparison.is_blocked()) {
    return GateOutcome::kInconclusive;
  }
  const double threshold = std::log1p(gate.threshold);
  const double added = self_test ? 2 * threshold : 0;
  if (difference.log_ratio->low() + added > threshold) return GateOutcome::kFailed;
  if (difference.log_ratio->high() + added <= threshold) return GateOutcome::kPassed;
  return GateOutcome::kInconclusive;
}

const Difference& difference_of(const Comparison& comparison, CompareMetric metric) {
  switch (metric) {
    case CompareMetric::kTime:
      return comparison.time;
    case CompareMetric::kPower:
      return comparison.power;
    case CompareMetric::kEnergy:
      break;
  }
  return comparison.energy;
}

}  // namespace jouleprof::analysis
