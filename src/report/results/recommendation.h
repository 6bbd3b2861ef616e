// Recommended settings, as people and programs read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/sweep/recommend.h"
#include "base/result.h"
#include "report/cells.h"
#include "report/costs/costs.h"

namespace jouleprof::report {

// A sweep, and what was found for it.
struct AdvisedSweep {
  analysis::Sweep sweep;
  Result<analysis::Recommendation> advice;
};

// What a saving means for work that runs so many hours a day at the reference setting.
struct DailyUse {
  double hours = 24;
  std::optional<Price> price;
  std::optional<double> grams;  // of CO2 equivalent for one kilowatt-hour
};

struct RecommendationOptions {
  analysis::RecommendOptions choice;
  std::string sweep_file;  // of our own sweep, for the command that applies it; empty: none
  // `choice` is not that of the sweep's plan, by which `jouleprof apply` chooses.
  bool is_other_choice = false;
  std::string devices;  // its GPUs, as `nvidia-smi -i` takes them; empty: not known
  std::optional<DailyUse> daily;
};

// One sweep: every setting and the recommended one. Several: one row each, and their mean.
std::string recommendation_to_text(const std::vector<AdvisedSweep>& sweeps,
                                   const RecommendationOptions& options,
                                   const TextOptions& text = {});

// The documented JSON object (docs/json.md).
std::string recommendation_to_json(const std::vector<AdvisedSweep>& sweeps,
                                   const RecommendationOptions& options);

// The sweep in the JSON of Zeus's profiles of power limits: one mean a limit. Errors: unsupported
// for another knob, which the format does not have.
Result<std::string> recommendation_to_zeus_profile(const AdvisedSweep& sweep);

// "350 W"; "power limit": of the knob of a sweep.
std::string setting_text(std::string_view knob, double setting);
std::string knob_text(std::string_view knob);

std::string signed_percent(double ratio);                   // "-3.1 %"
std::string with_interval(const analysis::Change& change);  // "-3.1 % (-4.0 to -2.2)"

// Joules of one day's work at the reference, in work of its pace: times a saving, what that saves.
inline double joules_per_day(const analysis::Recommendation& advice, const DailyUse& daily) {
  const auto& reference = advice.points[advice.reference].mean;
  return daily.hours * 3600 / reference.seconds * reference.joules;
}
inline double saved_joules_per_day(const analysis::Recommendation& advice, const DailyUse& daily) {
  return joules_per_day(advice, daily) * advice.points[advice.best].saving.ratio;
}

}  // namespace jouleprof::report
