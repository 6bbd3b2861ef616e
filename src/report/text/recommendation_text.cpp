#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/sweep.h"
#include "report/cells.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/results/recommendation.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

using analysis::Recommendation;

constexpr std::size_t kMostNoteLines = 3;

std::string objective_text(const analysis::RecommendOptions& choice) {
  std::string text;
  switch (choice.objective) {
    case analysis::Objective::kEnergy:
      text = "least energy";
      break;
    case analysis::Objective::kEdp:
      text = "least energy-delay product (E t)";
      break;
    case analysis::Objective::kEd2p:
      text = "least energy-delay-squared product (E t^2)";
      break;
    case analysis::Objective::kCost:
      text = fmt::format("least cost, {:g} E + {:g} P_max t", choice.eta, 1 - choice.eta);
      break;
    case analysis::Objective::kTime:
      text = "least time";
      break;
  }
  if (choice.max_slowdown) {
    text += fmt::format(", at most {:g} % slower than the reference", 100 * *choice.max_slowdown);
  }
  if (choice.max_watts) text += fmt::format(", mean power at most {:g} W", *choice.max_watts);
  return text;
}

bool has_constraint(const analysis::RecommendOptions& choice) {
  return choice.max_slowdown || choice.max_watts;
}

// With what probability the recommended setting meets the constraints.
void add_constraint(TextPage& page, const Recommendation& advice, const std::string& setting,
                    const analysis::RecommendOptions& choice) {
  if (!has_constraint(choice)) return;
  const auto& probability = advice.points[advice.best].probability_within;
  page.note("constraint",
            probability ? fmt::format("{} meets it with a probability of {}; {} is required",
                                      setting, percent_text(*probability),
                                      percent_text(analysis::kConstraintConfidence))
                        : fmt::format("{} meets it by its single measurement; the probability is "
                                      "not known",
                                      setting));
}

// Of the settings that are as good within error, the fastest.
void add_faster(TextPage& page, const analysis::Sweep& sweep, const Recommendation& advice) {
  std::size_t fastest = advice.best;
  for (const std::size_t i : advice.ties) {
    if (advice.points[i].mean.seconds < advice.points[fastest].mean.seconds) fastest = i;
  }
  if (fastest == advice.best) return;
  const auto& rated = advice.points[fastest];
  const double time = rated.mean.seconds / advice.points[advice.best].mean.seconds - 1;
  page.note("or",
            fmt::format("{}: {} less time, and equal within error in the objective",
                        setting_text(sweep.knob, rated.point->setting), signed_percent(-time)));
}

void add_named(TextPage& page, const char* label, const analysis::Sweep& sweep,
               const std::vector<analysis::NamedRun>& runs, std::string_view end) {
  constexpr std::size_t kMost = 5;
  for (std::size_t i = 0; i < std::min(runs.size(), kMost); ++i) {
    page.note(label, fmt::format("{} at {}: {}{}", runs[i].name,
                                 setting_text(sweep.knob, runs[i].setting), runs[i].reason, end));
  }
  if (runs.size() <= kMost) return;
  page.note(label, fmt::format("and {} more; --json has each", runs.size() - kMost));
}

void add_simulated(TextPage& page, const analysis::Sweep& sweep) {
  if (sweep.simulated)
    page.add({paint(std::string(kSimulatedText), Style::kAlarm, page.text.colour)});
}

void add_daily(TextPage& page, const Recommendation& advice, const DailyUse& daily) {
  const double kwh = saved_joules_per_day(advice, daily) / kJoulesPerKilowattHour;
  const double size = std::abs(kwh);
  const auto& [hours, price, grams] = daily;
  std::string words =
      fmt::format("{} h a day of this work: {:.3g} kWh {}", hours, size, kwh < 0 ? "more" : "less");
  if (const auto& saving = advice.points[advice.best].saving.interval) {
    const double whole = joules_per_day(advice, daily) / kJoulesPerKilowattHour;
    words += kwh < 0
                 ? fmt::format(" ({:.3g} to {:.3g})", -saving->high * whole, -saving->low * whole)
                 : fmt::format(" ({:.3g} to {:.3g})", saving->low * whole, saving->high * whole);
  }
  if (price) {
    const std::string currency = price->currency.empty() ? "" : " " + price->currency;
    words += fmt::format(", {:.3g}{} at {:g}{} per kWh", size * price->per_kilowatt_hour, currency,
                         price->per_kilowatt_hour, currency);
  }
  if (grams) words += fmt::format(", {:.3g} g of CO2 at {:g} g per kWh", size * *grams, *grams);
  page.note("per day", words);
}

std::string mark_of(const Recommendation& advice, std::size_t i) {
  std::string mark;
  const auto add = [&](const char* word) {
    mark += (mark.empty() ? "" : ", ") + std::string(word);
  };
  if (i == advice.best) add("recommended");
  if (i == advice.reference) add("reference");
  const bool tied = std::ranges::find(advice.ties, i) != advice.ties.end();
  if (tied && i != advice.best) add("equal within error");
  if (!advice.points[i].feasible) {
    add(advice.points[i].within ? "may be outside the constraints" : "outside the constraints");
  }
  return mark;
}

Table settings_table(const analysis::Sweep& sweep, const Recommendation& advice) {
  const bool repeated = advice.points.front().probability_of_best.has_value();
  std::vector<std::string> headings{
      knob_text(sweep.knob), "time", "slowdown", "energy", "saving", "mean W"};
  if (repeated) headings.emplace_back("P(best)");
  headings.emplace_back("<");
  Table table(std::move(headings));
  for (std::size_t i = 0; i < advice.points.size(); ++i) {
    const auto& rated = advice.points[i];
    const Style style = i == advice.best ? Style::kBold : Style::kPlain;
    std::vector<Cell> row{{setting_text(sweep.knob, rated.point->setting), style},
                          {duration_text(duration_of(rated.mean.seconds)), style},
                          {with_interval(rated.slowdown), style},
                          {energy_text(Energy::joules(rated.mean.joules)), style},
                          {with_interval(rated.saving), style},
                          {number_text(rated.mean.joules / rated.mean.seconds), style}};
    if (repeated) row.push_back({percent_text(*rated.probability_of_best), style});
    row.push_back({mark_of(advice, i), Style::kDim});
    table.add(std::move(row));
  }
  return table;
}

// What `jouleprof apply` is given for this setting.
std::string apply_words(const analysis::Sweep& sweep, double setting,
                        const RecommendationOptions& options) {
  const auto* words = model::knob_words(sweep.knob);
  if (!options.is_other_choice || words == nullptr) return shell_word(options.sweep_file);
  return fmt::format("--{} {:g}{}", words->word, setting,
                     options.devices.empty() ? "" : " -i " + options.devices);
}

void one(const AdvisedSweep& advised, const RecommendationOptions& options, TextPage& page) {
  const auto& [sweep, advice] = advised;
  add_simulated(page, sweep);
  std::size_t samples = 0;
  for (const auto& point : sweep.points) samples += point.samples.size();
  page.note("sweep", fmt::format("{}, {} settings, {} measurements", knob_text(sweep.knob),
                                 sweep.points.size(), samples));
  page.note("objective", objective_text(options.choice));
  page.blank();
  const auto add_not_counted = [&] {
    for (const auto& unranked : sweep.unranked) {
      page.note("not ranked",
                fmt::format("{}: {}", setting_text(sweep.knob, unranked.setting), unranked.reason));
    }
    add_named(page, "left out", sweep, sweep.left_out, "");
    add_named(page, "outlier", sweep, sweep.outliers, "; it counts");
  };
  if (!advice) {
    page.note("none", advice.error().message);
    add_not_counted();
    return;
  }
  page.add(settings_table(sweep, *advice));
  page.blank();
  const auto& best = advice->points[advice->best];
  const auto& reference = advice->points[advice->reference];
  const std::string setting = setting_text(sweep.knob, best.point->setting);
  page.note("recommend",
            advice->best == advice->reference
                ? fmt::format("{}, the reference: no other setting is better", setting)
                : fmt::format("{}: saving {} of energy and slowdown {} against {}", setting,
                              with_interval(best.saving), with_interval(best.slowdown),
                              setting_text(sweep.knob, reference.point->setting)));
  if (!best.saving.interval) {
    page.note("error",
              "not known: a setting was measured only once. Measure each several times to get "
              "intervals");
  }
  if (advice->saving_against_found && *sweep.found != best.point->setting &&
      *sweep.found != reference.point->setting) {
    page.note("today",
              fmt::format("against {}, the setting before the sweep: saving {}, slowdown {}",
                          setting_text(sweep.knob, *sweep.found),
                          with_interval(*advice->saving_against_found),
                          with_interval(*advice->slowdown_against_found)));
  }
  add_constraint(page, *advice, setting, options.choice);
  if (advice->regret) {
    page.note("certainty",
              fmt::format("at 95 %, no measured setting{} lowers the objective by more than {}",
                          has_constraint(options.choice) ? " within the constraints" : "",
                          percent_text(*advice->regret)));
  }
  add_faster(page, sweep, *advice);
  add_not_counted();
  if (options.daily) add_daily(page, *advice, *options.daily);
  if (const auto* words = model::knob_words(sweep.knob); words != nullptr) {
    page.note("apply",
              options.devices.empty()
                  ? fmt::format("nvidia-smi {} {:g} -i INDEX   (your GPU's index; needs root)",
                                words->smi_flag, best.point->setting)
                  : fmt::format("nvidia-smi {} {:g} -i {}   (needs root)", words->smi_flag,
                                best.point->setting, options.devices));
  }
  if (!options.sweep_file.empty()) {
    page.note("", fmt::format("jouleprof apply {} -- COMMAND   (restores it at the end)",
                              apply_words(sweep, best.point->setting, options)));
  }
}

std::string heading_of(std::string label) {
  std::ranges::replace(label, '_', ' ');
  return label;
}

void several(const std::vector<AdvisedSweep>& sweeps, const RecommendationOptions& options,
             TextPage& page) {
  add_simulated(page, sweeps.front().sweep);
  page.note("sweeps", fmt::format("{}, each with its own work", sweeps.size()));
  page.note("objective", objective_text(options.choice));
  page.blank();
  std::vector<std::string> headings;
  for (const auto& label : sweeps.front().sweep.labels) headings.push_back(heading_of(label.name));
  const std::size_t labels = headings.size();
  if (labels == 0) headings.emplace_back("sweep");
  for (const char* heading : {"setting", "energy", "saving", "slowdown"})
    headings.emplace_back(heading);
  const auto& daily = options.daily;
  if (daily) headings.emplace_back("kWh/day");
  if (daily && daily->price) headings.emplace_back("price/day");
  if (daily && daily->grams) headings.emplace_back("gCO2/day");
  const std::size_t columns = headings.size();
  Table table(std::move(headings));
  double saving = 0;
  double slowdown = 0;
  std::size_t known = 0;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    const auto& [sweep, advice] = sweeps[i];
    std::vector<Cell> row;
    for (std::size_t k = 0; k < labels; ++k) {
      row.push_back({k < sweep.labels.size() ? page.safe(sweep.labels[k].value) : "-"});
    }
    if (labels == 0) row.push_back({fmt::format("{}", i + 1)});
    if (!advice) {
      for (const char* absent : {"none", "-", "-", "-"}) row.push_back({absent, Style::kAttention});
      row.resize(columns, {"-", Style::kAttention});
    } else {
      const auto& best = advice->points[advice->best];
      row.push_back({setting_text(sweep.knob, best.point->setting), Style::kBold});
      row.push_back({energy_text(Energy::joules(best.mean.joules))});
      row.push_back({signed_percent(best.saving.ratio)});
      row.push_back({signed_percent(best.slowdown.ratio)});
      if (daily) {
        const double kwh = saved_joules_per_day(*advice, *daily) / kJoulesPerKilowattHour;
        row.push_back({number_text(kwh)});
        if (daily->price) row.push_back({number_text(kwh * daily->price->per_kilowatt_hour)});
        if (daily->grams) row.push_back({number_text(kwh * *daily->grams)});
      }
      saving += best.saving.ratio;
      slowdown += best.slowdown.ratio;
      ++known;
    }
    table.add(std::move(row));
  }
  page.add(table);
  page.blank();
  if (known > 0) {
    const auto n = static_cast<double>(known);
    page.note("mean",
              fmt::format("of {} sweeps: saving {:.2f} %, slowdown {:.2f} %, against the reference",
                          known, 100 * saving / n, 100 * slowdown / n));
  }
  if (daily) {
    page.note("per day", fmt::format("what the setting saves in {:g} h of the sweep's work a day",
                                     daily->hours));
  }
  if (known < sweeps.size()) {
    page.note("none", fmt::format("for {} sweeps; --json has each reason", sweeps.size() - known));
  }
}

}  // namespace

std::string setting_text(std::string_view knob, double setting) {
  const auto* words = model::knob_words(knob);
  return fmt::format("{:g} {}", setting, words != nullptr ? words->unit : "");
}

std::string knob_text(std::string_view knob) {
  const auto* words = model::knob_words(knob);
  return std::string(words != nullptr ? words->name : knob);
}

std::string signed_percent(double ratio) {
  return fmt::format("{:.1f} %", std::abs(ratio) < 0.0005 ? 0.0 : 100 * ratio);
}

std::string with_interval(const analysis::Change& change) {
  if (!change.interval) return signed_percent(change.ratio);
  return fmt::format("{} ({:.1f} to {:.1f})", signed_percent(change.ratio),
                     100 * change.interval->low, 100 * change.interval->high);
}

std::string recommendation_to_text(const std::vector<AdvisedSweep>& sweeps,
                                   const RecommendationOptions& options, const TextOptions& text) {
  TextPage page(text, kMostNoteLines);
  if (sweeps.size() == 1) {
    one(sweeps.front(), options, page);
  } else {
    several(sweeps, options, page);
  }
  return page.joined();
}

}  // namespace jouleprof::report
